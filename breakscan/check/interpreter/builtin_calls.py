"""Evaluates calls of Python's builtins, computed names of attributes, and the formatting of numbers into text."""

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import replace

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.attributes import attribute_of, class_of_object, size_of
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.frame import Frame
from breakscan.check.project.index import BUILTINS
from breakscan.rulebook.events import FORMS, Argument, EventKind


# Methods of the program's own classes that something else than a call of them runs: ``==``, ``len``, ``copy.copy``.
def call_own_method(frame: Frame, node: ast.AST, owner: av.Value, name: str, *others: av.Value) -> av.Value | None:
    """The value that the method returns; None if the object is not the program's, or its class has no such method."""
    if not isinstance(owner, av.Instance | av.Module) or owner.info is None:
        return None
    method = frame.program.project.method(owner.info, name)
    arguments = av.Arguments([owner, *others], {})
    return None if method is None else frame.program.call_function(frame, node, method, arguments)


# The formatting of numbers into text: f-strings, ``str.format`` and ``%``.
_CONTAINERS = frozenset({"dict", "list", "object", "set", "tuple"})
_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\-+\s]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<type>[a-zA-Z%])")
_OF_NUMBERS = "diouxXeEfFgG"
_BUILTINS = {ord("r"): "repr", ord("s"): "str", ord("a"): "ascii"}
FORMATS = "str.__format__"


def emit_field(frame: Frame, node: ast.FormattedValue, value: av.Value) -> None:
    """Emits a field of an f-string: ``!r`` and ``!s`` call the builtin, a plain one waits until the graph has run."""
    callee = _BUILTINS.get(node.conversion, FORMATS)
    if isinstance(value, av.Tensor) or (callee == FORMATS and isinstance(value, av.TensorNumber | av.DataSize)):
        _emit(frame, node.value, value, callee, has_specification=node.format_spec is not None)


def emit_format_fields(frame: Frame, node: ast.Call, text: object, arguments: av.Arguments) -> None:
    """Emits the fields of ``text.format(...)`` that have a format specification."""
    for value in _specified(text, arguments) if isinstance(text, str) else ():
        if isinstance(value, av.Tensor | av.TensorNumber | av.DataSize):
            _emit(frame, node, value, FORMATS, has_specification=True)


def _specified(text: str, arguments: av.Arguments) -> Iterator[av.Value]:
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
            yield given or av.UNKNOWN


def emit_percent(frame: Frame, node: ast.BinOp, text: str, given: av.Value) -> None:
    """Emits ``"..." % given``, and the numbers that it formats as numbers."""
    operand = given if not isinstance(given, av.Instance) or _is_plain(frame, given) else av.UNKNOWN
    argument = Argument(0, None, given.words())
    frame.emit(EventKind.CALL, node, callee="str.__mod__", operand=operand, arguments=(argument,))
    wanted = [match for match in _CONVERSION.finditer(text) if match["type"] != "%"]
    parts = av.elements_of(given) or (given,)
    if len(parts) == len(wanted):
        for match, value in zip(wanted, parts, strict=True):
            if match["type"] in _OF_NUMBERS and isinstance(value, av.Tensor | av.TensorNumber | av.DataSize):
                _emit(frame, node, value, FORMATS, has_specification=True)


def _emit(frame: Frame, node: ast.expr, value: av.Value, callee: str, *, has_specification: bool) -> None:
    arguments = [Argument(0, None, value.words())]
    if has_specification:
        arguments.append(Argument(1, "format_spec", frozenset({"constant"})))
    frame.emit(EventKind.CALL, node, callee=callee, operand=value, arguments=tuple(arguments))


def _is_plain(frame: Frame, given: av.Instance) -> bool:
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
    known = av.literal_of(value) if value is not None else None
    return str(known) if isinstance(known, str | int) and not getattr(value, "by_default", False) else ANY


def attribute_matching(frame: Frame, owner: av.Value, pattern: str) -> av.Value:
    """Any of the attributes of an object whose names match."""
    if not isinstance(owner, av.Module | av.Instance) or owner.info is None:
        return av.UNKNOWN
    found = [
        one if isinstance(one, av.Value) else av.Function(info=one, bound=None if one.is_static else owner)
        for one in frame.program.attributes.matching(owner.info, pattern)
    ]
    return av.at_most(av.join_all(found), av.Sure.LIKELY) if found else av.UNKNOWN


_CALLS_METHOD = {"hash": "__hash__", "len": "__len__", "repr": "__repr__"}
"""Builtins that call a method of an object of the program."""
_CONVERSIONS = FORMS[EventKind.CONVERT]


def builtin(frame: Frame, node: ast.Call, name: str, arguments: av.Arguments) -> av.Value:
    first = arguments.positional[0] if arguments.positional else av.UNKNOWN
    if name in _CONVERSIONS:
        if isinstance(first, av.Tensor | av.TensorNumber | av.DrawnNumber | av.DataSize):
            frame.emit(EventKind.CONVERT, node, form=name, operand=first)
        if isinstance(first, av.Tensor | av.TensorNumber):
            return av.TensorNumber(first.sure)
        if isinstance(first, av.DataSize):
            return first
        return av.SIZE if isinstance(first, av.Size) else av.CONSTANT
    if name == "sorted":
        emit_sort(frame, node, first, arguments)
    elif name != "dir" or not isinstance(first, av.Namespace | av.Class):  # the names of a module or a class are known
        emit_call(frame, node, name, arguments, av.Sure.CERTAIN)
    if name in _CALLS_METHOD and (result := call_own_method(frame, node, first, _CALLS_METHOD[name])) is not None:
        return result
    return _result(frame, node, name, first, arguments)


def emit_sort(frame: Frame, node: ast.Call, values: av.Value, arguments: av.Arguments) -> None:
    """Emits a sort by what it compares: the elements, or what the key gives for them."""
    item = av.iterated(values)
    key = arguments.named.get("key", av.NONE)
    compared = (
        item if isinstance(key, av.NoneValue) else frame.program.apply(frame, node, key, av.Arguments([item], {}))
    )
    tensors = list(_tensors_in(compared))
    if tensors:
        emit_call(frame, node, "sorted", av.Arguments([av.container_of(tensors[0])], {}), av.Sure.CERTAIN)


def _tensors_in(value: av.Value) -> Iterator[av.Tensor]:
    """A value that is a tensor, or the tensors in a container that is compared element by element."""
    if isinstance(value, av.Tensor):
        yield value
    for part in av.elements_of(value) or ():
        yield from _tensors_in(part)


def _result(frame: Frame, node: ast.Call, name: str, first: av.Value, arguments: av.Arguments) -> av.Value:
    match name:
        case "len":
            return size_of(first) if isinstance(first, av.Tensor) else av.CONSTANT
        case "list" | "tuple" | "set" | "sorted" | "reversed" | "iter":
            if not arguments.positional:
                return av.Container(keys=tuple(arguments.named.items()))
            is_list = isinstance(first, av.Container) and not first.mapping
            return first if is_list else av.container_of(av.iterated(first))
        case "dict":
            if not arguments.positional:
                return av.Container(keys=tuple(arguments.named.items()), mapping=True)
            if isinstance(first, av.Container) and first.mapping:
                return first
            pair = av.elements_of(av.item_of(first)) or ()
            return av.container_of(pair[1] if len(pair) == 2 else av.UNKNOWN, mapping=True)
        case "slice":  # it reads its bounds, as `x[a:b]` does
            for bound in arguments.positional:
                if isinstance(bound, av.Tensor):
                    frame.emit(EventKind.INDEX, node, form="slice", operand=bound, sure=bound.sure)
            return av.CONSTANT
        case "range":
            known = all(isinstance(v, av.Constant) for v in arguments.positional)
            return av.container_of(av.CONSTANT if known else av.SIZE)
        case "enumerate":
            return av.container_of(av.container([av.CONSTANT, av.iterated(first)]))
        case "zip":
            return av.container_of(av.container([av.iterated(v) for v in arguments.positional]))
        case "max" | "min":
            values = arguments.positional if len(arguments.positional) > 1 else [av.item_of(first)]
            result = av.join_all(values)
            if isinstance(result, av.Tensor) and isinstance(first, av.Tensor):
                return replace(result, zero_dim=True)
            return result
        case "sum" | "next":
            return av.iterated(first)
        case "abs" | "round" | "pow":
            return first
        case "any" | "all":
            inside = av.item_of(first)
            is_read = isinstance(first, av.Tensor) or isinstance(inside, av.Tensor)
            return av.TensorNumber(inside.sure) if is_read else av.CONSTANT
        case "str" | "repr" | "isinstance" | "issubclass" | "hasattr" | "callable" | "id" | "print":
            return av.CONSTANT
        case "type":
            if isinstance(first, av.Instance | av.Module) and first.info is not None and len(node.args) == 1:
                return class_of_object(first, first.info)
            return av.TENSOR_CLASS if isinstance(first, av.Tensor) and not first.parameter else av.CONSTANT
        case "getattr":
            key = computed_name(frame, node.args[1]) if len(node.args) > 1 else None
            if key is None:
                return av.UNKNOWN
            return attribute_matching(frame, first, key) if ANY in key else attribute_of(frame, node, first, key)
        case "setattr":
            key = computed_name(frame, node.args[1]) if len(node.args) == 3 else None
            if key is not None and isinstance(first, av.Module | av.Instance) and first.info is not None:
                frame.program.attributes.store(first.info, key, arguments.positional[2])
            return av.NONE
        case "super":
            owner = frame.function.owner if frame.function is not None else None
            return frame.program.attributes.base_instance(owner) if owner is not None else av.UNKNOWN
        case "map":
            items = [av.item_of(v) for v in arguments.positional[1:]]
            return av.container_of(frame.program.apply(frame, node, first, av.Arguments(items, {})))
    return av.UNKNOWN
