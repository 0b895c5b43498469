"""Evaluates calls of Python's builtins."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from breakscan.analysis.interpreter.arguments import Arguments
from breakscan.analysis.interpreter.attributes import attribute_of
from breakscan.analysis.interpreter.call_event import emit_call
from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import (
    CONSTANT,
    SHAPE,
    UNKNOWN,
    Sort,
    Sure,
    Value,
    container,
    container_of,
    join_all,
    number,
)
from breakscan.rulebook.events import FORMS, EventKind

_CONVERSIONS = FORMS[EventKind.CONVERT]


def builtin(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    """The result of a builtin."""
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if name in _CONVERSIONS:
        if first.is_tensor:
            frame.emit(EventKind.CONVERT, node, form=name, operand=first)
        if first.sort in (Sort.TENSOR, Sort.NUMBER):
            return number(first.sure)
        return SHAPE if first.sort is Sort.SHAPE else CONSTANT
    emit_call(frame, node, name, arguments, Sure.CERTAIN)
    handler = _BUILTIN_RESULTS.get(name)
    return handler(frame, first, arguments, node) if handler else UNKNOWN


def _result_len(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return SHAPE if first.is_tensor else CONSTANT


def _result_sequence(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    if not arguments.positional:
        return Value(Sort.CONTAINER, keys=tuple(arguments.named.items()))
    if first.sort is Sort.CONTAINER and not first.mapping:
        return first
    return container_of(first.iterated())


def _result_dict(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    if not arguments.positional:
        return Value(Sort.CONTAINER, keys=tuple(arguments.named.items()), mapping=True)
    if first.mapping:
        return first
    pair = first.item()
    value = pair.elements[1] if pair.elements is not None and len(pair.elements) == 2 else UNKNOWN
    return replace(container_of(value), mapping=True)


def _result_range(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(CONSTANT if all(v.sort is Sort.CONSTANT for v in arguments.positional) else SHAPE)


def _result_enumerate(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(container([CONSTANT, first.iterated()]))


def _result_zip(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(container([v.iterated() for v in arguments.positional]))


def _result_extreme(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    values = arguments.positional if len(arguments.positional) > 1 else [first.item()]
    result = join_all(values) if values else UNKNOWN
    return replace(result, zero_dim=True) if result.is_tensor and first.is_tensor else result


def _result_first(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return first


def _result_truth(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    inside = first.item()
    return number(inside.sure) if first.is_tensor or inside.is_tensor else CONSTANT


def _result_constant(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return CONSTANT


def _result_next(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return first.iterated()


def _result_getattr(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    name = node.args[1] if len(node.args) > 1 else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return attribute_of(frame, node, first, name.value)
    return UNKNOWN


def _result_super(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    owner = frame.function.owner if frame.function is not None else None
    return frame.program.attributes.base_instance(owner) if owner is not None else UNKNOWN


def _result_map(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    items = [v.item() for v in arguments.positional[1:]]
    return container_of(frame.apply(node, first, Arguments(items, {})))


_BUILTIN_RESULTS: dict[str, Callable[[Frame, Value, Arguments, ast.Call], Value]] = {
    "len": _result_len,
    "list": _result_sequence,
    "tuple": _result_sequence,
    "set": _result_sequence,
    "dict": _result_dict,
    "slice": _result_constant,
    "sorted": _result_sequence,
    "reversed": _result_sequence,
    "iter": _result_sequence,
    "range": _result_range,
    "enumerate": _result_enumerate,
    "zip": _result_zip,
    "max": _result_extreme,
    "min": _result_extreme,
    "sum": _result_next,
    "next": _result_next,
    "abs": _result_first,
    "round": _result_first,
    "pow": _result_first,
    "any": _result_truth,
    "all": _result_truth,
    "str": _result_constant,
    "repr": _result_constant,
    "isinstance": _result_constant,
    "issubclass": _result_constant,
    "hasattr": _result_constant,
    "callable": _result_constant,
    "id": _result_constant,
    "type": _result_constant,
    "print": _result_constant,
    "getattr": _result_getattr,
    "super": _result_super,
    "map": _result_map,
}
