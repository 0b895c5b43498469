"""The spine: torch's structured trace, received in memory.

``torch._logging._internal.trace_structured`` builds every record as soon as the logger ``torch.__trace``
has a handler, so a handler turns the whole trace on, without files and without cost in steady state
(nothing is emitted on a cache hit).  Names of records and artifacts are stable from torch 2.6 to 2.15.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from breakscan.runtime.hooks.facts import stack_above_dynamo
from breakscan.runtime.recording import (
    BreakTraced,
    Code,
    CompileStarted,
    CompileTimed,
    GraphTraced,
    RecompileTraced,
    Record,
)

Sink = Callable[[float, Mapping[str, object], str | None], None]
"""Receives a record: its time in seconds since the epoch, its metadata, its payload."""


class TraceHandler(logging.Handler):
    """Hands every record to a sink.  ``errors`` holds what the sink raised: it must not reach the user's call."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(logging.DEBUG)
        self.sink = sink
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.sink(record.created, getattr(record, "metadata", {}), getattr(record, "payload", None))
        except Exception as error:
            self.errors.append(error)


@contextmanager
def structured_trace(sink: Sink) -> Iterator[TraceHandler]:
    """Records while the block runs.  ``torch`` is imported first: it sets the logger up."""
    import torch._logging  # noqa: F401

    logger = logging.getLogger("torch.__trace")
    handler = TraceHandler(sink)
    # First in line: torch's own lazy handler removes itself during its first record, and the loop over
    # the handlers then skips whichever stands behind it.
    logger.handlers.insert(0, handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def trace_record(metadata: Mapping[str, Any], payload: str | None) -> Record | None:
    """What a record of the trace says that the recording keeps, or None."""
    compile_id = _compile_id(metadata)
    if compile_id is None:
        return None
    if "dynamo_start" in metadata:
        # The stack in the record lacks its innermost frames where few of Dynamo's stand between; ours is whole.
        code = metadata["dynamo_start"]["stack"][-1]
        return CompileStarted(
            compile_id, Code(_file_name(code["filename"]), code["line"], code["name"]), stack_above_dynamo()
        )
    if "dynamo_output_graph" in metadata:
        return GraphTraced(compile_id)
    if timed := metadata.get("compilation_metrics"):
        return CompileTimed(compile_id, _seconds(timed), False, timed.get("graph_op_count"))
    if timed := metadata.get("bwd_compilation_metrics"):
        return CompileTimed(compile_id, _seconds(timed), True, None)
    artifact = metadata.get("artifact", {}).get("name")
    if artifact == "dynamo_graph_break_reason":
        return BreakTraced(compile_id, payload or "")
    if artifact == "recompile_reasons":
        # One reason comes as it is, several as a JSON list.
        text = payload or ""
        return RecompileTraced(compile_id, tuple(json.loads(text)) if text.startswith("[") else (text,))
    return None


def _compile_id(metadata: Mapping[str, Any]) -> str | None:
    """``0/1``, with ``!3/`` in front where compiled autograd asked for it."""
    frame_id, frame_compile_id = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    if frame_id is None:
        return None if autograd is None else f"!{autograd}"
    return f"{'' if autograd is None else f'!{autograd}/'}{frame_id}/{frame_compile_id}"


def _file_name(number: int | str) -> str:
    from torch._logging import structured

    return next((name for name, known in structured.INTERN_TABLE.items() if known == number), str(number))


def _seconds(metrics: Mapping[str, Any]) -> float:
    return float(metrics.get("duration_us") or 0) / 1e6
