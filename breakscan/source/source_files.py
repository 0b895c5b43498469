"""The sources of a run, and the one place that decides which of them may be opened.

A run of this process, or of a program that breakscan has just run, is trusted: its files are read wherever they are.
A recording or a log that was read from disk can come from anyone and name any path.  Of these, a file is opened only
if it is a Python file below a folder that the user allows, and shown only if it has the lines that were recorded."""

import errno
import linecache
import os
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache

from breakscan.source.module import SourceProblem, decode_source
from breakscan.source.paths import relative_to, shown_path
from breakscan.source.regular_files import read_regular_file

LARGEST = 1 << 24
"""Bytes of the largest file that is read."""
_PYTHON = (".py", ".pyw")


class NotRead(Enum):
    """The reason why a file of a run is not shown."""

    OUTSIDE = "outside"
    GONE = "gone"
    CHANGED = "changed"
    NOT_PYTHON = "not Python"
    NOT_REGULAR = "not regular"
    TOO_LARGE = "too large"


class SourceFiles:
    """Reads each file once, by its recorded path or by the path that reports show.

    ``folders`` are the folders whose Python files may be opened."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._cwd = os.getcwd()
        self._folders: tuple[str, ...] | None = tuple(map(os.path.realpath, folders))
        self._kept: dict[str, str] = {}
        self._known: dict[str, dict[int, str]] = {}
        self.text = cache(self._find)
        """The text of a file of the run, by its path; None if it is not shown."""
        self.not_read: dict[str, NotRead] = {}
        """The requested paths that are not shown, with the reason."""
        self.read: dict[str, str] = {}
        """The texts that were read from files so far, by absolute path."""

    @classmethod
    def trusted(cls) -> "SourceFiles":
        """Those of a run of this process, or of a program that it has run: any file, and code that has no file."""
        files = cls()
        files._folders = None
        return files

    @property
    def is_trusted(self) -> bool:
        return self._folders is None

    def keep(self, path: str, text: str) -> None:
        """Gives the text of a path, which is not opened then."""
        self._kept[self._absolute(path)] = text

    def know(self, lines: Mapping[tuple[str, int], str]) -> None:
        """Gives lines as they were during the run, stripped, by path and number.  A file that has others now is another
        file, and is not shown."""
        for (path, line), text in lines.items():
            self._known.setdefault(self._absolute(path), {})[line] = text

    def lines(self, path: str) -> list[str]:
        """The lines of a file of the run; none if it is not shown."""
        text = self.text(path)
        return [] if text is None else text.split("\n")

    def known_line(self, path: str, line: int) -> str | None:
        """The text of a line as it was recorded."""
        return self._known.get(self._absolute(path), {}).get(line)

    def is_current(self, path: str) -> bool:
        """True if the file may be opened and is still the one that ran."""
        text = self.text(path)
        return text is not None and (self._absolute(path) in self.read or self._on_disk(path) == text)

    def _find(self, path: str) -> str | None:
        absolute = self._absolute(path)
        if absolute in self._kept:
            return self._kept[absolute]
        text = self._on_disk(path)
        if isinstance(text, NotRead):
            # For a path that it does not know yet, linecache would look for a file of that name in all of sys.path.
            if self.is_trusted and path in linecache.cache and (lines := linecache.getlines(path)):
                return "".join(lines)
            self.not_read[path] = text
            return None
        lines = text.split("\n")
        known = self._known.get(absolute, {})
        if any(not 1 <= line <= len(lines) or lines[line - 1].strip() != of_run for line, of_run in known.items()):
            self.not_read[path] = NotRead.CHANGED
            return None
        self.read[absolute] = text
        return text

    def _on_disk(self, path: str) -> str | NotRead:
        content = self._content(path)
        try:
            return content if isinstance(content, NotRead) else decode_source(content, path)
        except SourceProblem:
            return NotRead.NOT_PYTHON

    def _content(self, path: str) -> bytes | NotRead:
        try:
            real = os.path.realpath(self._absolute(path))
            if self._folders is not None:
                if not any(relative_to(real, folder) for folder in self._folders):
                    return NotRead.OUTSIDE
                if not real.endswith(_PYTHON):
                    return NotRead.NOT_PYTHON
            return read_regular_file(real, LARGEST)[0]
        except OSError as error:
            reasons = {errno.EINVAL: NotRead.NOT_REGULAR, errno.EFBIG: NotRead.TOO_LARGE}
            return reasons.get(error.errno or 0, NotRead.GONE)
        except ValueError:  # no file can have such a path
            return NotRead.GONE

    def _absolute(self, path: str) -> str:
        return os.path.join(self._cwd, shown_path(path, self._cwd))
