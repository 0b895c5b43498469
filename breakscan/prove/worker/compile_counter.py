"""Counts the compiles that start while a block runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class CompileCounter:
    """``count`` grows by one with each compile that starts."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, *_: object) -> None:
        """A compile has started."""
        self.count += 1


@contextlib.contextmanager
def compiles_counted() -> Iterator[CompileCounter]:
    """Yields a counter of the compiles that start in the block."""
    from torch._dynamo.callback import callback_handler

    counter = CompileCounter()
    callback_handler.register_start_callback(counter.started)
    try:
        yield counter
    finally:
        callback_handler.remove_start_callback(counter.started)
