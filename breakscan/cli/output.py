"""Where a command writes: standard output or a file, in whatever encoding, into a pipe that may close."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

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


SOURCES = (".py", ".pyi", ".pyw", ".ipynb", ".toml")
"""Endings of files that no report replaces: those of code and of configurations."""
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


def require_no_input(path: str, inputs: Iterable[str]) -> None:
    """Raises BadParameter if a report would replace one of the files that the command reads."""
    for one in inputs:
        if os.path.isfile(one) and os.path.isfile(path) and os.path.samefile(one, path):
            raise click.BadParameter(
                f"{path} is read by this command, and the report would replace it: name another file",
                param_hint="'-o' / '--output'",
            )


def _open_stream(path: Path) -> BinaryIO | None:
    """A file that takes what is written as it comes, open: a pipe, a device, or what standard output or standard error
    goes to, behind what was written there.  None for any other file.  Raises OSError."""
    if not path.exists():
        return None
    status = path.stat()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), status):
                return open(os.dup(descriptor), "wb")
    return None if stat.S_ISREG(status.st_mode) else path.open("wb")


def _put(path: Path, data: bytes) -> None:
    real = Path(os.path.realpath(path))
    try:
        if (stream := _open_stream(path)) is not None:
            with stream:
                stream.write(data)
            return
        try:
            replace_content(real, data)
        except OSError as error:
            if error.errno not in _NOT_REPLACEABLE or not real.exists():
                raise
            real.write_bytes(data)  # a file that is mounted by itself, or whose folder takes no other
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
