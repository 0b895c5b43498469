"""Shows the progress of a long run in the title of the terminal's window, because the program uses the screen."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from breakscan.record.recording import Tally
from breakscan.report.explain.news import tally_words


def live_title(folder: Path) -> Callable[[], None] | None:
    """Returns a function to call from time to time while the program runs; None without a terminal that has a title."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "linux"):
        return None
    tally = Tally(folder)

    def show() -> None:
        with contextlib.suppress(OSError, ValueError):
            tally.read()
            # A single write, so that no output of the program comes in between.
            os.write(sys.stderr.fileno(), f"\x1b]2;breakscan: {tally_words(tally)}\x07".encode())

    return show
