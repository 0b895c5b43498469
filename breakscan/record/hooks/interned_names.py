"""The names of files that torch has numbered for its structured trace, as they would be without us.

``draft_export`` turns the trace on for itself, and leaves out of its report the files that were numbered before.
Without a handler, torch numbers next to none; with ours, most.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from breakscan.record.hooks.structured_trace import TraceHandler


class InternedNames:
    """Keeps the names that torch would know without us."""

    def __init__(self) -> None:
        self._alone: dict[str, int] | None = None

    def saw(self, metadata: Mapping[str, Any]) -> None:
        """A record of the trace.  Torch's own handler stands until the first record, which names of files precede."""
        if self._alone is None and "str" not in metadata:
            self._alone = dict(_table())

    @contextmanager
    def as_alone(self) -> Iterator[None]:
        """Torch knows those names alone while the block runs.  Where the program has the trace on, it knows all."""
        if any(map(_writes, logging.getLogger("torch.__trace").handlers)):
            yield
            return
        table = _table()
        with_us = None if self._alone is None else dict(table)
        if self._alone is not None:
            _fill(table, self._alone)
        try:
            yield
        finally:
            self._alone = dict(table)
            if with_us is not None:
                _fill(table, with_us)


def _writes(handler: logging.Handler) -> bool:
    """Whether the handler is the program's: not ours, nor torch's own, which without a folder gives up at its first
    record."""
    if isinstance(handler, TraceHandler):
        return False
    return type(handler).__name__ != "LazyTraceHandler" or getattr(handler, "root_dir", None) is not None


def _table() -> dict[str, int]:
    from torch._logging import structured

    return structured.INTERN_TABLE


def _fill(table: dict[str, int], names: Mapping[str, int]) -> None:
    table.clear()
    table.update(names)
