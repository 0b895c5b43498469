"""Each compilation of a function: what it cost, under which guards it holds, what caches had."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from breakscan.explain.cache_misses import cache_uses
from breakscan.explain.compiled import CacheUse, CompiledFrame, GuardLine
from breakscan.explain.context import ExplainContext
from breakscan.explain.forks import clock_shifts
from breakscan.explain.time_trees import time_trees
from breakscan.record.parsers.frames import is_resumed
from breakscan.record.parsers.guards import read_demand
from breakscan.record.records import (
    CompileStarted,
    CompileTimed,
    Guard,
    GuardsBuilt,
    KernelsTimed,
    Record,
    SpansTimed,
    TracingTimed,
)


def compiled_frames(processes: Sequence[Sequence[Record]], lens: ExplainContext) -> list[CompiledFrame]:
    """The compilations of all processes, in the order in which they began."""
    found = [
        frame
        for records, shift in zip(processes, clock_shifts(processes), strict=True)
        for frame in _frames(records, shift, lens)
    ]
    return sorted(found, key=lambda frame: frame.at)


def _frames(records: Sequence[Record], shift: float, lens: ExplainContext) -> Iterable[CompiledFrame]:
    started = {r.compile_id: r for r in records if isinstance(r, CompileStarted)}
    timed: dict[str, list[CompileTimed]] = defaultdict(list)
    caches = cache_uses(records)
    guards: dict[str | None, GuardsBuilt] = {}
    spans: dict[str, list[SpansTimed]] = defaultdict(list)
    lines: dict[str, list[TracingTimed]] = defaultdict(list)
    kernels: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        if isinstance(record, CompileTimed):
            timed[record.compile_id].append(record)
        elif isinstance(record, GuardsBuilt):
            guards[record.compile_id] = record
        elif isinstance(record, SpansTimed):
            spans[record.compile_id].append(record)
        elif isinstance(record, TracingTimed):
            lines[record.compile_id].append(record)
        elif isinstance(record, KernelsTimed):
            kernels[record.compile_id].update(dict(zip(record.names, record.seconds, strict=True)))
    for compile_id, times in timed.items():
        begun = started.get(compile_id)
        if begun is not None:
            frame = _frame(begun, times, guards.get(compile_id), caches.get(compile_id, ()), shift, lens)
            trees = time_trees(spans[compile_id], lines[compile_id], lens)
            yield replace(frame, time=trees, kernel_seconds=dict(kernels[compile_id]))


def _frame(
    begun: CompileStarted,
    times: Sequence[CompileTimed],
    built: GuardsBuilt | None,
    caches: Sequence[CacheUse],
    shift: float,
    lens: ExplainContext,
) -> CompiledFrame:
    phases: Counter[str] = Counter()
    for timed in times:
        phases.update(timed.phases)
    own = next((timed for timed in times if not timed.backward), None)
    return CompiledFrame(
        compile_id=begun.compile_id,
        function=lens.function_of(begun.code),
        site=lens.site_of(begun.code),
        origin=lens.origin(begun.code.path),
        rest_only=is_resumed(begun.code.name),
        at=begun.at + shift,
        seconds=own.seconds if own else 0.0,
        backward_seconds=sum(timed.seconds for timed in times if timed.backward),
        phases=dict(phases),
        guards=_guard_lines(built.guards, lens) if built else (),
        guard_count=own.guards if own else None,
        guard_seconds=built.check_seconds if built else None,
        guard_microseconds=own.guard_microseconds if own else None,
        caches=tuple(caches),
        restarts=tuple(reason.partition("\n")[0] for reason in own.restarts) if own else (),
        failed=own.failed if own else None,
    )


def _guard_lines(guards: Iterable[Guard], lens: ExplainContext) -> tuple[GuardLine, ...]:
    return tuple(dict.fromkeys(_guard_line(guard, lens) for guard in guards))


def _guard_line(guard: Guard, lens: ExplainContext) -> GuardLine:
    line = guard.line
    site = lens.sources.site(line.path, line.line, line.column, line.end_column) if line else None
    return GuardLine(guard.kind, read_demand(guard.kind, guard.text), site)
