"""What the forward of a module may be called with."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from breakscan.survey.combinations import combinations
from breakscan.survey.heard import Heard
from breakscan.survey.input_shapes import Shape, shapes
from breakscan.survey.likely_values import values
from breakscan.survey.signatures import resolved, takes_tensors

Given = tuple[tuple[Any, ...], dict[str, Any]]
Form = Callable[[Shape], Any]
"""Makes an input of a shape, or one that goes with it."""
_COMBINATIONS = 24
"""How many combinations of forms are tried, each with all shapes."""
_MASK = re.compile(r"(.*_)?(mask|masks|padding)(_.*)?")
_TARGET = re.compile(r"(.*_)?(targets?|labels?|gt|true|y_true|y|truth)(_.*)?")
_INDEX = re.compile(r"(.*_)?(ids?|idx|index|indices|tokens?|edge_index|batch|positions?)")
_TIME = re.compile(r"t|(.*_)?(times?|timesteps?|sigmas?|steps?|noise_level)")


def inputs(module: Any, width: int, known: Mapping[str, Any], heard: Heard) -> Iterator[Given]:
    """What a module may be called with, the likeliest first: ``known`` are values by names of parameters.

    ``heard`` is what errors of earlier calls said; it may grow meanwhile.
    """
    parameters, rest = _parameters(module)
    seen: set[object] = set()
    state = None
    while state != (state := heard.state([*parameters, *(heard.quoted if rest else ())])):
        sized = list(shapes(module, width, heard.numbers))
        for names in _wanted(parameters, rest, heard):
            kinds = {name: getattr(parameters.get(name), "annotation", Any) for name in names}
            forms = {name: _forms(name, kind, width, known, not n) for n, (name, kind) in enumerate(kinds.items())}
            for chosen in islice(combinations([len(one) for one in forms.values()]), _COMBINATIONS):
                for shape in sized if names else sized[:1]:
                    which = (names, chosen, shape)
                    if which not in seen:
                        seen.add(which)
                        made = {
                            name: one[number](shape) for (name, one), number in zip(forms.items(), chosen, strict=True)
                        }
                        yield _bound(parameters, made)


def _parameters(module: Any) -> tuple[dict[str, inspect.Parameter], bool]:
    """What a module takes, and whether it takes any number of arguments besides."""
    try:
        kinds = [one.kind for one in inspect.signature(module.forward).parameters.values()]
        return resolved(module.forward), inspect.Parameter.VAR_POSITIONAL in kinds
    except (ValueError, TypeError):
        return {}, True


def _wanted(parameters: Mapping[str, inspect.Parameter], rest: bool, heard: Heard) -> Iterator[tuple[str, ...]]:
    """Names of what is given: what is required, and then what errors spoke of, too."""
    required = tuple(name for name, one in parameters.items() if one.default is one.empty)
    if not required and rest:
        yield from (tuple(f"{number}" for number in range(count)) for count in (1, 2, 3))
        if heard.quoted:
            yield tuple(name for name in heard.quoted if name.isidentifier())[:4]
    yield required
    asked = tuple(name for name in parameters if name in required or name in heard.names)
    if asked != required:
        yield asked
    if not required and not rest and parameters:
        yield tuple(parameters)[:1]


def _bound(parameters: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> Given:
    """By position as far as there is no gap; names that are numbers stand for what takes any."""
    keywords = {name: value for name, value in given.items() if not name.isdigit()}
    positional = [value for name, value in given.items() if name.isdigit()]
    for name in parameters if not positional else ():
        keyword_only = name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        if name not in keywords or keyword_only:
            break
        positional.append(keywords.pop(name))
    return tuple(positional), keywords


def _forms(name: str, kind: Any, width: int, known: Mapping[str, Any], first: bool) -> list[Form]:
    """The likeliest forms of a parameter; ``first`` is that which decides what the others go with."""
    found: list[Form] = [partial(_given, known[name])] if name in known else []
    if not takes_tensors(kind):
        made = values(name, kind, width)
        return [*found, *(partial(_made, one) for one in made)] or [_real]
    origin = typing.get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [*found, lambda shape: {"x": _real(shape)}]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        listed = tuple if origin is tuple else list
        number = len(typing.get_args(kind)) if origin is tuple and Ellipsis not in typing.get_args(kind) else 2
        return [*found, lambda shape: listed(_real(shape) for _ in range(number))]
    return found + _tensors(name.lower(), first)


def _tensors(name: str, first: bool) -> list[Form]:
    if _MASK.fullmatch(name):
        return [_true_of_two, _ones, _true, _square]
    if _TARGET.fullmatch(name) and not first:
        return [_real, _classes, _binary, _class_map]
    if _INDEX.fullmatch(name):
        return [_tokens, _classes, _real]
    if _TIME.fullmatch(name):
        return [_one_each, _classes, _scalar, _real]
    return [_real, _tokens] if first else [_real, _last, _one_each, _tokens]


def _given(value: Any, shape: Shape) -> Any:
    return value


def _made(maker: Callable[[], Any], shape: Shape) -> Any:
    return maker()


def _real(shape: Shape) -> Any:
    """From 0 to 1: what is good for images and probabilities is good for others."""
    import torch

    return torch.rand(shape)


def _tokens(shape: Shape) -> Any:
    import torch

    return torch.randint(0, 2, shape)


def _binary(shape: Shape) -> Any:
    import torch

    return torch.randint(0, 2, shape).float()


def _classes(shape: Shape) -> Any:
    return _tokens(shape[:1])


def _class_map(shape: Shape) -> Any:
    return _tokens((*shape[:1], *shape[2:]))


def _one_each(shape: Shape) -> Any:
    return _real(shape[:1])


def _last(shape: Shape) -> Any:
    return _real((*shape[:1], *shape[-1:]))


def _scalar(shape: Shape) -> Any:
    return _real(())


def _ones(shape: Shape) -> Any:
    import torch

    return torch.ones(shape)


def _true(shape: Shape) -> Any:
    import torch

    return torch.ones(shape, dtype=torch.bool)


def _true_of_two(shape: Shape) -> Any:
    return _true(shape[:2])


def _square(shape: Shape) -> Any:
    return _true((*shape[-2:-1], *shape[-2:-1]))
