"""Where a command writes: standard output or a file, in whatever encoding, into a pipe that may close."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import click

from breakscan.cli.standard_output import OutputError, standard_output
from breakscan.source.writing import replace_content

ASCII = {"│": "|", "━": "^", "─": "-", "·": "-", "…": "...", "×": "x", "→": "->"}
"""What stands for the glyphs of the reports where an encoding lacks them."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    return "".join(ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lost), error.end


codecs.register_error("breakscan", _replace)


SOURCES = (".py", ".pyi", ".pyw", ".ipynb")
"""Endings of files that no report replaces."""
_NOT_REPLACEABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}


@contextlib.contextmanager
def report_stream(path: Path | None) -> Iterator[TextIO]:
    """The stream for a report: a UTF-8 file, which is replaced as a whole in the end, else standard output.

    A reader that closes the pipe early (``| head``) ends the writing without a word.  Raises ClickException where the
    file cannot be opened, and OutputError where the report cannot be written.
    """
    if path is not None:
        require_writable(path)
        buffer = io.BytesIO()
        with TextIOWrapper(buffer, encoding="utf-8", errors="breakscan", newline="\n") as stream:
            yield stream
            stream.flush()
            _put(path, buffer.getvalue())
        return
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="breakscan")
    with standard_output():
        yield sys.stdout


def require_writable(path: Path) -> None:
    """Raises ClickException for a report that could not be written: known before a program runs for hours."""
    try:
        if not path.exists():
            tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()
        elif path.is_file():
            path.open("r+b").close()
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error


def require_no_source(path: str) -> None:
    """Raises BadParameter if a report would replace a source file."""
    real = os.path.realpath(path)
    if real.endswith(SOURCES) and os.path.exists(real):
        raise click.BadParameter(
            f"{path} is a source file, which a report would replace: name another file, or delete it first"
        )


def _put(path: Path, data: bytes) -> None:
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and not real.is_file():  # a pipe, a device
            real.write_bytes(data)
            return
        try:
            replace_content(real, data)
        except OSError as error:
            if error.errno not in _NOT_REPLACEABLE or not real.exists():
                raise
            real.write_bytes(data)  # a file that is mounted by itself, or whose folder takes no other
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
