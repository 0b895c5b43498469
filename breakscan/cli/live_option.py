"""The option ``--live`` of ``explain``: tells what happens in the run while the program uses the same terminal."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import click

from breakscan.cli.bottom_lines import BottomLines, has_bottom_lines
from breakscan.cli.failures import show_failure
from breakscan.cli.follow import Follower
from breakscan.record.recording import Tally

F = TypeVar("F", bound=Callable[..., Any])

SECONDS = 0.5
"""Between two looks at the recording."""
_NEWS = 3
"""Lines below the first."""


def live_option(command: F) -> F:
    """Adds the option, as ``live``, to a command."""
    return click.option(
        "--live",
        is_flag=True,
        callback=_linux,
        help="Show on standard error what is compiled and what breaks, while the program runs.",
    )(command)


class Live:
    """Call :meth:`look` from time to time while the program runs, and :meth:`end` after that.

    On a terminal, the last lines of the screen are ours, and the program has those above.  Elsewhere, what is new is
    printed as lines.
    """

    def __init__(self, tally: Tally, follower: Follower) -> None:
        self._tally, self._follower = tally, follower
        self._news: deque[str] = deque(maxlen=_NEWS)
        self._bottom = BottomLines(sys.stderr.fileno(), 1 + _NEWS) if has_bottom_lines(1 + _NEWS) else None
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
        from breakscan.report.explain.news import live_lines

        self._news.extend(news)
        self._tally.read()
        self._bottom.show(lambda width: live_lines(self._tally, self._news, width))

    def _leave(self) -> None:
        if self._bottom is not None:
            self._bottom.clear()


def _linux(_: click.Context, __: click.Parameter, value: bool) -> bool:
    if value and sys.platform != "linux":
        raise click.UsageError("--live needs Linux; breakscan report --follow tells the same from another shell")
    return value
