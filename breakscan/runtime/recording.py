"""The recording of a run: what each process of the user's program saw, as JSON lines on disk.

One file a process, one line a record, written at once with a single system call: whatever ends the process,
nothing that was recorded is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from breakscan.dataclass_json import decoder, encode
from breakscan.runtime.records import ProcessForked, Record

SUFFIX = ".jsonl"
TORCH_IMPORTED = "torch-imported"
"""Name of the empty file that says that the program imported torch, whether or not it compiled anything."""

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Record)}


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
            forked = self._pid != -1
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(self._folder / f"{pid}{SUFFIX}", flags, 0o600)
            self._pid = pid
            if forked:
                self._append(ProcessForked(pid, os.getppid()))
        self._append(record)

    def _append(self, record: Record) -> None:
        line = json.dumps([type(record).__name__, encode(record)], separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")


def read_recording(folder: Path) -> list[list[Record]]:
    """The records of each process, in the order of their process ids: a parent before what it forked.

    A line that was cut off or damaged is left out.
    """
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: int(path.stem))
    return [list(_read_file(path)) for path in files]


def _read_file(path: Path) -> Iterator[Record]:
    for line in path.read_bytes().splitlines():
        try:
            name, values = json.loads(line)
            kind: Any = _KINDS[name]
            record: Record = decoder(kind)(values)
        except (ValueError, TypeError, KeyError):
            continue
        yield record
