"""What a parameter of a constructor may be given, by its name and its annotation."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Union

from breakscan.survey.likely_numbers import floats, integers, of_name_alone, texts
from breakscan.survey.signatures import resolved
from breakscan.survey.tiny_configurations import small_size

Maker = Callable[[], Any]
"""Makes a value.  Each attempt has values of its own."""
_DEPTH = 2
"""How deep objects that are made for a parameter have parameters of their own."""
_MODULE = re.compile(r"(.*_)?(net|model|module|fn|layer|block|encoder|decoder|backbone|func|transform|cell|estimator)")
_SWITCH = re.compile(r"(is|use|with|return|has|no|do|enable)_\w+|bias|causal|inplace|training|normalize\w*")


def values(name: str, kind: Any, width: int, depth: int = 0) -> list[Maker]:
    """Makers of what may be given, the likeliest first; none where nothing is known.  ``width`` is what all parameters
    with the names of widths are."""
    by_kind = list(_of_kind(name.lower(), kind, width, depth))
    return by_kind if by_kind else _of_name(name.lower(), width)


def _constant(*given: Any) -> list[Maker]:
    return [lambda value=value: value for value in given]  # type: ignore[misc]


def _of_kind(name: str, kind: Any, width: int, depth: int) -> Iterable[Maker]:
    import torch

    if kind is Any:
        return []
    origin = typing.get_origin(kind)
    inner = typing.get_args(kind)
    if origin is Union or origin is types.UnionType:
        # None is what it is without being given; numbers come before what holds them.
        members = [one for one in inner if one is not type(None)]
        return [maker for one in sorted(members, key=_rank) for maker in values(name, one, width, depth)]
    if origin is typing.Annotated:
        return values(name, inner[0], width, depth)
    if origin is Literal:
        return _constant(*inner)
    if origin is type or kind is type:
        return _constant(torch.nn.Identity, torch.nn.ReLU)
    if kind is bool:
        return _constant(False, True)
    if kind is int:
        return _constant(*integers(name, width))
    if kind is float:
        return _constant(*floats(name))
    if kind is str:
        return _constant(*texts(name))
    if kind is torch.device:
        return _constant(torch.device("cpu"))
    if kind is torch.dtype:
        return _constant(torch.float32)
    if origin is tuple or kind is tuple:
        return _tuples(name, inner, width, depth)
    if isinstance(origin or kind, type) and issubclass(origin or kind, Sequence) and origin is not None:
        return _sequences(name, inner[0], width, depth)
    if kind is list or kind is Sequence:
        return [*_sequences(name, int, width, depth), lambda: torch.nn.ModuleList([_linear(width)])]
    if isinstance(origin or kind, type) and issubclass(origin or kind, Mapping):
        return [dict]
    if origin is Callable or origin is typing.get_origin(Callable[[], Any]) or kind is Callable:
        return _constant(torch.nn.functional.relu, torch.nn.functional.mse_loss)
    if isinstance(kind, type):
        return _of_class(kind, width, depth)
    return []


def _rank(kind: Any) -> int:
    return 0 if kind in (int, float, bool, str) else 1


def _tuples(name: str, inner: tuple[Any, ...], width: int, depth: int) -> list[Maker]:
    if not inner:
        inner = (int, int)
    if inner[-1] is Ellipsis:
        return _sequences(name, inner[0], width, depth, tuple)
    members = [values(name, one, width, depth) for one in inner]
    if not all(members):
        return []
    ordered = [lambda: tuple(makers[0]() for makers in members)]
    if inner == (float, float):
        ordered += _constant((0.5, 1.5), (0.1, 0.9))
    return [*ordered, lambda: tuple(makers[-1]() for makers in members)]


def _sequences(name: str, inner: Any, width: int, depth: int, kind: Callable[[list[Any]], Any] = list) -> list[Maker]:
    makers = values(name, inner, width, depth) or values(name.removesuffix("s"), inner, width, depth)
    return [
        lambda maker=maker, number=number: kind([maker() for _ in range(number)])  # type: ignore[misc]
        for number in (2, 1, 3)
        for maker in makers[:2]
    ]


def _linear(width: int) -> Any:
    import torch

    return torch.nn.Linear(width, width)


def _of_class(kind: type, width: int, depth: int) -> Iterable[Maker]:
    import torch

    if issubclass(kind, torch.Tensor):
        return _tensors(width)
    if kind is torch.nn.Module:
        return _modules(width)
    if kind is torch.nn.ModuleList:
        return [lambda: torch.nn.ModuleList([_linear(width), _linear(width)])]
    if issubclass(kind, enum.Enum):
        return _constant(*kind)
    if kind.__module__ == "builtins" or depth >= _DEPTH:
        return []
    return [partial(made, kind, width, depth + 1), partial(made, kind, width, depth + 1, small=True)]


def made(kind: type, width: int, depth: int, *, small: bool = False) -> Any:
    """An object of a class, with the likeliest of each that it requires, and with ``small`` sizes where those by
    default are larger.  Raises what its constructor raises."""
    parameters = resolved(kind)
    given: dict[str, Any] = dict(smaller(parameters)) if small else {}
    for name, one in parameters.items():
        if one.default is one.empty:
            makers = values(name, one.annotation, width, depth)
            if makers:
                given[name] = makers[0]()
    return kind(**given)


def smaller(parameters: Mapping[str, inspect.Parameter]) -> dict[str, int]:
    """Sizes that are smaller than by default."""
    sizes = {name: small_size(name) for name, one in parameters.items() if type(one.default) is int}
    return {name: size for name, size in sizes.items() if size is not None and size < parameters[name].default}


def _modules(width: int) -> list[Maker]:
    import torch

    return [
        lambda: torch.nn.Linear(width, width),
        torch.nn.Identity,
        lambda: torch.nn.Conv2d(width, width, 3, padding=1),
    ]


def _tensors(width: int) -> list[Maker]:
    import torch

    shapes: tuple[tuple[int, ...], ...] = ((width,), (width, width), (2, width), (3, 3), (1, 3, 3), (2, 3, 8, 8), ())
    return [lambda shape=shape: torch.rand(*shape) for shape in shapes]  # type: ignore[misc]


def _of_name(name: str, width: int) -> list[Maker]:
    """Where the annotation says nothing."""
    import torch

    found = of_name_alone(name, width)
    if found:
        return _constant(*found, (width, width))
    if _MODULE.fullmatch(name):
        return [*_modules(width), *_constant(torch.nn.functional.relu)]
    if _SWITCH.fullmatch(name):
        return _constant(False, True)
    return [*_constant(width, 2, 0.5, (width, width)), *_modules(width)[:1], *_tensors(width)[:2]]
