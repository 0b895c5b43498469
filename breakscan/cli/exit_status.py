"""The exit statuses of breakscan, and the errors that end a command early."""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator

import click

FAILED = 2
INTERRUPTED = 130  # the exit status after Ctrl-C, as in a shell
UNWRITTEN = 74  # the exit status if a report could not be written, ``EX_IOERR`` of ``sysexits.h``
_NOT_OF_WRITING = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}  # of what cannot be opened


class OutputError(click.ClickException):
    """A report cannot be written: a full disk, a closed stream."""

    exit_code = UNWRITTEN


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """A context in which standard output is written.  Raises OutputError if that fails."""
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


def show_failure(error: Exception) -> int:
    """Prints what went wrong on stderr, in one line if the cause is known, and returns the exit status."""
    from breakscan.model.words import InputError
    from breakscan.report.printable import visible

    if isinstance(error, InputError):
        print(f"Error: {visible(str(error))}", file=sys.stderr)
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        print("Error: too many open files: raise the limit (ulimit -n)", file=sys.stderr)
    else:
        traceback.print_exception(type(error), error, error.__traceback__)
        print(
            "Error: this is a fault in breakscan, not in your code. Please report it, with what 'breakscan --version' "
            "and 'python -m torch.utils.collect_env' print.",
            file=sys.stderr,
        )
    return FAILED
