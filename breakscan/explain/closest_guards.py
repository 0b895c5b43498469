"""Which of the guards that failed explains a recompile: one of the version that fits best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from breakscan.explain.compiled import CompiledFrame
from breakscan.record.parsers.guards import Demand, ParsedGuard, lost_view, read_guard
from breakscan.record.records import Code, FailedGuard, RecompileSeen


def closest_guards(process: Iterable[RecompileSeen]) -> list[FailedGuard | None]:
    """Of each recompile of a process, in their order.

    A version that failed at the same guard before was replaced then by another one: why that one does not fit is what
    is new.  Of the versions that are left, the one most of whose guards held before one failed.
    """
    known: set[tuple[Code, str, Demand]] = set()
    closest = []
    for seen in process:
        failed = [(guard, (seen.frame, _version(seen, guard), read_guard(guard.text).demand)) for guard in seen.guards]
        fresh = [guard for guard, key in failed if key not in known]
        closest.append(max(fresh or seen.guards, key=lambda guard: guard.executed, default=None))
        known.update(key for _, key in failed)
    return closest


def parsed_guard(seen: RecompileSeen, failed: FailedGuard, compiles: Mapping[str, CompiledFrame]) -> ParsedGuard:
    """What the guard demanded; ``compiles`` are the compiled versions by their ids."""
    version = compiles.get(_version(seen, failed))
    demands = [guard.demand for guard in version.guards] if version else []
    return lost_view(failed.text, demands) or read_guard(failed.text)


def _version(seen: RecompileSeen, guard: FailedGuard) -> str:
    """The unique id of the version that the guard is of: compiled in the same process, after the same reset."""
    prefix = (seen.compile_id or "").rpartition(":")[0]
    return f"{prefix}:{guard.compile_id}" if prefix else guard.compile_id
