"""The first touch of a recurrent module: Dynamo gives a function up where it reads one, whatever for."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import CONSTANT, Module, Sure, Value
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts.not_measured import RECURRENT_MODULES

_TOUCHED = "<recurrent>"
"""A key of the names of a frame that no program can have."""


def touch(frame: Frame, node: ast.expr, value: Module) -> None:
    """Emits that a recurrent module is read, unless that has ended the graph already."""
    if frame.silent or _TOUCHED in frame.names:
        return
    kinds = [_kind(frame, one) for one in value.choices or (value,)]
    kind = next((one for one in kinds if one is not None), None)
    if kind is None:
        return
    sure = Sure.CERTAIN if None not in kinds else Sure.LIKELY
    frame.emit(EventKind.READ, node, callee=kind, operand=value, sure=min(sure, value.sure))
    frame.names[_TOUCHED] = CONSTANT


def _kind(frame: Frame, value: Value) -> str | None:
    """The class of torch that a recurrent module is an instance of."""
    if not isinstance(value, Module):
        return None
    names = frame.program.project.outside_bases(value.info) if value.info is not None else [value.name or ""]
    return next((name for name in names if name in RECURRENT_MODULES), None)
