"""Evaluates subscripts, read and written."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.analysis.interpreter.conditions import Condition, ConditionKind
from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import (
    CONSTANT,
    UNKNOWN,
    Sort,
    Sure,
    Value,
    tensor,
)
from breakscan.rulebook.events import EventKind


def subscript(frame: Frame, node: ast.Subscript, owner: Value, form: str) -> Value:
    """Emits what indexing does; ``form`` is load, store or augment.  Returns what is read."""
    indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [_as_mask(index, _index_value(frame, node, index, owner), owner) for index in indices]
    tensors = [value for value in values if value.is_tensor]
    if tensors:
        _emit_index(frame, node, owner, tensors, form)
    if owner.is_tensor:
        return _part(owner, indices, values)
    if owner.sort in _COULD_BE_TENSORS and any(v.zero_dim is not True for v in tensors):
        return tensor(Sure.LIKELY)  # a list takes only what is a single number
    if owner.sort is Sort.CONTAINER and len(indices) == 1:
        return _element(owner, indices[0])
    if owner.sort is Sort.MODULE and owner.element is not None:
        return owner.element
    return owner.item() if owner.sort is Sort.SHAPE else UNKNOWN


_COULD_BE_TENSORS = frozenset({Sort.UNKNOWN, Sort.NAMESPACE})
_SEQUENCES = frozenset({Sort.CONTAINER, Sort.MODULE, Sort.SHAPE})


def _emit_index(frame: Frame, node: ast.Subscript, owner: Value, tensors: list[Value], form: str) -> None:
    if owner.is_tensor or owner.sort in _COULD_BE_TENSORS:
        sure = owner.sure if owner.is_tensor else Sure.LIKELY
        for value in tensors:
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=sure)
    elif owner.sort in _SEQUENCES and not owner.keys and not owner.mapping:
        for value in tensors:
            # Only a single number can be an index here.
            frame.emit(EventKind.INDEX, node, form=form, operand=replace(value, zero_dim=True), sure=owner.sure)


def _part(owner: Value, indices: list[ast.expr], values: list[Value]) -> Value:
    """What an index takes out of a tensor."""
    single = owner.one_dim and len(indices) == 1
    sliced = single and isinstance(indices[0], ast.Slice)
    number = single and not sliced and (values[0].sort in _INTEGERS or values[0].zero_dim is True)
    return tensor(owner.sure, owner.dtype, True if number else None, sliced)


_INTEGERS = frozenset({Sort.CONSTANT, Sort.SHAPE, Sort.NUMBER})


def _as_mask(index: ast.expr, value: Value, owner: Value) -> Value:
    """The value of an index.  An unknown value whose name ends in "mask" is assumed to be a mask."""
    name = index.id if isinstance(index, ast.Name) else index.attr if isinstance(index, ast.Attribute) else ""
    if not name.lower().endswith(("mask", "masks")):
        return value
    if value.is_tensor and value.dtype is None:
        return replace(value.at_most(Sure.LIKELY), dtype="bool")
    if value.sort is Sort.UNKNOWN and owner.is_tensor:
        condition = value.optional or Condition(ConditionKind.MASK, name)
        return replace(tensor(Sure.LIKELY, "bool"), optional=condition)
    return value


def _index_value(frame: Frame, node: ast.Subscript, index: ast.expr, owner: Value) -> Value:
    if not isinstance(index, ast.Slice):
        return frame.evaluate(index)
    for bound in (index.lower, index.upper, index.step):
        value = frame.evaluate(bound)
        if bound is not None and value.is_tensor:
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=owner.sure)
    return CONSTANT


def _element(owner: Value, index: ast.expr) -> Value:
    if isinstance(index, ast.Slice):
        return replace(owner, elements=None, element=owner.item(), keys=())
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        key: object = -index.operand.value if isinstance(index.operand.value, int) else None
    else:
        key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int) and owner.elements is not None and -len(owner.elements) <= key < len(owner.elements):
        return owner.elements[key]
    if isinstance(key, str):
        return dict(owner.keys).get(key, owner.element or UNKNOWN)
    return owner.item()
