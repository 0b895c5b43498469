"""Evaluates subscripts, read and written."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.check.interpreter.data_sizes import part_of_size, taken_by_data
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.joins import item_of
from breakscan.check.interpreter.values import (
    CONSTANT,
    UNKNOWN,
    Container,
    DataSize,
    DrawnNumber,
    Module,
    Namespace,
    PythonValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Unknown,
    Value,
    array,
    at_most,
    doubt,
    tensor,
)
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import EventKind


def subscript(frame: Frame, node: ast.Subscript, owner: Value, form: str) -> Value:
    """Emits what indexing does; ``form`` is load, store or augment.  Returns what is read."""
    indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [_as_mask(index, _index_value(frame, node, index, owner), owner) for index in indices]
    tensors = [value for value in values if isinstance(value, Tensor)]
    for index, value in zip(indices, values, strict=True):
        if isinstance(value, Tensor):
            _emit_index(frame, node, owner, index, value, form)
        elif (isinstance(value, TensorNumber | DataSize) and _is_list(owner)) or (
            isinstance(value, DrawnNumber) and not _is_mapping(owner)
        ):
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=value.sure)
    if isinstance(owner, Tensor):
        return _part(frame, owner, indices, values)
    if isinstance(owner, Unknown | Namespace) and any(v.zero_dim is not True for v in tensors):
        return tensor(Sure.LIKELY)  # a list takes only what is a single number
    if isinstance(owner, Container) and len(indices) == 1:
        return _element(owner, indices[0])
    if isinstance(owner, Module) and owner.element is not None:
        return owner.element
    if isinstance(owner, Unknown | Namespace) and frame.entries and (place := entry_of(node)) is not None:
        name, key = place
        return frame.entries.get(name, {}).get(key, UNKNOWN)
    if isinstance(owner, DataSize) and len(indices) == 1:
        return part_of_size(owner, indices[0])
    return item_of(owner) if isinstance(owner, Size) else UNKNOWN


def _is_list(owner: Value) -> bool:
    """Whether only Python numbers can be indices; a tensor also takes those that are not known yet."""
    return isinstance(owner, Module) or (isinstance(owner, Container) and not owner.keys and not owner.mapping)


def _is_mapping(owner: Value) -> bool:
    return isinstance(owner, Container) and (owner.mapping or bool(owner.keys))


def entry_of(node: ast.Subscript) -> tuple[str, str] | None:
    """The name and the key of ``state["step"]``."""
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return (node.value.id, key) if isinstance(node.value, ast.Name) and isinstance(key, str) else None


def _emit_index(frame: Frame, node: ast.Subscript, owner: Value, index: ast.expr, value: Tensor, form: str) -> None:
    if isinstance(owner, Tensor | Unknown | Namespace):
        sure = owner.sure if isinstance(owner, Tensor) else Sure.LIKELY
        conditions = [owner.optional] if isinstance(owner, Tensor) and owner.optional is not None else []
        if value.zero_dim and not value.intermediate and value.dtype != "bool":
            # Dynamo knows an integer on the CPU that it is handed.
            conditions.append(Condition(ConditionKind.TEST, f"{ast.unparse(index)}.is_cpu", False))
            sure = Sure.POSSIBLE if value.optional else sure
        with frame.under(*conditions):
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=sure)
    elif isinstance(owner, Size) or _is_list(owner):
        # Only a single number can be an index here.
        # A container of things unknown is still a container.
        sure = Sure.CERTAIN if isinstance(item_of(owner), Unknown) else owner.sure
        frame.emit(EventKind.INDEX, node, form=form, operand=replace(value, zero_dim=True), sure=sure)


def _part(frame: Frame, owner: Tensor, indices: list[ast.expr], values: list[Value]) -> Value:
    """What an index takes out of a tensor."""
    single = owner.one_dim and len(indices) == 1
    sliced = single and isinstance(indices[0], ast.Slice)
    number = single and not sliced and _is_number(values[0])
    make = array if owner.array else tensor
    index = values[0]
    selected = single and isinstance(index, Tensor) and (index.one_dim or (index.dtype == "bool" and not number))
    part = make(owner.sure, owner.dtype, True if number else None, sliced or selected)
    if taken_by_data(frame, owner, indices, values):
        part = replace(part, by_data=True)
    return replace(part, optional=doubt(owner)) if doubt(owner) else part


def _is_number(value: Value) -> bool:
    return value.zero_dim is True if isinstance(value, Tensor) else isinstance(value, PythonValue)


def _as_mask(index: ast.expr, value: Value, owner: Value) -> Value:
    """The value of an index.  An unknown value whose name ends in "mask" is assumed to be a mask."""
    name = _last_name(index)
    if not name.lower().endswith(("mask", "masks")):
        return value
    if isinstance(value, Tensor) and value.dtype is None:
        return replace(at_most(value, Sure.LIKELY), dtype="bool")
    if isinstance(value, Unknown) and isinstance(owner, Tensor):
        condition = value.optional or Condition(ConditionKind.MASK, name)
        return replace(tensor(Sure.LIKELY, "bool"), optional=condition)
    return value


def _last_name(index: ast.expr) -> str:
    """``mask`` of ``self.mask`` and of ``state["mask"]``."""
    if isinstance(index, ast.Subscript) and isinstance(index.slice, ast.Constant):
        return str(index.slice.value)
    return index.id if isinstance(index, ast.Name) else index.attr if isinstance(index, ast.Attribute) else ""


def _index_value(frame: Frame, node: ast.Subscript, index: ast.expr, owner: Value) -> Value:
    if not isinstance(index, ast.Slice):
        return frame.evaluate(index)
    for bound in (index.lower, index.upper, index.step):
        value = frame.evaluate(bound)
        if bound is not None and isinstance(value, Tensor):
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=owner.sure)
        elif isinstance(value, DrawnNumber):
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=value.sure)
    return CONSTANT


def _element(owner: Container, index: ast.expr) -> Value:
    if isinstance(index, ast.Slice):
        return replace(owner, elements=None, element=item_of(owner), keys=())
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        key: object = -index.operand.value if isinstance(index.operand.value, int) else None
    else:
        key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int) and owner.elements is not None and -len(owner.elements) <= key < len(owner.elements):
        return owner.elements[key]
    if isinstance(key, str):
        return dict(owner.keys).get(key, owner.element or UNKNOWN)
    return item_of(owner)
