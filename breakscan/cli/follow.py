"""Tells what happens in a run that is being recorded, until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from breakscan.runtime.explain.explanation import Explanation
from breakscan.runtime.session import RecordedRun

_PAUSE = 1.0
"""Seconds between two readings, at least."""
_READING = 10
"""Reading takes no more than one part in so many of the time: the program needs the processor more."""


def follow(read: Callable[[], tuple[RecordedRun, Explanation]], *, aside: bool) -> Explanation:
    """Prints what is new, again and again, until no rank of the run is left.  Returns the explanation of the whole.

    ``aside`` is for a report that programs read from standard output: the news goes to standard error.
    """
    from breakscan.reports.explain.news import News

    news = News()
    while True:
        began = time.monotonic()
        run, explanation = read()
        for line in news.lines(explanation):
            click.echo(line, err=aside)
        if not any(part.running for part in run.parts):
            return explanation
        time.sleep(max(_PAUSE, _READING * (time.monotonic() - began)))
