"""The calls of what was compiled that ran eager, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from breakscan.explain.callers import Caller
from breakscan.explain.context import ExplainContext
from breakscan.explain.explanation import EagerCalls, FrameStatus, UncompiledFrame
from breakscan.explain.forks import Inherited
from breakscan.model.findings import Origin, Site
from breakscan.record.records import DEFAULT_STANCE, CallsRan, Code, CompileCalled, EagerCallsRan, Record

_About = Code | str
"""What was called, as in :class:`.run_totals.Ran`: what shares its code is one."""


def eager_calls(
    processes: Sequence[Sequence[Record]], frames: Iterable[UncompiledFrame], context: ExplainContext
) -> list[EagerCalls]:
    """Those of each function and stance, the most frequent first.

    Under the default stance, only functions count that are known not to be compiled: of others, code that was compiled
    before the recording may have run.
    """
    called: Inherited[CompileCalled] = Inherited(processes)
    for process, records in enumerate(processes):
        for record in records:
            if isinstance(record, CompileCalled):
                called.add(process, record.key, record)
    all_calls: dict[_About, int] = defaultdict(int)
    eager: dict[tuple[_About, str], list[tuple[CompileCalled, EagerCallsRan]]] = defaultdict(list)
    for process, records in enumerate(processes):
        for ran in {one.key: one for one in records if isinstance(one, CallsRan)}.values():
            if (call := called.get(process, ran.key)) is not None:
                all_calls[call.code or call.target] += ran.calls
        latest = {(one.key, one.stance): one for one in records if isinstance(one, EagerCallsRan)}
        for found in latest.values():
            if (call := called.get(process, found.key)) is not None:
                eager[call.code or call.target, found.stance].append((call, found))
    given_up = {(frame.function, frame.site): frame for frame in frames if _is_given_up(frame)}
    told = []
    for (about, stance), parts in eager.items():
        first, ran_first = parts[0]
        name, site, origin = _function(first, context)
        frame = given_up.get((name, site))
        if stance == DEFAULT_STANCE and frame is None:
            continue
        told.append(
            EagerCalls(
                function=name,
                site=site,
                origin=origin,
                calls=sum(ran.calls for _, ran in parts),
                of=all_calls[about],
                stance=stance,
                caller=next(iter(reversed(context.callers(ran_first.stack))), None),
                reason=frame.reason if frame is not None and stance == DEFAULT_STANCE else None,
            )
        )
    return sorted(told, key=lambda one: -one.calls)


def _is_given_up(frame: UncompiledFrame) -> bool:
    return frame.status in (FrameStatus.EAGER, FrameStatus.RAISED) and not frame.rest_only


def _function(call: CompileCalled, context: ExplainContext) -> tuple[str, Site, Origin]:
    """The function, and its head.  Where that is torch's own, as the ``forward`` of ``nn.Sequential``: what was passed
    to torch.compile, and the line that did."""
    if call.code is not None and context.origin(call.code.path) is not Origin.FRAMEWORK:
        return context.function_of(call.code), context.site_of(call.code), context.origin(call.code.path)
    callers = context.callers(call.stack)
    where = callers[-1] if callers else Caller("<unknown>", 1, None, Origin.USER)
    return call.target, Site(where.path, where.line, 1, where.line, 1), where.origin
