"""The output of a command, to standard output or a file, in any encoding, into a pipe that may close; and progress."""

import codecs
import contextlib
import errno
import io
import os
import stat
import sys
import time
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from breakscan.cli.exit_status import OutputError, standard_output
from breakscan.source.writing import replace_content

if TYPE_CHECKING:
    from rich.progress import Progress

ASCII = {"│": "|", "━": "^", "─": "-", "·": "-", "…": "...", "×": "x", "→": "->"}
"""Replacements for characters of the reports that an encoding lacks."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    return "".join(ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lost), error.end


codecs.register_error("breakscan", _replace)


STDOUT = Path("-")  # the path that means standard output
SOURCES = (".py", ".pyi", ".pyw", ".ipynb", ".toml")  # endings of code and configurations, which no report replaces
_NOT_REPLACEABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}


@contextlib.contextmanager
def report_stream(path: Path | None) -> Iterator[TextIO]:
    """The stream for a report: a UTF-8 file, which is replaced as a whole in the end, or standard output.  A reader
    that closes the pipe early (``| head``) is no error.  Raises ClickException if the file cannot be opened, and
    OutputError if the report cannot be written."""
    if path is not None and path != STDOUT:
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


def is_read_on_terminal(stream: TextIO | None, output: Path | None) -> bool:
    """True if a report goes to a stream, and the stream to a terminal."""
    return output is None and stream is not None and stream.isatty()


def require_writable(path: Path) -> None:
    """Raises ClickException for a file that cannot be written, before a program runs for hours."""
    try:
        if path == STDOUT:
            return
        if not path.exists():
            import tempfile  # slow to import

            tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()
        elif path.is_file():
            path.open("r+b").close()
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error


def refuse_source(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """The callback of ``--output``.  Raises BadParameter if a report would replace a source file."""
    if path is not None and os.path.realpath(path).endswith(SOURCES) and os.path.exists(path):
        raise click.BadParameter(
            f"{path} is a source file, which a report would replace: name another file, or delete it first"
        )
    return path


def _put(path: Path, data: bytes) -> None:
    real = Path(os.path.realpath(path))
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # a pipe, a device
            path.write_bytes(data)
            return
        try:
            replace_content(real, data)
        except OSError as error:
            if error.errno not in _NOT_REPLACEABLE or not real.exists():
                raise
            real.write_bytes(data)  # a file that is mounted by itself, or whose folder takes no other
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error


PATIENCE = 1.0  # seconds of work before a bar appears


class ProgressBar:
    """A progress bar on a terminal, which appears after a second of work, and disappears at the end.  It shows ``done``
    of ``total`` when it is called, and nothing if it is ``quiet``."""

    def __init__(
        self, label: str, stream: TextIO | None = None, patience: float = PATIENCE, *, quiet: bool = False
    ) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._patience = patience
        self._quiet = quiet
        self._started = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> "ProgressBar":
        return self

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            if self._quiet or not self._stream.isatty() or time.monotonic() - self._started < self._patience:
                return
            self._bar = self._start(total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start(self, total: int) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bar = Progress(*columns, console=Console(file=self._stream), transient=True)
        bar.add_task(self._label, total=total)
        bar.start()
        return bar
