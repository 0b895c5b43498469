"""Sizes that depend on what is in a tensor.  They matter where code is exported: compiled code is cut where such a
tensor is made, and knows its size from there on."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import (
    SIZE,
    Constant,
    Container,
    DataSize,
    PythonValue,
    Tensor,
    Value,
    literal_of,
)
from breakscan.rulebook.torch_facts.not_measured import FIRST_SIZE_BY_DATA


def found_by_data(frame: Frame, name: str, given: Sequence[Value], result: Value) -> Value:
    """What a function of torch with this name gives, which is ``result`` else."""
    alone = name == "where" and len(given) == 1
    if not frame.program.mode.exports or not (alone or name in FIRST_SIZE_BY_DATA):
        return result
    return _each_by_data(result)


def _each_by_data(value: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, by_data=True)
    if isinstance(value, Container):
        elements = tuple(map(_each_by_data, value.elements)) if value.elements is not None else None
        element = _each_by_data(value.element) if value.element is not None else None
        return replace(value, elements=elements, element=element)
    return value


def keeps_size_by_data(name: str, given: Sequence[Value], keeps_shape: bool) -> bool:
    """Whether the first size of what a method gives depends on data as that of its tensor does."""
    first = given[0] if given else None
    if not isinstance(first, Tensor) or not first.by_data:
        return False
    if name in ("view", "reshape"):
        return [literal_of(value) for value in given[1:]] == [-1]
    if name == "squeeze":
        return len(given) > 1 and isinstance(given[1], Constant) and given[1].literal in (-1, 1, 2)
    return keeps_shape or name == "flatten"


def taken_by_data(frame: Frame, owner: Tensor, indices: Sequence[ast.expr], values: Sequence[Value]) -> bool:
    """Whether an index takes as many elements out of a tensor as data says."""
    first = values[0]
    if not frame.program.mode.exports or not isinstance(first, Tensor) or owner.array:
        return False
    return first.by_data or (first.dtype == "bool" and len(indices) == 1)


def size_of(owner: Tensor) -> Value:
    """The shape of a tensor, or the number of its elements."""
    return DataSize(owner.sure) if owner.by_data else SIZE


def is_size_by_data(owner: Tensor, method: str, dimension: Value | None) -> bool:
    """Whether a method of a tensor gives a size that depends on data, or the product of all."""
    is_first = method == "size" and (dimension is None or literal_of(dimension) == 0)
    return owner.by_data and (is_first or method in ("numel", "nelement", "__len__"))


def part_of_size(size: DataSize, index: ast.expr) -> Value:
    """``size[index]``: only the first is known to depend on data."""
    return size if isinstance(index, ast.Constant) and index.value == 0 else SIZE


def parts_of_size(size: DataSize, count: int) -> list[Value]:
    """What a shape is unpacked into."""
    return [size, *[SIZE] * (count - 1)]


def combined_sizes(left: Value, right: Value) -> Value | None:
    """What is computed from two Python values, or found by comparing them, if one of them is a size that depends on
    data."""
    sizes = [value for value in (left, right) if isinstance(value, DataSize)]
    if not sizes or not all(isinstance(value, PythonValue) for value in (left, right)):
        return None
    return sizes[0]
