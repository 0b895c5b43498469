"""The calls of an operator that the measurements are made of: torch's own samples, and small made ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

SAMPLES = 12
LOOKED_AT = 400
BASES = (torch.float32, torch.int64, torch.bool, torch.complex64)
ORDINARY = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-4, -1e-4, 100.0, -100.0, 1e4, -1e4)
"""Finite values that gradients are tried at."""
NOT_FINITE = (float("inf"), float("-inf"), float("nan"), 0.0, 1.0)


@dataclass
class Entry:
    """An operator: its callables with torch's own samples, and the function or method as a user calls it."""

    name: str
    infos: list[tuple[Any, Any]] = field(default_factory=list)
    plain: Any = None
    order: tuple[int, ...] = ()
    """The places that the arguments of a sample have in the call, where torch's samples have them in another order."""


@dataclass(eq=False)
class Call:
    function: Callable[..., Any]
    args: list[Any]
    options: dict[str, Any]
    base: torch.dtype

    def with_tensors(self, change: Callable[[torch.Tensor], Any]) -> Call:
        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, torch.Tensor) else value

        return Call(self.function, tree_map(changed, self.args), tree_map(changed, self.options), self.base)

    def tensors(self) -> list[torch.Tensor]:
        return [v for v in tree_leaves((self.args, self.options)) if isinstance(v, torch.Tensor)]

    def has_elements(self, dtype: torch.dtype) -> bool:
        """True if there is a tensor of a dtype, and each has a dimension and elements: with others some operators
        return before they choose a kernel, and so accept any dtype."""
        tensors = self.tensors()
        return any(value.dtype is dtype for value in tensors) and all(one.numel() and one.dim() for one in tensors)

    def fresh(self) -> Call:
        return self.with_tensors(lambda value: value.detach().clone())

    def cast(self, dtype: torch.dtype) -> Call:
        return self.with_tensors(lambda value: value.to(dtype) if value.dtype is self.base else value)

    def run(self) -> Any:
        return self.function(*self.args, **self.options)

    def result(self) -> Any:
        """The result of a call with copies of the inputs; an exception if it raises."""
        try:
            return self.fresh().run()
        except Exception as error:  # any function of torch may refuse, in any way
            return error


def kind_of(result: Any) -> str:
    if isinstance(result, torch.Tensor):
        return "tensor"
    if isinstance(result, tuple | list) and result and all(isinstance(one, torch.Tensor) for one in result):
        return "tensors"
    return "python" if isinstance(result, bool | int | float | complex) else "other"


def tensors_in(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result) if kind_of(result) == "tensors" else []


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def often(seen: list[bool]) -> str | None:
    return None if not seen else "always" if all(seen) else "sometimes" if any(seen) else "never"


def samples(entry: Entry) -> list[Call]:
    found = []
    for function, info in entry.infos:
        base = next((dtype for dtype in BASES if dtype in info.dtypes), None)
        if base is None:
            continue
        try:
            for sample in _chosen(info.sample_inputs("cpu", base, requires_grad=False)):
                leaves = tree_leaves((sample.input, sample.args, sample.kwargs))
                # A dtype that is asked for hides the one that comes from the tensors.
                asks = any(isinstance(one, torch.dtype) for one in leaves)
                if (asks and any(isinstance(one, torch.Tensor) for one in leaves)) or sample.kwargs.get("inplace"):
                    continue
                given = [sample.input, *sample.args]
                order = entry.order if len(entry.order) == len(given) else range(len(given))
                found.append(Call(function, [given[place] for place in order], dict(sample.kwargs), base))
        except Exception:  # samples of some operators need what is not installed
            continue
    return found


def _chosen(given: Iterator[Any]) -> list[Any]:
    """Samples with elements before those without: the first ones, and others from everywhere among the rest."""
    several = list(islice(given, LOOKED_AT))
    several.sort(key=lambda one: any(not value.numel() for value in tree_leaves(one.input) if _is_tensor(value)))
    first, rest = several[: SAMPLES // 2], several[SAMPLES // 2 :]
    others = rest[:: max(1, len(rest) // (SAMPLES // 2))]
    return first + others[: SAMPLES // 2]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def plain_calls(entry: Entry, sampled: list[Call]) -> list[Call]:
    """Calls with nothing but tensors, as few as the operator takes."""
    function = entry.plain or (entry.infos[0][0] if entry.infos else None)
    if function is None:
        return []
    bases = [call.base for call in sampled] or list(BASES)
    for base, count in product(dict.fromkeys(bases), (1, 2, 3)):
        calls = [
            Call(function, [made_tensor(shape, base, place) for place in range(count)], {}, base)
            for shape in ((3,), (2, 3), (2, 2, 2))
        ]
        if any(not isinstance(call.result(), Exception) for call in calls):
            return calls
    return []


def made_tensor(shape: tuple[int, ...], dtype: torch.dtype, place: int) -> torch.Tensor:
    return (torch.rand(shape) * 2 + place).to(dtype)
