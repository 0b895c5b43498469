"""Writes a changed text back into its file: all of it or nothing, and nothing else about the file changed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import tempfile
import tokenize
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

from breakscan.findings import SourceError
from breakscan.source.module import SourceProblem, decode_source, read_source

_LINE_END = re.compile("\r\n|\r|\n")


def text_of(data: bytes) -> str:
    """The text of a Python file with its line ends as they are."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def encoded(data: bytes, after: str) -> bytes:
    """The bytes of a new text in the encoding of a file, given by its present content, and with its line ends.

    Lines that stay keep the end that they had; new ones get the file's most frequent.  Raises SourceProblem where
    the content cannot be decoded, and UnicodeEncodeError where the encoding lacks a character of the new text.
    """
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
    """Replaces the text ``before`` of a file by ``after``, at once: whoever reads the file sees one or the other.

    Encoding, byte order mark, line ends, mode and owner stay; of a link, what it points to is replaced.  Raises
    SourceProblem, with the file as it was, where the file is read-only, holds another text by now, or cannot be
    written.
    """
    data = read_source(path, display)
    if decode_source(data, display) != before:
        raise _problem(display, "has changed since it was read: run the command again")
    target = Path(os.path.realpath(path))
    try:
        replace_content(target, encoded(data, after))
    except PermissionError as error:
        raise _problem(display, f"cannot be written: {error.strerror}; nothing was changed") from error
    except OSError as error:
        raise _problem(display, f"cannot be written: {error.strerror}; the file is as it was") from error
    except UnicodeEncodeError as error:
        raise _problem(display, f"cannot be written: its encoding, {error.encoding}, lacks a character") from error


def replace_content(path: Path, data: bytes) -> None:
    """Puts new content in the place of a file's, at once and for good.  Raises OSError, with the file as it was."""
    known = path.stat()
    if not known.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(13, "the file is read-only")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, stat.S_IMODE(known.st_mode))
        if hasattr(os, "chown"):
            with contextlib.suppress(PermissionError):  # it is somebody else's, and we may write it all the same
                os.chown(name, known.st_uid, known.st_gid)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sees to it that the new name is on the disk, too; not every system lets one open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _problem(display: str, message: str) -> SourceProblem:
    return SourceProblem(SourceError(display, 1, 1, message))
