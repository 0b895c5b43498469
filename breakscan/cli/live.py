"""What happens in a run while it is recorded: ``explain --live``, the title of the terminal's window and
``report --follow``."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from breakscan.cli.exit_status import show_failure
from breakscan.explanation.explanation import Explanation
from breakscan.recording.recording import Tally
from breakscan.recording.session import RecordedRun
from breakscan.report.explain.news import live_lines, tally_words

SECONDS = 0.5
"""Between two looks at the recording."""
_NEWS = 3
"""Lines below the first."""
_FEWEST_ABOVE = 8
"""Lines of a terminal that the program needs."""
_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[2K"
_PAUSE = 1.0
"""Seconds between two readings, at least."""
_READING = 10
"""Reading takes no more than one part in so many of the time: the program needs the processor more."""

Read = Callable[[], tuple[RecordedRun, Explanation]]


class Follower:
    """Reads a run again and again.  ``run`` and ``explanation`` are those of the last time."""

    def __init__(self, read: Read) -> None:
        from breakscan.report.explain.news import News

        self._read, self._news = read, News()
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether it is time to read again."""
        return time.monotonic() >= self._next

    def wait(self) -> None:
        """Sleeps until then."""
        time.sleep(max(0.0, self._next - time.monotonic()))

    def news(self) -> list[str]:
        """What has come since the last time."""
        began = time.monotonic()
        self.run, self.explanation = self._read()
        lines = list(self._news.lines(self.explanation))
        ended = time.monotonic()
        self._next = ended + max(_PAUSE, _READING * (ended - began))
        return lines


def follow(read: Read, *, aside: bool) -> Explanation:
    """Prints what is new, again and again, until no rank of the run is left.  Returns the explanation of the whole.

    ``aside`` is for a report that programs read from standard output: the news goes to standard error.
    """
    follower = Follower(read)
    while True:
        for line in follower.news():
            click.echo(line, err=aside)
        if not any(part.running for part in follower.run.parts):
            return follower.explanation
        follower.wait()


def _linux(_: click.Context, __: click.Parameter, value: bool) -> bool:
    if value and sys.platform != "linux":
        raise click.UsageError("--live needs Linux; breakscan report --follow tells the same from another shell")
    return value


live_option = click.option(
    "--live",
    is_flag=True,
    callback=_linux,
    help="Show on standard error what is compiled and what breaks, while the program runs.",
)


class Live:
    """Call :meth:`look` from time to time while the program runs, and :meth:`end` after that.

    On a terminal, the last lines of the screen are ours, and the program has those above.  Elsewhere, what is new is
    printed as lines.
    """

    def __init__(self, tally: Tally, follower: Follower) -> None:
        self._tally, self._follower = tally, follower
        self._news: deque[str] = deque(maxlen=_NEWS)
        self._bottom = _BottomLines(sys.stderr.fileno(), 1 + _NEWS) if _has_bottom_lines(1 + _NEWS) else None
        self._failed: Exception | None = None

    def look(self) -> None:
        if self._failed is not None:
            return
        try:
            self._tell(self._follower.news() if self._follower.is_due() else [])
        except Exception as error:
            # The program goes on, and so does the recording.
            self._failed = error
            self._leave()

    def end(self) -> None:
        """Gives the whole screen back; without a terminal, tells the rest."""
        if self._failed is not None:
            show_failure(self._failed)
            return
        try:
            if self._bottom is None:
                self._tell(self._follower.news())
        except Exception as error:
            show_failure(error)
        finally:
            self._leave()

    def _tell(self, news: list[str]) -> None:
        if self._bottom is None:
            # A single write, so that no output of the program comes in between.
            if news:
                os.write(sys.stderr.fileno(), "".join(f"{line}\n" for line in news).encode())
            return
        self._news.extend(news)
        self._tally.read()
        self._bottom.show(lambda width: live_lines(self._tally, self._news, width))

    def _leave(self) -> None:
        if self._bottom is not None:
            self._bottom.clear()


def _has_bottom_lines(number: int) -> bool:
    """Whether standard error is a terminal with room for so many lines, and the program is in front of it."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    with contextlib.suppress(OSError):
        fd = sys.stderr.fileno()
        return os.get_terminal_size(fd).lines >= number + _FEWEST_ABOVE and os.tcgetpgrp(fd) == os.getpgrp()
    return False


class _BottomLines:
    """The last ``number`` lines of the terminal of a file descriptor, for breakscan while a program writes to the lines
    above.

    The program writes to the terminal itself, so nothing may depend on where its cursor is: redrawing in place does.
    The terminal scrolls the lines above only (DECSTBM), and each write saves the cursor, draws, and restores it.
    """

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


def live_title(folder: Path) -> Callable[[], None] | None:
    """Shows the progress in the title of the window, because the program uses the screen.  Returns a function to call
    from time to time while the program runs; None without a terminal that has a title."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "linux"):
        return None
    tally = Tally(folder)

    def show() -> None:
        with contextlib.suppress(OSError, ValueError):
            tally.read()
            # A single write, so that no output of the program comes in between.
            os.write(sys.stderr.fileno(), f"\x1b]2;breakscan: {tally_words(tally)}\x07".encode())

    return show
