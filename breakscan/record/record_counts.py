"""Counts what a recording holds so far, while the program runs."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

from breakscan.model.dataclass_json import decoder
from breakscan.record.recording import SUFFIX
from breakscan.record.records.compiles import CompileStarted, CompileTimed
from breakscan.record.records.source import Code


class Tally:
    """The records in a folder by kind, and the seconds that compiling took; each call of :meth:`read` goes on where
    the last one ended."""

    def __init__(self, folder: Path) -> None:
        self.kinds: Counter[str] = Counter()
        self.compile_seconds = 0.0
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._begun: dict[tuple[Path, str], tuple[Code, float]] = {}

    @property
    def compiling(self) -> tuple[Code, float] | None:
        """The code on which Dynamo started last and that is not ready, and for how many seconds it has been seen."""
        if not self._begun:
            return None
        code, since = list(self._begun.values())[-1]
        return code, time.monotonic() - since

    def read(self) -> None:
        """Takes in what was written since.  A line that is not complete waits for the next time."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            with path.open("rb") as stream:
                stream.seek(self._read.get(path, 0))
                for line in stream:
                    if not line.endswith(b"\n"):
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    self._take(path, line)

    def _take(self, path: Path, line: bytes) -> None:
        kind = line[2 : line.find(b'"', 2)].decode("ascii", "replace")
        self.kinds[kind] += 1
        if kind == CompileStarted.__name__:
            started: CompileStarted = decoder(CompileStarted)(json.loads(line)[1])
            self._begun[path, started.compile_id] = started.code, time.monotonic()
        elif kind == CompileTimed.__name__:
            compile_id, seconds = json.loads(line)[1][:2]
            self.compile_seconds += float(seconds)
            self._begun.pop((path, compile_id), None)
