"""The tasks that wait on this machine, and the GPUs that are free for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from breakscan.survey.keyed_tasks import KeyedTask


class WaitingTasks:
    """Hands tasks out: one that needs a GPU when a GPU is free, and meanwhile those that need none."""

    def __init__(self, tasks: Sequence[KeyedTask], gpus: Sequence[int]) -> None:
        self._changed = threading.Condition()
        self._gpus = list(gpus)
        self._on_gpu = deque(one for one in tasks if one.needs_gpu)
        self._elsewhere = deque(one for one in tasks if not one.needs_gpu)

    def none_left(self) -> None:
        """Hands no more out."""
        with self._changed:
            self._on_gpu.clear()
            self._elsewhere.clear()
            self._changed.notify_all()

    @contextmanager
    def next(self) -> Iterator[tuple[KeyedTask, int | None] | None]:
        """The next task with its GPU, which it has until the end of the context; None when no more wait."""
        with self._changed:
            while self._on_gpu and not self._gpus and not self._elsewhere:
                self._changed.wait()
            gpu = self._gpus.pop(0) if self._on_gpu and self._gpus else None
            waiting = self._elsewhere if gpu is None else self._on_gpu
            task = waiting.popleft() if waiting else None
        try:
            yield None if task is None else (task, gpu)
        finally:
            if gpu is not None:
                with self._changed:
                    self._gpus.append(gpu)
                    self._changed.notify_all()
