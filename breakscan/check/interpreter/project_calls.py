"""The calls of a program's own functions that rules of the project name.  They are followed, and no event otherwise."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import Sure
from breakscan.check.project.index import ClassInfo, FunctionInfo
from breakscan.rulebook.events import EventKind


def emit_project_call(frame: Frame, node: ast.Call, called: FunctionInfo | ClassInfo, arguments: Arguments) -> None:
    """Emits the call if a rule wants it, under the name of the definition or the one that it is imported by."""
    if not frame.program.rules.of_projects:
        return
    for name in (f"{called.index.name}.{called.qualname}", frame.index.dotted(node.func)):
        if name and frame.wants(EventKind.CALL, name):
            emit_call(frame, node, name, arguments, Sure.CERTAIN)
            return
