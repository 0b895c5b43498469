"""Tells what happens in a run that is being recorded, until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from breakscan.explain.explanation import Explanation
from breakscan.record.session import RecordedRun

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
