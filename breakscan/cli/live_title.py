"""Shows the progress of a long run in the title of the terminal's window, because the program uses the screen."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from breakscan.reports.shared.wording import counted
from breakscan.runtime.record_counts import Tally


def live_title(folder: Path) -> Callable[[], None] | None:
    """Returns a function to call from time to time while the program runs; None without a terminal that has a title."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "linux"):
        return None
    tally = Tally(folder)

    def show() -> None:
        with contextlib.suppress(OSError, ValueError):
            tally.read()
            # A single write, so that no output of the program comes in between.
            os.write(sys.stderr.fileno(), f"\x1b]2;{title(tally)}\x07".encode())

    return show


def title(tally: Tally) -> str:
    """``breakscan: 12 graphs, 3 breaks, 2 recompiles, 41 s compiling``."""
    parts = [counted(tally.kinds["GraphCompiled"], "graph"), counted(tally.kinds["BreakSeen"], "break")]
    if recompiles := tally.kinds["RecompileSeen"]:
        parts.append(counted(recompiles, "recompile"))
    return f"breakscan: {', '.join(parts)}, {tally.compile_seconds:.0f} s compiling"
