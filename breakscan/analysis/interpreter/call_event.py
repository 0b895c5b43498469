"""The event of a call."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.analysis.interpreter.arguments import Arguments
from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import UNKNOWN, Sure, Tensor
from breakscan.rulebook.events import EventKind


def emit_call(frame: Frame, node: ast.Call, callee: str, arguments: Arguments, sure: Sure, untraced: str = "") -> None:
    """Emits a call, with its argument 0 as the operand.  ``untraced`` is the form of a call that Dynamo was measured
    not to trace."""
    form = untraced
    if untraced and any(frame.program.rules.names(kind, callee) for kind in (EventKind.CALL, EventKind.ENTER)):
        form = ""
    if not frame.wants(EventKind.CALL, callee, form):
        return
    operand = arguments.get(0) or UNKNOWN
    tensors = [v.sure for v in arguments.values() if isinstance(v, Tensor)]
    if isinstance(operand, Tensor) and len(tensors) > 1:
        # Rules may demand any argument to be a tensor: the least sure of them speaks for all.
        operand = replace(operand, sure=min(tensors))
    frame.emit(
        EventKind.CALL,
        node,
        form=form,
        callee=callee,
        operand=operand,
        arguments=arguments.patterns(),
        sure=Sure.LIKELY if arguments.spread else sure,
    )
