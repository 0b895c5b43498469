"""Reads a unified diff, and applies it to the files that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from breakscan.fix.source_map import ChangedLines, SourceMap
from breakscan.source.module import SourceProblem, decode_source

_SIGNATURE = "-- "
"""The line that mail programs put between a diff and the version of git."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class PatchError(Exception):
    """The diff cannot be read, or does not fit the files. The message gives the reason."""


@dataclass(slots=True)
class _Hunk:
    """A hunk of a diff. ``start`` is a line of the old text, from 1. ``changes`` are the positions of the lines that it
    replaces, relative to the first of its old lines.
    """

    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    changes: list[ChangedLines] = field(default_factory=list)

    def add(self, mark: str, text: str) -> None:
        """Adds a line of the diff."""
        at = len(self.old)
        if mark in ("-", "+"):
            last = self.changes[-1] if self.changes else None
            if last is None or last.first + last.size != at:
                last = ChangedLines(at, 0, 0)
                self.changes.append(last)
            removed, added = mark == "-", mark == "+"
            self.changes[-1] = ChangedLines(last.first, last.size + removed, last.new_size + added)
        if mark in (" ", "-", ""):
            self.old.append(text)
        if mark in (" ", "+", ""):
            self.new.append(text)


@dataclass(slots=True)
class _File:
    path: str
    hunks: list[_Hunk] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Patched:
    """A file at an absolute path, with its old and its new text."""

    path: Path
    before: str
    after: str
    lines: SourceMap
    """Where the lines of ``after`` come from."""


def patched_files(text: str, folder: Path) -> list[Patched]:
    """Applies a diff to files whose paths are relative to ``folder``. Raises PatchError."""
    return [_patched(file, folder) for file in _files(text)]


def _files(text: str) -> Iterator[_File]:
    lines = iter(text.split("\n"))
    current: _File | None = None
    for line in lines:
        if line.startswith("--- "):
            new = next(lines, "")
            if not new.startswith("+++ "):
                raise PatchError(f"{line!r} is not followed by a line that begins with +++")
            if current:
                yield current
            name = new[4:].split("\t")[0].strip()
            if name == "/dev/null":
                raise PatchError(f"it deletes {line[4:].strip()}: only changes of files can be verified")
            current = _File(name)
        elif found := _HUNK.match(line):
            if current is None:
                raise PatchError("it has a hunk before the name of any file")
            current.hunks.append(_hunk(lines, found))
        elif current and current.hunks and line.startswith(("+", "-")) and not line.startswith(_SIGNATURE):
            # Left out without a word, it would not be verified.
            raise PatchError(f"the hunk at line {current.hunks[-1].start} is longer than its first line says: {line!r}")
    if current is None:
        raise PatchError("it is no unified diff: there is no line that begins with ---")
    yield current


def _hunk(lines: Iterator[str], found: re.Match[str]) -> _Hunk:
    start, old_size, _, new_size = found.groups()
    wanted = int(old_size or 1), int(new_size or 1)
    hunk = _Hunk(int(start))
    while (len(hunk.old), len(hunk.new)) != wanted:
        line = next(lines, None)
        if line is None or line[:1] not in ("", " ", "-", "+", "\\"):
            raise PatchError(f"the hunk at line {start} is cut off")
        hunk.add(line[:1], line[1:])
    return hunk


def _patched(file: _File, folder: Path) -> Patched:
    names = [file.path, file.path.partition("/")[2]] if file.path[:2] in ("a/", "b/") else [file.path]
    path = next((folder / name for name in reversed(names) if name and (folder / name).is_file()), None)
    if path is None:
        raise PatchError(f"there is no file {file.path} below {folder}")
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()):
        remedy = "run verify in a folder that holds it, with a diff that names it relative to that folder"
        raise PatchError(f"{file.path} leads to {real}, which is not below {folder}: {remedy}")
    try:
        before = decode_source(path.read_bytes(), file.path)
    except (OSError, SourceProblem) as error:
        raise PatchError(f"{file.path} cannot be read: {error}") from error
    lines = before.split("\n")
    shift = 0
    origins = SourceMap.unchanged(before)
    for hunk in file.hunks:
        start = hunk.start
        at = _place(lines, hunk.old, start - 1 + shift if hunk.old else start + shift)
        if at is None:
            raise PatchError(f"{file.path} is not what the diff was made of: line {start} reads otherwise")
        text = "\n".join(lines)
        lines[at : at + len(hunk.old)] = hunk.new
        regions = [replace(change, first=at + change.first) for change in hunk.changes]
        origins = origins.then(SourceMap.of_regions(text, "\n".join(lines), regions))
        shift += len(hunk.new) - len(hunk.old)
    return Patched(path.absolute(), before, "\n".join(lines), origins)


def _place(lines: list[str], old: list[str], expected: int) -> int | None:
    """Returns the place of the old lines: the one nearest to the expected place."""
    places = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    return min(places, key=lambda at: abs(at - expected), default=None)
