"""The formatting of numbers into text: f-strings, ``str.format`` and ``%``."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import UNKNOWN, DataSize, Instance, Tensor, TensorNumber, Value, elements_of
from breakscan.check.project.index import BUILTINS
from breakscan.rulebook.events import Argument, EventKind

_CONTAINERS = frozenset({"dict", "list", "object", "set", "tuple"})
_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\-+\s]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<type>[a-zA-Z%])")
_OF_NUMBERS = "diouxXeEfFgG"
_BUILTINS = {ord("r"): "repr", ord("s"): "str", ord("a"): "ascii"}
FORMATS = "str.__format__"


def emit_field(frame: Frame, node: ast.FormattedValue, value: Value) -> None:
    """Emits a field of an f-string.  ``!r`` and ``!s`` call the builtin; a plain field is put off until the graph has
    run."""
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
    """Whether an object is one of a class that Dynamo has no text for: it knows enums, named tuples, and subclasses of
    numbers and texts."""
    if given.info is None or given.maybe_none:
        return False
    project = frame.program.project
    chain = project.bases_of(given.info)
    if project.outside_bases(given.info) or any("__rmod__" in base.methods for base in chain):
        return False
    return not any(base in BUILTINS and base not in _CONTAINERS for info in chain for base in info.bases)
