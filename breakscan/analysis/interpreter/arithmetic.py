"""The values of arithmetic."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.analysis.interpreter.values import (
    CONSTANT,
    SHAPE,
    UNKNOWN,
    Sort,
    Value,
    container,
    container_of,
    doubt,
    join,
    number,
    tensor,
)


def binary(left: Value, right: Value, op: ast.operator) -> Value:
    """The value of an arithmetic operation."""
    tensors = [v for v in (left, right) if v.is_tensor]
    if tensors:
        dtype = _promoted(left, right, op)
        both = len(tensors) == 2
        zero = all(v.zero_dim for v in tensors) if both or has_number(left, right) else None
        line = (not both and has_number(left, right) and tensors[0].one_dim) or (
            both and all(v.one_dim for v in tensors)
        )
        made = tensor(max(v.sure for v in tensors), dtype, zero or None, line)
        return replace(made, optional=doubt(*tensors)) if all(doubt(v) for v in tensors) else made
    if isinstance(op, ast.Add) and left.sort is Sort.CONTAINER and right.sort is Sort.CONTAINER:
        if left.elements is not None and right.elements is not None:
            return container([*left.elements, *right.elements])
        return container_of(join(left.item(), right.item()))
    if isinstance(op, ast.Mult) and Sort.CONTAINER in (left.sort, right.sort):
        many = left if left.sort is Sort.CONTAINER else right
        return container_of(many.item())
    if isinstance(op, ast.Mod) and left.sort is Sort.CONSTANT:
        return CONSTANT
    for value in (left, right):
        if value.sort is Sort.NUMBER:
            return number(value.sure)
    for value in (left, right):
        if value.sort is Sort.DRAWN:
            return value
    if Sort.UNKNOWN in (left.sort, right.sort) or Sort.NAMESPACE in (left.sort, right.sort):
        return UNKNOWN
    return SHAPE if Sort.SHAPE in (left.sort, right.sort) else CONSTANT


def has_number(left: Value, right: Value) -> bool:
    """Whether one of the two is a Python number, which leaves the shape of the other as it is."""
    return any(v.sort in (Sort.CONSTANT, Sort.NUMBER, Sort.SHAPE) for v in (left, right))


def _promoted(left: Value, right: Value, op: ast.operator) -> str | None:
    if isinstance(op, ast.Div):
        return "float"
    dtypes = [v.dtype for v in (left, right) if v.is_tensor]
    if "float" in dtypes:
        return "float"
    if len(dtypes) == 2 and dtypes[0] == dtypes[1]:
        return dtypes[0]
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and "bool" in dtypes:
        return "bool"
    return "int" if len(dtypes) == 2 and None not in dtypes else None
