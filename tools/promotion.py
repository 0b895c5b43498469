"""Type promotion as torch does it (``torch.result_type``), for operands of known dtypes.

``tests/rulebook/torch_facts/test_promotion.py`` holds every combination against the installed torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64"})
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
COMPLEX = frozenset({"complex64", "complex128"})
SYNONYMS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
"""Other names that ``torch`` has for its dtypes."""


class Priority(IntEnum):
    """The priority of an operand: a tensor of lower priority only counts if its category is higher."""

    NUMBER = 0
    ZERO_DIM = 1
    DIMENSIONED = 2


class Operand(NamedTuple):
    """One input of an operator.

    A Python number has the dtype ``bool``, ``int64``, ``float32`` (whatever the default dtype is) or ``complex64``.
    """

    dtype: str
    priority: Priority = Priority.DIMENSIONED


def python_number(value: bool | int | float | complex) -> Operand:
    """The operand that a Python number is."""
    names = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}
    return Operand(names[type(value)], Priority.NUMBER)


def dtype_class(dtype: str) -> str | None:
    """``float``, ``int``, ``bool`` or ``complex`` for the name of a dtype; None where it is none of these."""
    dtype = SYNONYMS.get(dtype, dtype)
    if dtype in FLOATS:
        return "float"
    if dtype in INTEGERS:
        return "int"
    return "complex" if dtype in COMPLEX else "bool" if dtype == "bool" else None


def promoted(operands: Sequence[Operand], default: str = "float32") -> str | None:
    """The dtype in which torch computes with these operands; None where there is none."""
    by_priority: dict[Priority, str] = {}
    for one in operands:
        dtype = _of_number(one.dtype, default) if one.priority is Priority.NUMBER else one.dtype
        before = by_priority.get(one.priority)
        by_priority[one.priority] = dtype if before is None else promote_types(before, dtype)
    result: str | None = None
    for _, higher in sorted(by_priority.items()):
        result = higher if result is None else _combined(higher, result)
    return result


def promote_types(one: str, other: str) -> str:
    """The dtype of two tensors with dimensions (``torch.promote_types``)."""
    if one == other:
        return one
    classes = _rank(one), _rank(other)
    low, high = (one, other) if classes[0] <= classes[1] else (other, one)
    if classes[0] != classes[1]:
        return _with_complex(low, high) if high in COMPLEX else high
    if high in COMPLEX:
        return "complex128"
    if high in FLOATS:
        return "float64" if "float64" in (one, other) else "float32"
    return _wider_integer(one, other)


def _of_number(dtype: str, default: str) -> str:
    if dtype in FLOATS:
        return default
    return _complex_of(default) if dtype in COMPLEX else dtype


def _rank(dtype: str) -> int:
    return ("bool", "int", "float", "complex").index(dtype_class(dtype) or "bool")


def _with_complex(low: str, high: str) -> str:
    return "complex128" if low == "float64" else high


def _wider_integer(one: str, other: str) -> str:
    signed = ("int8", "int16", "int32", "int64")
    if "uint8" in (one, other):
        name = other if one == "uint8" else one
        return "int16" if name == "int8" else name
    return max(one, other, key=signed.index)


def _complex_of(dtype: str) -> str:
    return {"float64": "complex128", "float16": "complex32"}.get(dtype, "complex64")


def _combined(higher: str, lower: str) -> str:
    """The dtype of a group of operands and one of lower priority."""
    if higher in COMPLEX:
        return higher
    if higher in FLOATS:
        return _complex_of(higher) if lower in COMPLEX else higher
    if higher == "bool" or lower in FLOATS | COMPLEX:
        return promote_types(higher, lower)
    return higher
