"""Where a command writes: standard output or a file, in whatever encoding, into a pipe that may close."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import click

ASCII = {"│": "|", "━": "^", "─": "-", "·": "-", "…": "...", "×": "x", "→": "->"}
"""What stands for the glyphs of the reports where an encoding lacks them."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    return "".join(ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lost), error.end


codecs.register_error("breakscan", _replace)


@contextlib.contextmanager
def report_stream(path: Path | None) -> Iterator[TextIO]:
    """The stream for a report: a UTF-8 file, else standard output.

    A reader that closes the pipe early (``| head``) ends the writing without a word.  Raises ClickException
    where the file cannot be written.
    """
    if path is not None:
        try:
            with path.open("w", encoding="utf-8", errors="breakscan", newline="\n") as stream:
                yield stream
        except OSError as error:
            raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
        return
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="breakscan")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush again at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
