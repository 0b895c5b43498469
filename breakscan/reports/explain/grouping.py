"""Which parts of an explanation a report shows together, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.findings import Origin
from breakscan.runtime.explain.explanation import Caller, Explanation, Recompile, UncompiledFrame


def by_cause(recompiles: Iterable[Recompile]) -> list[list[Recompile]]:
    """The recompiles grouped by the change that caused them; the changes that caused most come first."""
    groups: dict[int, list[Recompile]] = {}
    for recompile in recompiles:
        groups.setdefault(recompile.cause, []).append(recompile)
    return sorted(groups.values(), key=len, reverse=True)


def frames_on_their_own(explanation: Explanation) -> list[UncompiledFrame]:
    """The functions that are not compiled, without those that a break or their recompiles already explain."""
    over_limit = frames_over_limit(explanation)
    return [frame for frame in explanation.frames if frame.break_site is None and frame not in over_limit]


def frames_over_limit(explanation: Explanation) -> list[UncompiledFrame]:
    """The functions that run eager because they were recompiled too often, and whose recompiles were recorded."""
    recompiled = {recompile.function for recompile in explanation.recompiles}
    return [frame for frame in explanation.frames if frame.over_limit and frame.function in recompiled]


def users_line(stack: Iterable[Caller]) -> Caller | None:
    """The innermost line of a stack that is in the user's own code."""
    return next((caller for caller in reversed(tuple(stack)) if caller.origin is Origin.USER), None)
