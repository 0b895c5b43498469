"""Methods of the program's own classes that something else than a call of them runs: ``==``, ``len``, ``copy.copy``."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import Instance, Module, Value


def call_own_method(frame: Frame, node: ast.AST, owner: Value, name: str, *others: Value) -> Value | None:
    """What the method returns; None where the object is not one of the program's, or its class has no such method."""
    if not isinstance(owner, Instance | Module) or owner.info is None:
        return None
    method = frame.program.project.method(owner.info, name)
    return None if method is None else frame.program.call_function(frame, node, method, Arguments([owner, *others], {}))
