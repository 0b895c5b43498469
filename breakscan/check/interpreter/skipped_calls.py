"""Calls of what Dynamo does not trace by its own rules."""

from __future__ import annotations

import ast
from functools import cache

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import Instance, Sure
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts.numpy_functions import skipped

SKIPPED = "skipped"


def emit_skippable(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments, sure: Sure = Sure.CERTAIN) -> None:
    """Emits a call by its dotted name."""
    known = _how_sure(frame.api.version, dotted)
    if known is None:
        emit_call(frame, node, dotted, arguments, sure)
    else:
        emit_call(frame, node, dotted, arguments, min(sure, known), SKIPPED)


def is_skipped(frame: Frame, dotted: str) -> bool:
    """Whether the rules of Dynamo say that a name is not traced."""
    return skipped(frame.api.version).by_rule(dotted)


@cache
def _how_sure(version: str, dotted: str) -> Sure | None:
    """How well it is known that a name is not traced."""
    known = skipped(version)
    if known.by_rule(dotted):
        return Sure.CERTAIN
    return Sure.LIKELY if known.in_practice(dotted) else None


def emit_iteration(frame: Frame, node: ast.expr, iterable: Instance) -> None:
    """Emits that an object of a class is iterated over that Dynamo does not trace."""
    name = f"{iterable.name}.__iter__"
    if iterable.info is None and not isinstance(node, ast.Call) and skipped(frame.api.version).by_rule(name):
        frame.emit(EventKind.CALL, node, form=SKIPPED, callee=name, operand=iterable, sure=iterable.sure)
