"""A limit for the time that code of the user's program takes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class TimeLimitReached(BaseException):
    """The time is up. No ``except Exception`` of the program catches it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitReached in the block after some seconds, as soon as Python code runs. Only in the main thread."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimitReached

    handler = signal.signal(signal.SIGALRM, stop)
    # A program may have set a timer of its own.
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
