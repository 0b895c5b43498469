"""Calls in code that sets an object up: which of them show what the object holds."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.frame import Frame


def sets_up(frame: Frame, node: ast.expr) -> bool:
    """Whether a call in code that sets an object up grows a container, or is a method that its own file defines."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute):
        return False
    if isinstance(func.value, ast.Name) and frame.function is not None and frame.function.owner is not None:
        method = frame.program.project.method(frame.function.owner, func.attr)
        return method is None or method.index is frame.index
    return isinstance(func.value, ast.Name | ast.Attribute)


def store_keywords(frame: Frame, call: ast.Call) -> None:
    """``self.register(part=part)``, where the method does ``setattr(self, name, value)`` with what it is given."""
    func = call.func
    owner = frame.function.owner if frame.function is not None else None
    if (
        owner is None
        or not call.keywords
        or not isinstance(func, ast.Attribute)
        or not isinstance(func.value, ast.Name)
    ):
        return
    method = frame.program.project.method(owner, func.attr)
    if method is None or method.node.args.kwarg is None:
        return
    called = {n.func.id for n in method.own_nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    if "setattr" in called:
        for keyword in call.keywords:
            if keyword.arg is not None:
                frame.program.attributes.store(owner, keyword.arg, frame.evaluate(keyword.value))
