"""What was compiled, and what ended it."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.records.source import Code, StackFrame


@dataclass(frozen=True, slots=True)
class CompileCalled:
    """``torch.compile`` was asked for something: its name, its code, and the stack of the call.  ``key`` is by which
    ``CallsRan`` names it; ``backend`` as the program named it.  ``settings`` are other arguments of
    ``torch.compile``, as Python writes them: ``dynamic``, ``mode``, ``options``."""

    target: str
    code: Code | None
    stack: tuple[StackFrame, ...]
    key: int
    backend: str | None
    fullgraph: bool
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class CompileAsked:
    """``--compile`` asks for a name, as ``module:name``."""

    target: str


@dataclass(frozen=True, slots=True)
class CompileMet:
    """What became of the name that ``--compile`` asks for: compiled, or not, for a ``problem`` in words.  ``names`` are
    those that could have been meant."""

    target: str
    problem: str | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageInstalled:
    """Functions whose compiled code was made by an earlier process, and the stack that asked for it."""

    codes: tuple[Code, ...]
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class CompileStarted:
    """Dynamo starts on a frame: the stack above it, outermost first, and its code."""

    compile_id: str
    code: Code
    stack: tuple[StackFrame, ...]
    at: float


@dataclass(frozen=True, slots=True)
class CompileTimed:
    """What one frame cost to compile, in seconds, and ``phases`` of it by name, which overlap; ``ops`` of the graph
    that it gave, None without one.  ``guard_microseconds`` is what its guards take to check once with cold caches, as
    torch measured it; ``failed`` the type and text of what ended it."""

    compile_id: str
    seconds: float
    backward: bool
    ops: int | None
    at: float
    phases: dict[str, float]
    guards: int | None
    guard_microseconds: float | None
    restarts: tuple[str, ...]
    failed: str | None


@dataclass(frozen=True, slots=True)
class FrameEnded:
    """A frame that did not become compiled code: by an exception, or by a silent skip.

    ``raised`` says that the exception reaches the user, ``limit`` that it is the recompile limit, ``set_aside`` that it
    would have reached the user, had ``--keep-going`` not set ``fullgraph=True`` aside.
    """

    frame: Code
    error: str | None
    text: str
    stack: tuple[StackFrame, ...]
    raised: bool
    limit: bool
    set_aside: bool = False


@dataclass(frozen=True, slots=True)
class BreakSeen:
    """A graph break.  ``stack`` is that of the traced code, innermost last; ``frame`` is what was compiled;
    ``skipped`` says that the frame falls back to eager, ``raised`` that torch.compile raises, ``set_aside`` that it
    would raise, had ``--keep-going`` not set ``fullgraph=True`` aside."""

    compile_id: str | None
    frame: Code
    text: str
    stack: tuple[StackFrame, ...]
    skipped: bool
    raised: bool
    set_aside: bool = False
