"""Counts what a recording holds so far, while the program runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from breakscan.runtime.recording import SUFFIX


class Tally:
    """The records in a folder by kind, and the seconds that compiling took; each call of :meth:`read` goes on where
    the last one ended."""

    def __init__(self, folder: Path) -> None:
        self.kinds: Counter[str] = Counter()
        self.compile_seconds = 0.0
        self._folder = folder
        self._read: dict[Path, int] = {}

    def read(self) -> None:
        """Takes in what was written since.  A line that is not complete waits for the next time."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            with path.open("rb") as stream:
                stream.seek(self._read.get(path, 0))
                for line in stream:
                    if not line.endswith(b"\n"):
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    self._take(line)

    def _take(self, line: bytes) -> None:
        kind = line[2 : line.find(b'"', 2)].decode("ascii", "replace")
        self.kinds[kind] += 1
        if kind == "CompileTimed":
            self.compile_seconds += float(json.loads(line)[1][1])
