"""Whether processes are timed or do other work: nobody compiles while steps are timed on another device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class TimingTurns:
    """Threads that work may do so at the same time, and so may those that time; the two take turns. Those that time go
    first, as soon as the others have ended what they do.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working = 0
        self._timing = 0
        self._waiting_to_time = 0

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Waits until nobody times or waits to time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._timing and not self._waiting_to_time)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Waits until nobody works."""
        with self._changed:
            self._waiting_to_time += 1
            try:
                self._changed.wait_for(lambda: not self._working)
                self._timing += 1
            finally:
                self._waiting_to_time -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._timing -= 1
                self._changed.notify_all()
