"""The recording of a run: what each process of the user's program saw, as JSON lines on disk.

One file a process, one line a record, written at once with a single system call: whatever ends the process,
nothing that was recorded is lost.  Records hold strings and numbers only, never a tensor or a frame, so that
recording changes no lifetime.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIX = ".jsonl"
TORCH_IMPORTED = "torch-imported"
"""Name of the empty file that says that the program imported torch, whether or not it compiled anything."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A place in a stack.  Lines count from 1; columns are UTF-8 bytes and count from 0, as CPython has them;
    None where torch or Python does not say."""

    path: str
    line: int
    name: str
    column: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """A code object: its file, its first line, its name."""

    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The compiler was loaded in a process.  ``disabled_by`` names the variable that switches it off."""

    pid: int
    torch: str
    python: str
    torch_folder: str
    standard_library: str
    disabled_by: str | None
    profile_kept: bool


@dataclass(frozen=True, slots=True)
class HookInstalled:
    """Whether this torch has what a hook needs."""

    name: str
    available: bool


@dataclass(frozen=True, slots=True)
class HookFailed:
    """A hook of ours raised; the user's program did not notice."""

    name: str
    error: str


@dataclass(frozen=True, slots=True)
class CompileCalled:
    """``torch.compile`` was asked for something: its name, its code, and the stack of the call."""

    target: str
    code: Code | None
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class CompileStarted:
    """Dynamo starts on a frame: the stack above it, outermost first, and its code."""

    compile_id: str
    code: Code
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class BreakSeen:
    """A graph break.  ``stack`` is that of the traced code, innermost last; ``frame`` is what was compiled;
    ``skipped`` says that the frame is given up, ``raised`` that torch.compile raises."""

    compile_id: str | None
    frame: Code
    text: str
    stack: tuple[StackFrame, ...]
    skipped: bool
    raised: bool


@dataclass(frozen=True, slots=True)
class BreakTraced:
    """A graph break as the structured trace tells it: what there is where a torch lacks the better hook."""

    compile_id: str
    text: str


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
    """A frame is compiled again, since no version of it fits.  ``stack`` is that of the call."""

    compile_id: str | None
    frame: Code
    guards: tuple[FailedGuard, ...]
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class RecompileTraced:
    """A recompile as the structured trace tells it."""

    compile_id: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrameEnded:
    """A frame that did not become compiled code: by an exception, or by a silent skip.

    ``raised`` says that the exception reaches the user, ``limit`` that it is the recompile limit.
    """

    frame: Code
    error: str | None
    text: str
    stack: tuple[StackFrame, ...]
    raised: bool
    limit: bool


@dataclass(frozen=True, slots=True)
class GraphCompiled:
    """A graph went to the backend and came back: its operations, and the devices of its inputs in words."""

    compile_id: str | None
    frame: Code
    ops: int
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphTraced:
    """A graph as the structured trace tells it."""

    compile_id: str


@dataclass(frozen=True, slots=True)
class CompileTimed:
    """What one frame cost to compile, in seconds; ``ops`` of the graph that it gave, None without one."""

    compile_id: str
    seconds: float
    backward: bool
    ops: int | None


Record = (
    ProcessStarted
    | HookInstalled
    | HookFailed
    | CompileCalled
    | CompileStarted
    | BreakSeen
    | BreakTraced
    | RecompileSeen
    | RecompileTraced
    | FrameEnded
    | GraphCompiled
    | GraphTraced
    | CompileTimed
)

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        ProcessStarted,
        HookInstalled,
        HookFailed,
        CompileCalled,
        CompileStarted,
        BreakSeen,
        BreakTraced,
        RecompileSeen,
        RecompileTraced,
        FrameEnded,
        GraphCompiled,
        GraphTraced,
        CompileTimed,
    )
}


class RecordingWriter:
    """Appends records to the file of the process that calls, also after a fork."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = -1
        self._file = -1

    def write(self, record: Record) -> None:
        """Raises OSError where the disk does not take it."""
        pid = os.getpid()
        if pid != self._pid:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(self._folder / f"{pid}{SUFFIX}", flags, 0o600)
            self._pid = pid
        line = json.dumps({"kind": type(record).__name__, **dataclasses.asdict(record)})
        os.write(self._file, line.encode() + b"\n")


def read_recording(folder: Path) -> list[list[Record]]:
    """The records of each process, in the order of their process ids: a parent before what it forked.

    A line that was cut off is left out.
    """
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: int(path.stem))
    return [list(_read_file(path)) for path in files]


def _read_file(path: Path) -> Iterator[Record]:
    for line in path.read_bytes().splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        yield _record(data)


def _record(data: dict[str, Any]) -> Record:
    record: Record = _KINDS[data.pop("kind")](**{key: _value(key, value) for key, value in data.items()})
    return record


def _value(key: str, value: Any) -> Any:
    if key == "stack":
        return tuple(StackFrame(**frame) for frame in value)
    if key in ("frame", "code") and value is not None:
        return Code(**value)
    if key == "guards":
        return tuple(FailedGuard(**{k: _value(k, v) for k, v in guard.items()}) for guard in value)
    return tuple(value) if isinstance(value, list) else value
