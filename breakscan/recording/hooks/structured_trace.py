"""Torch's structured trace, received in memory: the source that every supported torch has.

``torch._logging._internal.trace_structured`` builds every record as soon as the logger ``torch.__trace``
has a handler, so a handler turns the whole trace on, without files and without cost in steady state
(nothing is emitted on a cache hit).  Names of records and artifacts are stable since torch 2.6.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from breakscan.recording.hooks.object_facts import stack_above_dynamo
from breakscan.recording.traced import Traced, trace_records

Sink = Callable[[float, Mapping[str, object], str | None], None]
"""Receives a record: its time in seconds since the epoch, its metadata, its payload."""


class TraceHandler(logging.Handler):
    """Hands every record to a sink, whose exceptions reach the caller of compiled code."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(logging.DEBUG)
        self.sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        self.sink(record.created, getattr(record, "metadata", {}), getattr(record, "payload", None))


@contextmanager
def structured_trace(sink: Sink) -> Iterator[TraceHandler]:
    """Records while the block runs.  ``torch`` is imported first: it sets the logger up."""
    import torch._logging  # noqa: F401

    logger = logging.getLogger("torch.__trace")
    handler = TraceHandler(sink)
    # First in line: torch's own lazy handler removes itself during its first record, and the loop over
    # the handlers then skips the one after it.
    logger.handlers.insert(0, handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def records_of_trace(metadata: Mapping[str, Any], payload: str | None) -> Iterator[Traced]:
    """The statements of a record of the trace."""
    return trace_records(metadata, payload, time.perf_counter(), _file_name, stack_above_dynamo)


def _file_name(number: int | str) -> str:
    from torch._logging import structured

    return next((name for name, known in structured.INTERN_TABLE.items() if known == number), str(number))


class InternedNames:
    """Keeps the names of files that torch would have numbered without us.

    ``draft_export`` turns the trace on for itself, and leaves out of its report the files that were numbered before.
    Without a handler, torch numbers next to none; with ours, most.
    """

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
    """Return whether the handler is the program's: not ours, nor torch's own, which without a folder gives up at its
    first record."""
    if isinstance(handler, TraceHandler):
        return False
    return type(handler).__name__ != "LazyTraceHandler" or getattr(handler, "root_dir", None) is not None


def _table() -> dict[str, int]:
    from torch._logging import structured

    return structured.INTERN_TABLE


def _fill(table: dict[str, int], names: Mapping[str, int]) -> None:
    table.clear()
    table.update(names)
