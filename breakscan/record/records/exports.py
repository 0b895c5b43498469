"""What was exported, or compiled ahead of time."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.records.source import Code, StackFrame


@dataclass(frozen=True, slots=True)
class ExportIssue:
    """What ``draft_export`` found and went on from.  ``kind`` is torch's name for it (``DATA_DEPENDENT_ERROR``),
    ``about`` the expression or the operator; ``reason`` says more of some; ``count`` is how often it was met."""

    kind: str
    about: str
    reason: str
    stack: tuple[StackFrame, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ExportEnded:
    """A call of ``torch.export.export`` (``way`` is ``export``), ``draft_export``, AOTInductor (``aot_inductor``) or
    ``aot_compile`` of a compiled function, by the program itself, not by another such call.

    ``target`` is what was exported, ``code`` that of its ``forward``, ``stack`` that of the call, ``ops`` the
    operations of the result.  ``error`` is the type of the exception that ended it, ``text`` its text, ``failed_at``
    the stack below the call at which it failed.
    """

    way: str
    target: str
    code: Code | None
    stack: tuple[StackFrame, ...]
    strict: bool | None
    at: float
    seconds: float
    ops: int | None
    error: str | None
    text: str
    failed_at: tuple[StackFrame, ...]
    issues: tuple[ExportIssue, ...]
