"""Standard output: what ends the writing early, and what is said of it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

import click

UNWRITTEN = 74
"""The exit status where a report could not be written, ``EX_IOERR`` of ``sysexits.h``: the findings are lost."""


_NOT_OF_WRITING = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
"""Errors of processes and files that cannot be opened."""


class OutputError(click.ClickException):
    """A report cannot be written: a full disk, a closed stream."""

    exit_code = UNWRITTEN


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Where standard output is written to.  Raises OutputError where that fails."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None or error.errno in _NOT_OF_WRITING:
            raise  # of another file
        # Python would flush again at exit, and complain.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OutputError(f"cannot write to standard output: {error.strerror}") from error
