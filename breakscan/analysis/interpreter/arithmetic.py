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
    if left.is_tensor or right.is_tensor:
        return _of_tensors(left, right, op)
    if Sort.CONTAINER in (left.sort, right.sort) and isinstance(op, ast.Add | ast.Mult):
        made = _of_containers(left, right, op)
        if made is not None:
            return made
    if isinstance(op, ast.Mod) and left.sort is Sort.CONSTANT:
        return CONSTANT
    return of_numbers(left, right) or _of_python_values(left, right)


def _of_tensors(left: Value, right: Value, op: ast.operator) -> Value:
    tensors = [v for v in (left, right) if v.is_tensor]
    keeps_shape = len(tensors) == 2 or has_number(left, right)
    zero_dim = keeps_shape and all(v.zero_dim for v in tensors)
    one_dim = keeps_shape and all(v.one_dim for v in tensors)
    made = tensor(max(v.sure for v in tensors), _promoted(left, right, op), zero_dim or None, one_dim)
    return replace(made, optional=doubt(*tensors)) if all(doubt(v) for v in tensors) else made


def _of_containers(left: Value, right: Value, op: ast.operator) -> Value | None:
    """A container repeated, or two of them put together."""
    if isinstance(op, ast.Mult):
        return container_of((left if left.sort is Sort.CONTAINER else right).item())
    if left.sort is not right.sort:
        return None
    if left.elements is not None and right.elements is not None:
        return container([*left.elements, *right.elements])
    return container_of(join(left.item(), right.item()))


def of_numbers(left: Value, right: Value) -> Value | None:
    """What an operation or comparison gives where one side is a number that is known only when the graph runs."""
    for value in (left, right):
        if value.sort is Sort.NUMBER:
            return number(value.sure)
    for value in (left, right):
        if value.sort is Sort.DRAWN:
            return value
    return None


def _of_python_values(left: Value, right: Value) -> Value:
    sorts = {left.sort, right.sort}
    if sorts & {Sort.UNKNOWN, Sort.NAMESPACE}:
        return UNKNOWN
    return SHAPE if Sort.SHAPE in sorts else CONSTANT


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
