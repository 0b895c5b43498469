"""Writes a changed text into its file: completely or not at all, without changing anything else about the file."""

import contextlib
import io
import os
import re
import stat
import tokenize
from collections import Counter
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from breakscan.source.module import SourceProblem, decode_source, read_source
from breakscan.source.python_text import edited_notebook, is_notebook, python_text
from breakscan.source.toml_text import TomlProblem, parse_toml

_LINE_END = re.compile("\r\n|\r|\n")


def text_of(data: bytes) -> str:
    """The text of a Python file, or of the JSON of a notebook, with its line ends as they are."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def encoded(path: Path, data: bytes, after: str) -> bytes:
    """The bytes of a new Python text in the encoding of a file, given by its present content, and with its line ends.

    Unchanged lines keep their line end; new lines get the most frequent one of the file.  Raises SourceProblem if
    the content cannot be decoded, and UnicodeEncodeError if the encoding lacks a character of the new text."""
    if is_notebook(path):
        return edited_notebook(data, after, str(path))
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    before = decode_source(data, "").split("\n")
    ends = _LINE_END.findall(text_of(data))
    usual = Counter(ends).most_common(1)[0][0] if ends else "\n"
    lines = after.split("\n")
    new_ends = [usual] * (len(lines) - 1) + [""]
    if len(set(ends)) > 1:
        matcher = SequenceMatcher(None, before, lines, autojunk=False)
        for start, new_start, size in matcher.get_matching_blocks():
            for offset in range(size):
                if start + offset < len(ends) and new_start + offset < len(new_ends) - 1:
                    new_ends[new_start + offset] = ends[start + offset]
    return "".join(f"{line}{end}" for line, end in zip(lines, new_ends, strict=True)).encode(encoding)


def rewrite_file(path: Path, display: str, before: str, after: str) -> None:
    """Replaces the text ``before`` of a file by ``after`` atomically: a reader sees one or the other.

    Encoding, byte order mark, line ends, mode and owner are kept; for a link, its target is replaced.  Raises
    SourceProblem, and leaves the file unchanged, if the file is read-only, has another text by now, or cannot be
    written."""
    data = read_source(path, display)
    if python_text(data, path, display) != before:
        raise SourceProblem.at(display, "has changed since it was read: run the command again")
    target = Path(os.path.realpath(path))
    try:
        replace_content(target, encoded(path, data, after))
    except PermissionError as error:
        raise SourceProblem.at(display, f"cannot be written: {error.strerror}; nothing was changed") from error
    except OSError as error:
        raise SourceProblem.at(display, f"cannot be written: {error.strerror}; the file is as it was") from error
    except UnicodeEncodeError as error:
        reason = f"its encoding, {error.encoding}, lacks a character"
        raise SourceProblem.at(display, f"cannot be written: {reason}") from error


def replace_content(path: Path, data: bytes) -> None:
    """Replaces or makes a file atomically and durably.  Raises OSError, and leaves the file unchanged."""
    known = path.stat() if path.exists() else None
    if known and not known.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(13, "the file is read-only")
    import tempfile  # slow to import, and a command that only reads needs none of it

    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if known:
            os.chmod(name, stat.S_IMODE(known.st_mode))
        else:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        if known and hasattr(os, "chown"):
            with contextlib.suppress(PermissionError):  # the file has another owner, but is writable
                os.chown(name, known.st_uid, known.st_gid)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    with contextlib.suppress(OSError):  # not every system can open a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, too
        finally:
            os.close(folder)


class CommittedFileError(Exception):
    """Such a file cannot be used.  Names the file, and says why and what to do."""


def read_committed(path: Path, version: int, what: str) -> dict[str, Any] | None:
    """The values of a file of a format ``version``; None where there is no file.  ``what`` it is: ``lock``.

    Raises CommittedFileError."""
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except TomlProblem as problem:
        raise CommittedFileError(f"{path} is damaged: {problem}. Fix it, or delete it to start again") from problem
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommittedFileError(f"{path} cannot be read: {reason}") from error
    found = data.get("version")
    if type(found) is int and found > version:
        raise CommittedFileError(f"{path} was written by a newer breakscan: update breakscan")
    if found != version:
        raise not_ours(path, what)
    return data


def not_ours(path: Path, what: str) -> CommittedFileError:
    return CommittedFileError(f"{path} is no {what} of breakscan's: name another file")


def table_values(path: Path, where: str, value: Any, right: Mapping[str, Callable[[Any], bool]]) -> dict[str, Any]:
    """The values of a table at some keys, None for missing ones.  ``right`` tests each.  Raises CommittedFileError."""
    table = value if isinstance(value, dict) else {}
    for key, is_right in right.items():
        if not is_right(table.get(key)):
            problem = f"is damaged at {where}: {key!r} is wrong"
            raise CommittedFileError(f"{path} {problem}. Fix it, or delete it to start again")
    return {key: table.get(key) for key in right}


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def write_committed(path: Path, text: str) -> None:
    """Puts a file into place as a whole, where its content differs.  Raises CommittedFileError."""
    data = text.encode()
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and real.read_bytes() == data:
            return
        replace_content(real, data)
    except OSError as error:
        raise CommittedFileError(f"cannot write {path}: {error.strerror}") from error
