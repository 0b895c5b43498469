"""Measures which arguments of an operator of torch are numbers, and where a number does as well as a tensor."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

from tools.operator_calls import Call, Entry

DRAWS = torch.Tag.nondeterministic_seeded
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int32", "int64")
VALUES = {torch.int64: (0, 1, -1, 3), torch.float32: (0.1, -2.5, 0.0, 3.0, float("inf"), float("nan"))}

Parameter = tuple[str, str, bool]
"""A name, a kind (``tensor``, ``number``, ``numbers`` or ``other``), and whether it may be given by position."""


def may_draw(entry: Entry) -> bool:
    """True if torch marks an operator of ATen of that name as one that draws random numbers."""
    packet = getattr(torch.ops.aten, _aten_name(entry.name), None)
    overloads = packet.overloads() if packet is not None else []
    return any(DRAWS in getattr(packet, overload).tags for overload in overloads)


def alike(entry: Entry, calls: list[Call]) -> list[int]:
    """The positions where a 0-d tensor and its Python number give the same result, and the same gradient of the first
    argument, as long as they do not decide the dtype.  Tried in the calls with the fewest arguments."""
    found = []
    for place in sorted(_number_or_tensor(entry) - {0}):
        plain = [
            call
            for call in [*_with_number(entry), *calls]
            if not call.options and len(call.args) > place and all(one.dim() for one in call.tensors())
        ]
        fewest = min((len(call.args) for call in plain), default=0)
        chosen = [call for call in plain if len(call.args) == fewest][:4]
        if fewest == place + 1 and _is_alike(chosen, place):
            found.append(place)
    return found


def _with_number(entry: Entry) -> list[Call]:
    call = Call(entry.plain, [torch.rand(2, 3) + 1, 2], {}, torch.float32)
    return [call] if entry.plain is not None and not isinstance(call.result(), Exception) else []


def _number_or_tensor(entry: Entry) -> set[int]:
    tensors, scalars = set(), set()
    for parameters in _signatures(entry):
        for place, (_, kind, positional) in enumerate(parameters):
            if positional and kind == "tensor":
                tensors.add(place)
            elif positional and kind == "number":
                scalars.add(place)
    return tensors & scalars


def _is_alike(calls: list[Call], place: int) -> bool:
    tried = False
    for call in calls:
        for name in (*FLOATS, *INTEGERS):
            cast = call.cast(getattr(torch, name))
            for dtype, values in VALUES.items():
                if dtype.is_floating_point and name in INTEGERS:
                    continue
                for value in values:
                    tensor = torch.tensor(value, dtype=dtype)
                    one, other = _with(cast, place, tensor).result(), _with(cast, place, tensor.item()).result()
                    if isinstance(one, Exception) and isinstance(other, Exception):
                        continue
                    tried = True
                    if not _is_equal(one, other):
                        return False
                    if name == "float32" and not _has_equal_gradients(cast, place, tensor):
                        return False
    return tried


def _has_equal_gradients(call: Call, place: int, tensor: torch.Tensor) -> bool:
    """True if the gradient of the first tensor is the same with a 0-d tensor and with its number."""
    found = [_gradient(_with(call, place, value)) for value in (tensor, tensor.item())]
    if found[0] is None or found[1] is None:
        return found[0] is found[1]
    return _is_equal(*found)


def _gradient(call: Call) -> torch.Tensor | None:
    given = call.fresh()
    try:
        leaf = given.args[0].requires_grad_()
        given.args[0] = leaf.clone()  # operators in place refuse leaves
        result = given.run()
        found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(result.sum(), leaf, allow_unused=True)
    except Exception:  # no gradient goes through, or none is known
        return None
    return found[0]


def _with(call: Call, place: int, value: Any) -> Call:
    return Call(call.function, [value if p == place else old for p, old in enumerate(call.args)], {}, call.base)


def _is_equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    if one.dtype is not other.dtype or one.shape != other.shape:
        return False
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(), other.nan_to_num())


def _aten_name(name: str) -> str:
    name = name.removeprefix("Tensor.").removeprefix("nn.functional.")
    return name.replace(".", "_")


def _signatures(entry: Entry) -> Iterator[list[Parameter]]:
    """The parameters of each overload, from the annotations of a function in Python and from the schemas of ATen."""
    annotated = _annotated(entry)
    if any(kind != "other" for _, kind, _ in annotated):
        yield annotated
        if entry.name.startswith("nn.functional."):
            return  # another operator of ATen may have that name
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{_aten_name(entry.name)}"):
        types = [str(one.real_type) for one in schema.arguments]
        # What TorchScript calls for texts, and for the arguments of ``to``, is no operator on tensors.
        if any(one.is_out for one in schema.arguments) or types[:1] == ["str"] or schema.overload_name[:4] == "prim":
            continue
        given = zip(schema.arguments, types, strict=True)
        yield [(one.name, _kind(text), not one.kwarg_only) for one, text in given]


def _annotated(entry: Entry) -> list[Parameter]:
    try:
        parameters = inspect.signature(entry.plain).parameters.values()
    except (TypeError, ValueError):  # not written in Python
        return []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [(one.name, _kind(inspect.formatannotation(one.annotation)), one.kind in plain) for one in parameters]


def _kind(text: str) -> str:
    if "Tensor" in text:
        return "tensor"
    if not re.search(r"\b(int|float|number|complex|SymInt|Scalar|Number)\b", text):
        return "other"
    return "numbers" if re.search(r"\b([Ll]ist|[Tt]uple|Sequence|BroadcastingList\d)\b", text) else "number"
