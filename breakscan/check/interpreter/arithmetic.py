"""The values of arithmetic."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.check.interpreter.data_sizes import combined_sizes
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.joins import item_of, join
from breakscan.check.interpreter.values import (
    CONSTANT,
    SIZE,
    UNKNOWN,
    ArrayNumber,
    Constant,
    Container,
    DrawnNumber,
    Namespace,
    Pointer,
    PythonValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Unknown,
    Value,
    array,
    container,
    container_of,
    doubt,
    tensor,
)
from breakscan.rulebook.events import EventKind

_NAMES: dict[type[ast.operator | ast.unaryop], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.USub: "neg",
}
"""Operators by their names in the module ``operator``."""


def operate(frame: Frame, node: ast.AST, left: Value, op: ast.operator, right: Value) -> Value:
    """The value of an arithmetic operation.  Emits one on a number that was drawn: only a tensor can be computed from
    it, and nothing by dividing it."""
    compute_with_pointers(frame, node, left, right)
    drawn = left if isinstance(left, DrawnNumber) else right
    if isinstance(drawn, DrawnNumber):
        of_tensor = isinstance(right if drawn is left else left, Tensor | Unknown | Namespace)
        if not of_tensor or (drawn is left and isinstance(op, ast.Div) and isinstance(right, Tensor)):
            return emit_operation(frame, node, op, drawn)
    return binary(left, right, op)


def compute_with_pointers(frame: Frame, node: ast.AST, *values: Value) -> None:
    """Emits ``data_ptr()`` where something is computed from what it gave, or compared with it: only there the graph
    ends."""
    for value in values:
        if isinstance(value, Pointer):
            frame.emit(EventKind.CALL, node, callee="torch.Tensor.data_ptr", operand=value, sure=value.sure)
            return


def emit_operation(frame: Frame, node: ast.AST, op: ast.operator | ast.unaryop, operand: Value) -> Value:
    """Emits an operation on a number that was drawn.  The graph ends there, and the result is computed in Python."""
    frame.emit(EventKind.CALL, node, callee=f"operator.{_NAMES.get(type(op), '')}", operand=operand, sure=operand.sure)
    return CONSTANT


def binary(left: Value, right: Value, op: ast.operator) -> Value:
    """The value of an arithmetic operation."""
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return _of_tensors(left, right, op)
    if isinstance(op, ast.Mult) and isinstance(left, Container):
        return container_of(item_of(left))
    if isinstance(op, ast.Mult) and isinstance(right, Container):
        return container_of(item_of(right))
    if isinstance(op, ast.Add) and isinstance(left, Container) and isinstance(right, Container):
        return _concatenated(left, right)
    if isinstance(op, ast.Mod) and isinstance(left, Constant):
        return CONSTANT
    return of_numbers(left, right) or _of_python_values(left, right)


def _of_tensors(left: Value, right: Value, op: ast.operator) -> Value:
    tensors = [v for v in (left, right) if isinstance(v, Tensor)]
    keeps_shape = len(tensors) == 2 or has_number(left, right)
    zero_dim = keeps_shape and all(v.zero_dim for v in tensors)
    one_dim = keeps_shape and all(v.one_dim for v in tensors)
    make = array if all(v.array for v in tensors) else tensor
    sure, dtype = max(v.sure for v in tensors), _promoted(left, right, op)
    if dtype is None and isinstance(op, ast.BitAnd | ast.BitOr) and not any(v.dtype for v in tensors):
        sure, dtype = min(sure, Sure.LIKELY), "bool"  # hardly any other tensors are combined so
    made = make(sure, dtype, zero_dim or None, one_dim)
    made = replace(made, by_data=True) if keeps_shape and is_by_data(tensors) else made
    return replace(made, optional=doubt(*tensors)) if all(doubt(v) for v in tensors) else made


def is_by_data(tensors: list[Tensor]) -> bool:
    """Whether tensors that are combined have a first size that depends on data; others could broadcast to it."""
    return any(v.by_data for v in tensors) and all(v.by_data or v.zero_dim for v in tensors)


def _concatenated(left: Container, right: Container) -> Container:
    if left.elements is not None and right.elements is not None:
        return container([*left.elements, *right.elements])
    return container_of(join(item_of(left), item_of(right)))


def of_numbers(left: Value, right: Value) -> Value | None:
    """What an operation or comparison gives where one side is a number that is known only when the graph runs."""
    for value in (left, right):
        if isinstance(value, TensorNumber):
            return TensorNumber(value.sure)
    for value in (left, right):
        if isinstance(value, DrawnNumber):
            return value
    if (by_data := combined_sizes(left, right)) is not None:
        return by_data
    if isinstance(left, PythonValue) and isinstance(right, PythonValue):
        return next((value for value in (left, right) if isinstance(value, ArrayNumber)), None)
    return None


def _of_python_values(left: Value, right: Value) -> Value:
    if isinstance(left, Unknown | Namespace) or isinstance(right, Unknown | Namespace):
        return UNKNOWN
    return SIZE if isinstance(left, Size) or isinstance(right, Size) else CONSTANT


def has_number(left: Value, right: Value) -> bool:
    """Whether one of the two is a Python number, which leaves the shape of the other as it is."""
    return any(isinstance(v, PythonValue) for v in (left, right))


def _promoted(left: Value, right: Value, op: ast.operator) -> str | None:
    if isinstance(op, ast.Div):
        return "float"
    dtypes = [v.dtype for v in (left, right) if isinstance(v, Tensor)]
    if "float" in dtypes:
        return "float"
    if len(dtypes) == 2 and dtypes[0] == dtypes[1]:
        return dtypes[0]
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and "bool" in dtypes:
        return "bool"
    return "int" if len(dtypes) == 2 and None not in dtypes else None
