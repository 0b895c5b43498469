"""Reports that breakscan could not do its work."""

from __future__ import annotations

import errno
import sys
import traceback

from breakscan.rulebook.config import ConfigError
from breakscan.rulebook.document import RuleError

FAILED = 2
INTERRUPTED = 130
"""The exit status where the user has stopped it, as a shell gives it."""


def show_failure(error: Exception) -> int:
    """Prints what went wrong on stderr, in one line if the cause is known, and returns the exit status."""
    if isinstance(error, ConfigError | RuleError):
        print(f"Error: {error}", file=sys.stderr)
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        print("Error: too many open files: raise the limit (ulimit -n)", file=sys.stderr)
    else:
        traceback.print_exception(type(error), error, error.__traceback__)
        print(
            "Error: this is a fault in breakscan, not in your code. Please report it, with what "
            "'breakscan --bug-report' prints.",
            file=sys.stderr,
        )
    return FAILED
