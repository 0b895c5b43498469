"""What ``check`` finds beside what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from breakscan.check.baseline.known_findings import KnownFinding
from breakscan.model.findings import Finding
from breakscan.source.code_match import matched


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """``new`` findings are not allowed, ``known`` others are; ``gone`` that were allowed are not found any more.
    ``follows`` is what to allow from now on, of which ``unchecked`` entries were not looked at."""

    new: tuple[Finding, ...]
    known: int
    gone: int
    follows: tuple[KnownFinding, ...]
    unchecked: int = 0


def compare(
    allowed: Sequence[KnownFinding],
    found: Sequence[KnownFinding],
    was_checked: Callable[[KnownFinding], bool] = lambda one: True,
    stays: Callable[[KnownFinding], bool] = lambda one: False,
    *,
    add: bool = False,
) -> BaselineComparison:
    """Compares; what ``was_checked`` denies stays allowed, and what ``stays`` says does, found or not.  With ``add``,
    what is new is allowed from now on.

    Code that moved to another file, or whose function got another name, is known again if nothing else changed: there
    is no more of it than before.
    """
    looked_at = [one for one in allowed if was_checked(one)]
    match = matched(looked_at, found, [_without_path, _without_function])
    new = [finding for one in match.new for finding in one.findings]
    seen = set(looked_at)
    unchecked = [one for one in allowed if one not in seen]
    follows = list(unchecked)
    known = gone = 0
    for before, now in match.pairs:
        new += now.findings[before.count :]
        known += min(before.count, now.count)
        least = before.count if stays(before) else min(before.count, now.count)
        gone += max(0, before.count - max(least, now.count))
        follows.append(replace(now, count=max(least, now.count) if add else least))
    follows += match.new if add else []
    follows += filter(stays, match.gone)
    gone += sum(one.count for one in match.gone if not stays(one))
    order = {id(finding): number for number, finding in enumerate(f for one in found for f in one.findings)}
    return BaselineComparison(
        tuple(sorted(new, key=lambda finding: order[id(finding)])), known, gone, tuple(follows), len(unchecked)
    )


def _without_path(one: KnownFinding) -> Hashable:
    return one.function, one.rule, one.code


def _without_function(one: KnownFinding) -> Hashable:
    return one.path, one.rule, one.code
