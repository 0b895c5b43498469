"""A progress bar on stderr for work that lasts."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 1.0
"""Seconds of work before a bar appears."""


class ProgressBar:
    """Shows ``done`` of ``total`` when called, on a terminal, once the work has lasted a second; then goes away.
    One that is ``quiet`` shows nothing."""

    def __init__(
        self, label: str, stream: TextIO | None = None, patience: float = PATIENCE, *, quiet: bool = False
    ) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._patience = patience
        self._quiet = quiet
        self._started = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            if self._quiet or not self._stream.isatty() or time.monotonic() - self._started < self._patience:
                return
            self._bar = self._start(total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start(self, total: int) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bar = Progress(*columns, console=Console(file=self._stream), transient=True)
        bar.add_task(self._label, total=total)
        bar.start()
        return bar
