"""Reads a unified diff, and applies it to the files that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.source.module import SourceProblem, decode_source

_SIGNATURE = "-- "
"""The line that mail programs put between a diff and the version of git."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class PatchError(Exception):
    """The diff cannot be read, or does not fit the files. The message gives the reason."""


@dataclass(slots=True)
class _Hunk:
    """A hunk of a diff. ``start`` is a line of the old text, from 1."""

    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def patched_files(text: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Applies a diff to files whose paths are relative to ``folder``. Returns their old and new texts by absolute path.
    Raises PatchError."""
    return dict(_patched(name, hunks, folder) for name, hunks in _files(text).items())


def _files(text: str) -> dict[str, list[_Hunk]]:
    """The hunks of each file that a diff names."""
    lines = iter(text.split("\n"))
    found: dict[str, list[_Hunk]] = {}
    hunks: list[_Hunk] | None = None
    for line in lines:
        if line.startswith("--- "):
            new = next(lines, "")
            if not new.startswith("+++ "):
                raise PatchError(f"{line!r} is not followed by a line that begins with +++")
            name = new[4:].split("\t")[0].strip()
            if name == "/dev/null":
                raise PatchError(f"it deletes {line[4:].strip()}: only changes of files can be verified")
            hunks = found.setdefault(name, [])
        elif head := _HUNK.match(line):
            if hunks is None:
                raise PatchError("it has a hunk before the name of any file")
            hunks.append(_hunk(lines, head))
        elif hunks and line.startswith(("+", "-")) and not line.startswith(_SIGNATURE):
            # Left out without a word, it would not be verified.
            raise PatchError(f"the hunk at line {hunks[-1].start} is longer than its first line says: {line!r}")
    if hunks is None:
        raise PatchError("it is no unified diff: there is no line that begins with ---")
    return found


def _hunk(lines: Iterator[str], head: re.Match[str]) -> _Hunk:
    start, old_size, _, new_size = head.groups()
    wanted = int(old_size or 1), int(new_size or 1)
    hunk = _Hunk(int(start))
    while (len(hunk.old), len(hunk.new)) != wanted:
        line = next(lines, None)
        if line is None or line[:1] not in ("", " ", "-", "+", "\\"):
            raise PatchError(f"the hunk at line {start} is cut off")
        if line[:1] in ("", " ", "-"):
            hunk.old.append(line[1:])
        if line[:1] in ("", " ", "+"):
            hunk.new.append(line[1:])
    return hunk


def _patched(name: str, hunks: list[_Hunk], folder: Path) -> tuple[str, tuple[str, str]]:
    names = [name.partition("/")[2], name] if name[:2] in ("a/", "b/") else [name]
    path = next((folder / one for one in names if one and (folder / one).is_file()), None)
    if path is None:
        raise PatchError(f"there is no file {name} below {folder}")
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()):
        remedy = "run verify in a folder that holds it, with a diff that names it relative to that folder"
        raise PatchError(f"{name} leads to {real}, which is not below {folder}: {remedy}")
    try:
        before = decode_source(path.read_bytes(), name)
    except (OSError, SourceProblem) as error:
        raise PatchError(f"{name} cannot be read: {error}") from error
    lines = before.split("\n")
    shift = 0
    for hunk in hunks:
        start = hunk.start
        at = _place(lines, hunk.old, start - 1 + shift if hunk.old else start + shift)
        if at is None:
            raise PatchError(f"{name} is not what the diff was made of: line {start} reads otherwise")
        lines[at : at + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old)
    return str(path.absolute()), (before, "\n".join(lines))


def _place(lines: list[str], old: list[str], expected: int) -> int | None:
    """Returns the place of the old lines: the one nearest to the expected place."""
    places = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    return min(places, key=lambda at: abs(at - expected), default=None)
