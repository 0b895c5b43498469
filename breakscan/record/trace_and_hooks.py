"""Makes one record of what both the structured trace and a hook say.

Where a hook works, its record counts, and the trace fills in what the hook cannot see.  Where torch lacks what the
hook needs, or the hook has failed, the record is made from the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakscan.record.cache_lookups import CacheLookups
from breakscan.record.parsers.recompile_reasons import failed_guard
from breakscan.record.records.compiles import BreakSeen, CompileStarted, CompileTimed
from breakscan.record.records.guards import GuardsBuilt, RecompileSeen
from breakscan.record.records.record import Record
from breakscan.record.spans import SpanTrees
from breakscan.record.trace_fallback import TraceFallback
from breakscan.record.traced import (
    Traced,
    TracedBreak,
    TracedError,
    TracedGraph,
    TracedLookup,
    TracedRecompile,
    TracedSpan,
)


class TraceAndHooks:
    """Decides for one process.  ``works`` tells whether a hook, by its name, saw what the trace speaks of now;
    ``numbers`` numbers the graphs."""

    def __init__(self, works: Callable[[str], bool], numbers: Iterator[int]) -> None:
        self._works = works
        self._fallback = TraceFallback(numbers)
        self._spans = SpanTrees()
        self._lookups = CacheLookups()
        self._recompiles: dict[str, RecompileSeen] = {}
        self._guards: dict[str | None, GuardsBuilt] = {}

    def records(self, said: Traced, metadata: Mapping[str, Any]) -> Iterator[Record]:
        """What to record of a statement of the trace."""
        if isinstance(said, CompileStarted):
            yield said
            if seen := self._recompiles.pop(said.compile_id, None):
                yield seen
            # The stacks of a long run take memory.  Where all hooks work, nothing asks for them.
            yield from self._fallback.start(said if self._needs_stacks() else replace(said, stack=()))
        elif isinstance(said, CompileTimed) and not said.backward:
            yield from self._ended(said, metadata["compilation_metrics"])
            yield said
        elif isinstance(said, TracedBreak):
            if not self._works("breaks"):
                yield self._fallback.broke(said)
        elif isinstance(said, TracedRecompile):
            seen = self._recompiles.get(said.compile_id)
            if not self._works("recompiles"):
                self._fallback.keep(said)
            elif seen and not seen.guards:
                # No guard of the function's own failed.  The trace names what else did not fit, such as the backend.
                guards = tuple(map(failed_guard, said.reasons))
                self._recompiles[said.compile_id] = replace(seen, guards=guards)
        elif isinstance(said, TracedGraph | TracedError):
            self._fallback.keep(said)
        elif isinstance(said, TracedSpan):
            yield from self._spans.take(said)
        elif isinstance(said, TracedLookup):
            yield from self._lookups.take(said)
        elif isinstance(said, GuardsBuilt) and self._works("guards"):
            self._guards[said.compile_id] = said
        else:
            yield said

    def saw_break(self, record: BreakSeen) -> None:
        """A hook saw and recorded a break."""
        self._fallback.saw(record)

    def saw_recompile(self, record: RecompileSeen) -> None:
        """The hook saw a recompile that is about to start.  One that exceeds the recompile limit never does, and is
        not recorded."""
        if record.compile_id is not None:
            self._recompiles[record.compile_id] = record

    def saw_guards(self, compile_id: str | None) -> GuardsBuilt | None:
        """The guards for which the hook knows the lines.  The trace reported them just before."""
        return self._guards.pop(compile_id, None)

    def waiting(self) -> Sequence[Record]:
        """The guards that still wait for their lines when the recording ends."""
        return list(self._guards.values())

    def _ended(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[Record]:
        if not self._works("frames"):
            yield from self._fallback.failure(timed, metrics)
        if self._works("graphs"):
            self._fallback.forget_graph(timed.compile_id)
        else:
            yield from self._fallback.compiled(timed, metrics)

    def _needs_stacks(self) -> bool:
        return not all(map(self._works, ("breaks", "recompiles", "frames", "graphs")))
