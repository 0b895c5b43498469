"""The code of standard input, under the name that it goes by."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

STDIN = "-"


def stdin_name(paths: Sequence[str], name: str | None) -> str | None:
    """The name of what is read from standard input; None where the paths are those of files.  Raises UsageError."""
    if STDIN not in paths and (name is None or paths):
        if name is not None:
            raise click.UsageError("--stdin-filename needs - as the only path")
        return None
    if len(paths) > 1:
        raise click.UsageError("- means standard input, and cannot be combined with other paths")
    return name or STDIN


def read_stdin(name: str) -> tuple[Path, bytes]:
    """The absolute path that standard input goes by, and its content.  Raises UsageError where it is closed."""
    if sys.stdin is None:
        raise click.UsageError("standard input is closed: - reads the code from it")
    return Path(os.path.abspath(name)), sys.stdin.buffer.read()
