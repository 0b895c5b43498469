"""Evaluates calls of Python's builtins, computed names of attributes, and the formatting of numbers into text."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import replace

from breakscan.check.interpreter.attributes import attribute_of, class_of_object, size_of
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import (
    CONSTANT,
    NONE,
    SIZE,
    UNKNOWN,
    Arguments,
    Class,
    Constant,
    Container,
    DataSize,
    DrawnNumber,
    Function,
    Instance,
    Module,
    Namespace,
    NoneValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Value,
    at_most,
    container,
    container_of,
    elements_of,
    item_of,
    iterated,
    join_all,
    literal_of,
)
from breakscan.check.project.index import BUILTINS
from breakscan.rulebook.events import FORMS, Argument, EventKind


# Methods of the program's own classes that something else than a call of them runs: ``==``, ``len``, ``copy.copy``.
def call_own_method(frame: Frame, node: ast.AST, owner: Value, name: str, *others: Value) -> Value | None:
    """The value that the method returns; None if the object is not the program's, or its class has no such method."""
    if not isinstance(owner, Instance | Module) or owner.info is None:
        return None
    method = frame.program.project.method(owner.info, name)
    return None if method is None else frame.program.call_function(frame, node, method, Arguments([owner, *others], {}))


# The formatting of numbers into text: f-strings, ``str.format`` and ``%``.
_CONTAINERS = frozenset({"dict", "list", "object", "set", "tuple"})
_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\-+\s]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<type>[a-zA-Z%])")
_OF_NUMBERS = "diouxXeEfFgG"
_BUILTINS = {ord("r"): "repr", ord("s"): "str", ord("a"): "ascii"}
FORMATS = "str.__format__"


def emit_field(frame: Frame, node: ast.FormattedValue, value: Value) -> None:
    """Emits a field of an f-string: ``!r`` and ``!s`` call the builtin, a plain one waits until the graph has run."""
    callee = _BUILTINS.get(node.conversion, FORMATS)
    if isinstance(value, Tensor) or (callee == FORMATS and isinstance(value, TensorNumber | DataSize)):
        _emit(frame, node.value, value, callee, has_specification=node.format_spec is not None)


def emit_format_fields(frame: Frame, node: ast.Call, text: object, arguments: Arguments) -> None:
    """Emits the fields of ``text.format(...)`` that have a format specification."""
    for value in _specified(text, arguments) if isinstance(text, str) else ():
        if isinstance(value, Tensor | TensorNumber | DataSize):
            _emit(frame, node, value, FORMATS, has_specification=True)


def _specified(text: str, arguments: Arguments) -> Iterator[Value]:
    number = 0
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return
    for _, name, specification, conversion in fields:
        if name is None:
            continue
        key: str | int = int(name) if name.isdigit() else name or number
        number += not name
        if specification and not conversion:
            given = arguments.get(key) if isinstance(key, int) else arguments.named.get(key)
            yield given or UNKNOWN


def emit_percent(frame: Frame, node: ast.BinOp, text: str, given: Value) -> None:
    """Emits ``"..." % given``, and the numbers that it formats as numbers."""
    operand = given if not isinstance(given, Instance) or _is_plain(frame, given) else UNKNOWN
    argument = Argument(0, None, given.words())
    frame.emit(EventKind.CALL, node, callee="str.__mod__", operand=operand, arguments=(argument,))
    wanted = [match for match in _CONVERSION.finditer(text) if match["type"] != "%"]
    parts = elements_of(given) or (given,)
    if len(parts) == len(wanted):
        for match, value in zip(wanted, parts, strict=True):
            if match["type"] in _OF_NUMBERS and isinstance(value, Tensor | TensorNumber | DataSize):
                _emit(frame, node, value, FORMATS, has_specification=True)


def _emit(frame: Frame, node: ast.expr, value: Value, callee: str, *, has_specification: bool) -> None:
    arguments = [Argument(0, None, value.words())]
    if has_specification:
        arguments.append(Argument(1, "format_spec", frozenset({"constant"})))
    frame.emit(EventKind.CALL, node, callee=callee, operand=value, arguments=tuple(arguments))


def _is_plain(frame: Frame, given: Instance) -> bool:
    """True if Dynamo has no text for an object: it has one for enums, named tuples, and kinds of numbers and texts."""
    if given.info is None or given.maybe_none:
        return False
    project = frame.program.project
    chain = project.bases_of(given.info)
    if project.outside_bases(given.info) or any("__rmod__" in base.methods for base in chain):
        return False
    return not any(base in BUILTINS and base not in _CONTAINERS for info in chain for base in info.bases)


# Names of attributes that the program computes: ``getattr(self, f"layer{i}")``.
ANY = "*"
"""A placeholder for the parts of a name that are not known."""

_PERCENT = re.compile(r"%[-+0-9.]*[a-zA-Z]")
_FIELD = re.compile(r"\{[^{}]*\}")


def computed_name(frame: Frame, node: ast.expr) -> str | None:
    """The text of a node, with ``*`` for what is not known of it; None if nothing is known."""
    name = _text(frame, node)
    return name if name.strip(ANY) else None


def _text(frame: Frame, node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(frame, part) for part in parts)
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            return _known(frame, inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(frame, left) + _text(frame, right)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _PERCENT.sub(ANY, text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _FIELD.sub(ANY, text)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return _known(frame, inner)
        case ast.Name():
            return _known(frame, node)
    return ANY


def _known(frame: Frame, node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    value = frame.names.get(node.id) if isinstance(node, ast.Name) else None
    known = literal_of(value) if value is not None else None
    return str(known) if isinstance(known, str | int) and not getattr(value, "by_default", False) else ANY


def attribute_matching(frame: Frame, owner: Value, pattern: str) -> Value:
    """Any of the attributes of an object whose names match."""
    if not isinstance(owner, Module | Instance) or owner.info is None:
        return UNKNOWN
    found = [
        one if isinstance(one, Value) else Function(info=one, bound=None if one.is_static else owner)
        for one in frame.program.attributes.matching(owner.info, pattern)
    ]
    return at_most(join_all(found), Sure.LIKELY) if found else UNKNOWN


_CALLS_METHOD = {"hash": "__hash__", "len": "__len__", "repr": "__repr__"}
"""Builtins that call a method of an object of the program."""
_CONVERSIONS = FORMS[EventKind.CONVERT]


def builtin(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
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
    return _result(frame, node, name, first, arguments)


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


def _result(frame: Frame, node: ast.Call, name: str, first: Value, arguments: Arguments) -> Value:
    match name:
        case "len":
            return size_of(first) if isinstance(first, Tensor) else CONSTANT
        case "list" | "tuple" | "set" | "sorted" | "reversed" | "iter":
            if not arguments.positional:
                return Container(keys=tuple(arguments.named.items()))
            return first if isinstance(first, Container) and not first.mapping else container_of(iterated(first))
        case "dict":
            if not arguments.positional:
                return Container(keys=tuple(arguments.named.items()), mapping=True)
            if isinstance(first, Container) and first.mapping:
                return first
            pair = elements_of(item_of(first)) or ()
            return container_of(pair[1] if len(pair) == 2 else UNKNOWN, mapping=True)
        case "slice":  # it reads its bounds, as `x[a:b]` does
            for bound in arguments.positional:
                if isinstance(bound, Tensor):
                    frame.emit(EventKind.INDEX, node, form="slice", operand=bound, sure=bound.sure)
            return CONSTANT
        case "range":
            known = all(isinstance(v, Constant) for v in arguments.positional)
            return container_of(CONSTANT if known else SIZE)
        case "enumerate":
            return container_of(container([CONSTANT, iterated(first)]))
        case "zip":
            return container_of(container([iterated(v) for v in arguments.positional]))
        case "max" | "min":
            values = arguments.positional if len(arguments.positional) > 1 else [item_of(first)]
            result = join_all(values)
            if isinstance(result, Tensor) and isinstance(first, Tensor):
                return replace(result, zero_dim=True)
            return result
        case "sum" | "next":
            return iterated(first)
        case "abs" | "round" | "pow":
            return first
        case "any" | "all":
            inside = item_of(first)
            return TensorNumber(inside.sure) if isinstance(first, Tensor) or isinstance(inside, Tensor) else CONSTANT
        case "str" | "repr" | "isinstance" | "issubclass" | "hasattr" | "callable" | "id" | "print":
            return CONSTANT
        case "type":
            if isinstance(first, Instance | Module) and first.info is not None and len(node.args) == 1:
                return class_of_object(first, first.info)
            return CONSTANT
        case "getattr":
            key = computed_name(frame, node.args[1]) if len(node.args) > 1 else None
            if key is None:
                return UNKNOWN
            return attribute_matching(frame, first, key) if ANY in key else attribute_of(frame, node, first, key)
        case "setattr":
            key = computed_name(frame, node.args[1]) if len(node.args) == 3 else None
            if key is not None and isinstance(first, Module | Instance) and first.info is not None:
                frame.program.attributes.store(first.info, key, arguments.positional[2])
            return NONE
        case "super":
            owner = frame.function.owner if frame.function is not None else None
            return frame.program.attributes.base_instance(owner) if owner is not None else UNKNOWN
        case "map":
            items = [item_of(v) for v in arguments.positional[1:]]
            return container_of(frame.apply(node, first, Arguments(items, {})))
    return UNKNOWN
