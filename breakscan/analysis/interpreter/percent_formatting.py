"""The formatting of text with ``%``."""

from __future__ import annotations

import ast

from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import UNKNOWN, Instance, Value
from breakscan.analysis.project.index import BUILTINS
from breakscan.rulebook.events import Argument, EventKind

_CONTAINERS = frozenset({"dict", "list", "object", "set", "tuple"})


def emit_percent(frame: Frame, node: ast.BinOp, given: Value) -> None:
    """Emits ``"..." % given``."""
    operand = given if not isinstance(given, Instance) or _is_plain(frame, given) else UNKNOWN
    argument = Argument(0, None, given.words())
    frame.emit(EventKind.CALL, node, callee="str.__mod__", operand=operand, arguments=(argument,))


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
