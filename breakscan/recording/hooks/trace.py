"""The hook into the structured trace."""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from breakscan.recording.hooks.hook import Hook, stack_above_dynamo
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.hooks.targets import DraftHook
from breakscan.recording.hooks.values import ValueHook
from breakscan.recording.records import CompileStarted, CompileTimed, RankSeen
from breakscan.recording.traced import trace_records


class TraceHook(Hook):
    """Records what the structured trace says, and what other hooks know of a compilation that it says has ended."""

    name = "trace"
    without = "compile times are missing"
    needs = ("torch._logging._internal:trace_structured", "torch._logging.structured:INTERN_TABLE")
    during_exports = True
    _rank: tuple[int, int] | None = None

    @contextmanager
    def installed(self) -> Iterator[bool]:
        with structured_trace(self.guarded(self._record)):
            yield True

    def _record(self, metadata: Mapping[str, Any], payload: str | None) -> None:
        hooks = self.hooks
        if (rank := self._new_rank(metadata)) is not None:
            hooks.write(rank)
        hooks.loaded()
        hooks.of(DraftHook).saw(metadata)
        if hooks.exporting.level:
            return
        for said in trace_records(metadata, payload, time.perf_counter(), _file_name, stack_above_dynamo):
            if isinstance(said, CompileStarted | CompileTimed):
                hooks.of(RunHook).compiled()
            if isinstance(said, CompileTimed):
                said = replace(said, step=hooks.of(RunHook).step)
            for record in hooks.merged.records(said, metadata):
                hooks.write(record)
            if isinstance(said, CompileTimed):
                for record in hooks.of(ValueHook).records():
                    hooks.write(record)

    def _new_rank(self, metadata: Mapping[str, Any]) -> RankSeen | None:
        """The rank that the environment does not name, once a process: torch notes it once there is a process group."""
        rank = metadata.get("rank")
        seen = (os.getpid(), rank)
        if not isinstance(rank, int) or seen == self._rank:
            return None
        self._rank = (os.getpid(), rank)
        if os.environ.get("RANK") == str(rank):
            return None
        from torch import distributed

        return RankSeen(rank, distributed.get_world_size())


@contextmanager
def structured_trace(sink: Callable[[Mapping[str, object], str | None], object]) -> Iterator[None]:
    """Hands the metadata and the payload of each record to a sink while the block runs; its exceptions reach the caller
    of compiled code.  ``torch`` is imported first: it sets the logger up."""
    import torch._logging  # noqa: F401

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sink(getattr(record, "metadata", {}), getattr(record, "payload", None))

    logger = logging.getLogger("torch.__trace")
    handler = Handler(logging.DEBUG)
    # First in line: torch's own lazy handler removes itself during its first record, and the loop over
    # the handlers then skips the one after it.
    logger.handlers.insert(0, handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _file_name(number: int | str) -> str:
    from torch._logging import structured

    return next((name for name, known in structured.INTERN_TABLE.items() if known == number), str(number))
