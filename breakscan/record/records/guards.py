"""Guards, and the recompiles that they cause."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.records.source import Code, StackFrame


@dataclass(frozen=True, slots=True)
class FailedGuard:
    """The guard of one compiled version that did not hold.  ``executed`` is the number of guards checked up to
    it, ``new`` the value that it met, in words."""

    compile_id: str
    text: str
    executed: int
    new: str | None
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class RecompileSeen:
    """A frame is compiled again, since no version of it fits.  ``stack`` is that of the call; ``cut`` says that its two
    innermost frames are missing, as in torch's trace."""

    compile_id: str | None
    frame: Code
    guards: tuple[FailedGuard, ...]
    stack: tuple[StackFrame, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard of a compiled frame: its kind (``TENSOR_MATCH``), what is checked, the line of the program that asked for
    it, where torch says, and Dynamo's name for what it is about, such as ``L['x']``."""

    kind: str
    text: str
    line: StackFrame | None
    subject: str | None


@dataclass(frozen=True, slots=True)
class GuardsBuilt:
    """The guards of a compiled frame, and the seconds that checking all of them takes.  The structured trace names
    neither the frame nor the lines nor that time."""

    compile_id: str | None
    frame: Code | None
    guards: tuple[Guard, ...]
    check_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ShapeSpecialised:
    """A size that was dynamic became a constant: its symbol, the inputs that it stands for, its value, and the traced
    stack that needed it.  ``asked_by`` names what asked for it in torch: ``guard_int``, ``guard_bool``, ``expect_true``
    (an operation whose operands must match)."""

    compile_id: str
    symbol: str
    sources: tuple[str, ...]
    value: str
    reason: str
    asked_by: str | None
    stack: tuple[StackFrame, ...]
