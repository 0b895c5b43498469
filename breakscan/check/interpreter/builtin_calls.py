"""Evaluates calls of Python's builtins."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.attributes import attribute_of, class_of_object
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.computed_names import ANY, attribute_matching, computed_name
from breakscan.check.interpreter.data_sizes import size_of
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.joins import item_of, iterated, join_all
from breakscan.check.interpreter.own_methods import call_own_method
from breakscan.check.interpreter.values import (
    CONSTANT,
    NONE,
    SIZE,
    UNKNOWN,
    Class,
    Constant,
    Container,
    DataSize,
    DrawnNumber,
    Instance,
    Module,
    Namespace,
    NoneValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Value,
    container,
    container_of,
    elements_of,
)
from breakscan.rulebook.events import FORMS, EventKind

_CALLS_METHOD = {"hash": "__hash__", "len": "__len__", "repr": "__repr__"}
"""Builtins that call a method of an object of the program."""
_CONVERSIONS = FORMS[EventKind.CONVERT]


def builtin(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    """The result of a builtin."""
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if name in _CONVERSIONS:
        if isinstance(first, Tensor | TensorNumber | DrawnNumber | DataSize):
            frame.emit(EventKind.CONVERT, node, form=name, operand=first)
        if isinstance(first, Tensor | TensorNumber):
            return TensorNumber(first.sure)
        if isinstance(first, DataSize):
            return first
        return SIZE if isinstance(first, Size) else CONSTANT
    if name == "sorted":
        emit_sort(frame, node, first, arguments)
    elif name != "dir" or not isinstance(first, Namespace | Class):  # the names of a module or a class are known
        emit_call(frame, node, name, arguments, Sure.CERTAIN)
    if name in _CALLS_METHOD and (result := call_own_method(frame, node, first, _CALLS_METHOD[name])) is not None:
        return result
    handler = _BUILTIN_RESULTS.get(name)
    return handler(frame, first, arguments, node) if handler else UNKNOWN


def emit_sort(frame: Frame, node: ast.Call, values: Value, arguments: Arguments) -> None:
    """Emits a sort by what it compares: the elements, or what the key gives for them."""
    item = iterated(values)
    key = arguments.named.get("key", NONE)
    compared = item if isinstance(key, NoneValue) else frame.apply(node, key, Arguments([item], {}))
    tensors = list(_tensors_in(compared))
    if tensors:
        emit_call(frame, node, "sorted", Arguments([container_of(tensors[0])], {}), Sure.CERTAIN)


def _tensors_in(value: Value) -> Iterator[Tensor]:
    """A value that is a tensor, or the tensors in a container that is compared element by element."""
    if isinstance(value, Tensor):
        yield value
    for part in elements_of(value) or ():
        yield from _tensors_in(part)


def _result_len(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return size_of(first) if isinstance(first, Tensor) else CONSTANT


def _result_sequence(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    if not arguments.positional:
        return Container(keys=tuple(arguments.named.items()))
    if isinstance(first, Container) and not first.mapping:
        return first
    return container_of(iterated(first))


def _result_dict(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    if not arguments.positional:
        return Container(keys=tuple(arguments.named.items()), mapping=True)
    if isinstance(first, Container) and first.mapping:
        return first
    pair = item_of(first)
    elements = elements_of(pair) or ()
    return container_of(elements[1] if len(elements) == 2 else UNKNOWN, mapping=True)


def _result_range(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(CONSTANT if all(isinstance(v, Constant) for v in arguments.positional) else SIZE)


def _result_enumerate(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(container([CONSTANT, iterated(first)]))


def _result_zip(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(container([iterated(v) for v in arguments.positional]))


def _result_extreme(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    values = arguments.positional if len(arguments.positional) > 1 else [item_of(first)]
    result = join_all(values) if values else UNKNOWN
    return replace(result, zero_dim=True) if isinstance(result, Tensor) and isinstance(first, Tensor) else result


def _result_first(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return first


def _result_truth(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    inside = item_of(first)
    return TensorNumber(inside.sure) if isinstance(first, Tensor) or isinstance(inside, Tensor) else CONSTANT


def _result_constant(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return CONSTANT


def _result_type(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    if isinstance(first, Instance | Module) and first.info is not None and len(node.args) == 1:
        return class_of_object(first, first.info)
    return CONSTANT


def _result_slice(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    """``slice(a, b)`` reads its bounds, as ``x[a:b]`` does."""
    for bound in arguments.positional:
        if isinstance(bound, Tensor):
            frame.emit(EventKind.INDEX, node, form="slice", operand=bound, sure=bound.sure)
    return CONSTANT


def _result_next(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return iterated(first)


def _result_getattr(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    name = computed_name(frame, node.args[1]) if len(node.args) > 1 else None
    if name is None:
        return UNKNOWN
    return attribute_matching(frame, first, name) if ANY in name else attribute_of(frame, node, first, name)


def _result_setattr(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    name = computed_name(frame, node.args[1]) if len(node.args) == 3 else None
    if name is not None and isinstance(first, Module | Instance) and first.info is not None:
        frame.program.attributes.store(first.info, name, arguments.positional[2])
    return NONE


def _result_super(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    owner = frame.function.owner if frame.function is not None else None
    return frame.program.attributes.base_instance(owner) if owner is not None else UNKNOWN


def _result_map(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    items = [item_of(v) for v in arguments.positional[1:]]
    return container_of(frame.apply(node, first, Arguments(items, {})))


_BUILTIN_RESULTS: dict[str, Callable[[Frame, Value, Arguments, ast.Call], Value]] = {
    "len": _result_len,
    "list": _result_sequence,
    "tuple": _result_sequence,
    "set": _result_sequence,
    "dict": _result_dict,
    "slice": _result_slice,
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
    "type": _result_type,
    "print": _result_constant,
    "getattr": _result_getattr,
    "setattr": _result_setattr,
    "super": _result_super,
    "map": _result_map,
}
