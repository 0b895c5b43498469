"""The recording of a run: what each process of the user's program saw, as JSON lines on disk.  One file a process, one
line a record, written with a single system call: whatever ends the process, nothing that was recorded is lost."""

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from breakscan.model.dataclass_json import decoder, encode
from breakscan.model.words import grouped
from breakscan.recording.records import (
    KINDS,
    BreakSeen,
    CompileStarted,
    FrameEnded,
    ProcessForked,
    ProcessStarted,
    Record,
)
from breakscan.source.regular_files import read_regular_file

SUFFIX = ".jsonl"
TORCH_IMPORTED = "torch-imported"  # the empty file that says that the program imported torch
CUT = "cut-"  # begins the name of the empty file that says that a record was not written; the error number ends it


class RecordingWriter:
    """Appends records to the file of the process that calls, also after a fork."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = -1
        self._file = -1
        self._identity: tuple[int, int] | None = None
        self._closed = False

    def write(self, record: Record) -> None:
        """Raises OSError where the disk does not take it."""
        if self._closed:
            return
        try:
            pid, before = os.getpid(), self._pid
            # Where the program closed all files, as daemons do, the number can by now be that of one of its files.
            if pid != before or self._identity != _identity(self._file):
                self._open(pid)
            if before not in (-1, pid):
                self._append(ProcessForked(pid, os.getppid()))
            self._append(record)
        except OSError as error:
            # A full disk still takes a name.
            with contextlib.suppress(OSError):
                (self._folder / f"{CUT}{error.errno}").touch()
            raise

    def close(self) -> None:
        """Stops writing for good: what was hooked into compiled code stays there, and may still try."""
        if self._file != -1 and self._identity == _identity(self._file):
            os.close(self._file)
        self._closed = True

    def _open(self, pid: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(self._folder / f"{pid}{SUFFIX}", flags, 0o600)
        self._identity = _identity(self._file)
        self._pid = pid

    def _append(self, record: Record) -> None:
        line = json.dumps([type(record).__name__, encode(record)], separators=(",", ":"))
        data = line.encode() + b"\n"
        if os.write(self._file, data) < len(data):
            # What is left of a full disk took a part.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _identity(file: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def read_recording(folder: Path) -> list[list[Record]]:
    """The records of each process, without damaged lines: a parent before its children, these in the order they
    came."""
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: (len(path.stem), path.stem))
    return _in_order([process for path in files for process in _processes(_read_file(path))])


def cut_by(folder: Path) -> str | None:
    """The errors that kept records from being written, in words; None where all were."""
    numbers = sorted(path.name.removeprefix(CUT) for path in folder.glob(f"{CUT}*"))
    return ", ".join(os.strerror(int(number)) if number.isdecimal() else number for number in numbers) or None


def compiled(process: Sequence[Record]) -> bool:
    """Return whether the compiler had work in a process: many only import it."""
    return any(isinstance(record, CompileStarted | FrameEnded | BreakSeen) for record in process)


def _processes(records: Iterable[Record]) -> Iterator[list[Record]]:
    """The processes that wrote one file: several where a process id came again, or one became another program."""
    process: list[Record] = []
    for record in records:
        if isinstance(record, ProcessStarted | ProcessForked) and process:
            if not isinstance(process[0], ProcessStarted | ProcessForked):
                # What ``--compile`` found before the compiler was loaded.
                process.insert(0, record)
                continue
            yield process
            process = []
        process.append(record)
    if process:
        yield process


def _in_order(processes: list[list[Record]]) -> list[list[Record]]:
    def time(process: Sequence[Record]) -> float:
        """When it started; one that was forked does not say, and comes last."""
        first = process[0]
        return first.time if isinstance(first, ProcessStarted) else math.inf

    known = {_ids(process)[0] for process in processes}
    parents = ((_ids(process)[1], process) for process in sorted(processes, key=time))
    children = grouped((parent if parent in known else None, process) for parent, process in parents)
    ordered: list[list[Record]] = []
    waiting = children.pop(None, [])
    while waiting:
        process = waiting.pop(0)
        ordered.append(process)
        waiting[:0] = children.pop(_ids(process)[0], [])
    # What is left descends from itself: a process id came round again.
    return [*ordered, *(process for group in children.values() for process in group)]


def _ids(process: Sequence[Record]) -> tuple[int | None, int | None]:
    first = process[0]
    return (first.pid, first.parent_pid) if isinstance(first, ProcessStarted | ProcessForked) else (None, None)


def _read_file(path: Path) -> Iterator[Record]:
    for line in read_regular_file(path)[0].splitlines():
        try:
            name, values = json.loads(line)
            kind: Any = KINDS[name]
            record: Record = decoder(kind)(values)
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        yield record
