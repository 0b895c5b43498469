"""The last lines of a terminal, kept for text of ours while a program writes to the lines above.

The program writes to the terminal itself, so nothing may depend on where its cursor is: redrawing in place does.  The
terminal scrolls the lines above only (DECSTBM), and each of our writes saves the cursor, draws, and restores it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

_FEWEST_ABOVE = 8
"""Lines that the program needs."""
_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[2K"


def has_bottom_lines(number: int) -> bool:
    """Whether standard error is a terminal with room for so many lines, and the program is in front of it."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    with contextlib.suppress(OSError):
        fd = sys.stderr.fileno()
        return os.get_terminal_size(fd).lines >= number + _FEWEST_ABOVE and os.tcgetpgrp(fd) == os.getpgrp()
    return False


class BottomLines:
    """The last ``number`` lines of the terminal behind a file descriptor."""

    def __init__(self, fd: int, number: int) -> None:
        self._fd, self._number = fd, number
        # Scrolls what stands in our lines up, and leaves the cursor behind it.
        self._write("\n" * number + f"\x1b[{number}A")

    def show(self, lines: Callable[[int], Sequence[str]]) -> None:
        """Draws the lines, which get the width.  In a single write, so that no output of the program comes in
        between; the size may have changed since the last time."""
        size = os.get_terminal_size(self._fd)
        first = size.lines - self._number + 1
        if first <= 1:
            return
        drawn = (f"\x1b[{first + number};1H{_ERASE}{line}" for number, line in enumerate(lines(size.columns)))
        self._write(f"{_SAVE}\x1b[1;{first - 1}r{''.join(drawn)}{_RESTORE}")

    def clear(self) -> None:
        """Gives the lines back."""
        size = os.get_terminal_size(self._fd)
        first = max(1, size.lines - self._number + 1)
        erased = "".join(f"\x1b[{line};1H{_ERASE}" for line in range(first, size.lines + 1))
        self._write(f"{_SAVE}\x1b[r{erased}{_RESTORE}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._fd, text.encode())
