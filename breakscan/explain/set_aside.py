"""Where a program would have ended, had ``--keep-going`` not set ``fullgraph=True`` aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from breakscan.explain.break_sites import BreakSites
from breakscan.explain.context import ExplainContext
from breakscan.explain.notice import Notice, NoticeKind
from breakscan.model.findings import Site
from breakscan.record.records import BreakSeen, CompileStarted, FrameEnded, Record


def set_aside_notice(
    records: Iterable[Record], keys: BreakSites, started: Mapping[str, CompileStarted], lens: ExplainContext
) -> Iterator[Notice]:
    """One notice, where something would have raised."""
    first = next((r for r in records if isinstance(r, BreakSeen | FrameEnded) and r.set_aside), None)
    if first is None:
        return
    site = keys.key(first)[0] if isinstance(first, BreakSeen) else lens.site_of(first.frame)
    begun = started.get(first.compile_id or "") if isinstance(first, BreakSeen) else None
    callers = lens.callers(begun.stack) if begun else ()
    called = [Site(caller.path, caller.line, 1, caller.line, 1) for caller in callers[-1:]]
    yield Notice(NoticeKind.SET_ASIDE, sites=(site, *called))
