"""The hook into the structured trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from breakscan.recording.hooks.exports import ExportHook
from breakscan.recording.hooks.hook import Hook
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.hooks.structured_trace import records_of_trace, structured_trace
from breakscan.recording.hooks.values import ValueHook
from breakscan.recording.records import CompileStarted, CompileTimed, RankSeen


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

    def _record(self, _: float, metadata: Mapping[str, Any], payload: str | None) -> None:
        hooks = self.hooks
        if (rank := self._new_rank(metadata)) is not None:
            hooks.write(rank)
        hooks.loaded()
        hooks.of(ExportHook).names.saw(metadata)
        if hooks.exporting.level:
            return
        for said in records_of_trace(metadata, payload):
            if isinstance(said, CompileStarted | CompileTimed):
                hooks.of(RunHook).meter.compiled()
            for record in hooks.merged.records(said, metadata):
                hooks.write(record)
            if isinstance(said, CompileTimed):
                for record in hooks.of(ValueHook).tallies.records():
                    hooks.write(record)

    def _new_rank(self, metadata: Mapping[str, Any]) -> RankSeen | None:
        """The rank that the environment does not name, once a process: torch notes it as soon as there is a process
        group, also one that was made by hand."""
        rank = metadata.get("rank")
        seen = (os.getpid(), rank)
        if not isinstance(rank, int) or seen == self._rank:
            return None
        self._rank = (os.getpid(), rank)
        if os.environ.get("RANK") == str(rank):
            return None
        from torch import distributed

        return RankSeen(rank, distributed.get_world_size())
