"""Which break of one run is which of another, whatever lines were put in above it.

A break is known by its file, its function, what breaks, and the text of its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from breakscan.findings import Origin, Verdict
from breakscan.runtime.explain.explanation import BreakSite, Explanation, FrameStatus, UncompiledFrame
from breakscan.runtime.explain.exported import ExportFailure

SIMILAR = 0.6
"""From this ratio of ``difflib`` on, a line counts as another one edited."""
SEVERITIES = (Verdict.SPLITS, Verdict.EAGER, Verdict.RAISES)
"""From the mildest to the worst."""

_INSTALLED = re.compile(r".*/((?:site|dist)-packages/.*)")


@dataclass(frozen=True, slots=True)
class KnownBreak:
    """All breaks of one kind on lines of one text in a function: ``count`` is how often the compiler met them, ``line``
    the first of the lines, ``verdict`` the worst that happened there.  ``path`` is the same on every machine."""

    path: str
    function: str | None
    rule: str | None
    gb: str | None
    type: str
    code: str
    verdict: Verdict
    count: int
    line: int

    @property
    def kind(self) -> str:
        """What breaks: the rule, else PyTorch's name."""
        return self.rule or self.type


@dataclass(frozen=True, slots=True)
class Matched:
    """The breaks of two runs: those of both, in pairs, and those of one."""

    pairs: Sequence[tuple[KnownBreak, KnownBreak]]
    gone: Sequence[KnownBreak]
    new: Sequence[KnownBreak]


def known_breaks(explanation: Explanation, folder: str) -> list[KnownBreak]:
    """The breaks of a run in code that is not torch's own, the functions that fall back to eager without one, and what
    stands against exports.

    Paths are relative to ``folder``, an absolute path; those of the explanation to the working directory.
    """
    found = [_of_site(site, folder) for site in explanation.breaks if site.origin is not Origin.FRAMEWORK]
    found += [_of_function(frame, folder) for frame in given_up_alone(explanation)]
    found += [_of_export(failure, folder) for failure in explanation.export_failures]
    return merged(found)


def given_up_alone(explanation: Explanation) -> list[UncompiledFrame]:
    """The functions that are not compiled and have no graph break to blame, but for torch's own, and those that were
    recompiled too often."""
    return [
        frame
        for frame in explanation.frames
        if frame.break_site is None
        and frame.status in (FrameStatus.EAGER, FrameStatus.RAISED)
        and frame.origin is not Origin.FRAMEWORK
        and not frame.over_limit
    ]


def portable_path(path: str, folder: str | None) -> str:
    """A path as it is on every machine: of an installed file from ``site-packages`` on, of others relative to a folder,
    or unchanged where that is None.

    ``path`` is absolute or relative to the working directory.
    """
    if installed := _INSTALLED.fullmatch(path.replace(os.sep, "/")):
        return installed[1]
    if folder is None or path.startswith("<"):
        return path
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:  # on another drive
        return path.replace(os.sep, "/")


def merged(breaks: Iterable[KnownBreak]) -> list[KnownBreak]:
    """Merges breaks that cannot be distinguished, in order."""
    found: dict[Hashable, KnownBreak] = {}
    for one in breaks:
        known = found.setdefault(_whole(one), one)
        if known is not one:
            worst = max(known.verdict, one.verdict, key=SEVERITIES.index)
            found[_whole(one)] = replace(
                known, verdict=worst, count=known.count + one.count, line=min(known.line, one.line)
            )
    return list(found.values())


def matched(before: Sequence[KnownBreak], after: Sequence[KnownBreak]) -> Matched:
    """Pairs what is the same; then what breaks the same line for another reason, as on another torch; then, within a
    function, the same kind of break on a line that was edited."""
    pairs: list[tuple[KnownBreak, KnownBreak]] = []
    gone, new = list(before), list(after)
    for key in (_whole, _line):
        pairs += _paired(gone, new, key)
    pairs += _edited(gone, new)
    order = {id(one): number for number, one in enumerate(after)}
    return Matched(sorted(pairs, key=lambda pair: order[id(pair[1])]), gone, new)


def _whole(one: KnownBreak) -> Hashable:
    return one.path, one.function, one.kind, one.code


def _line(one: KnownBreak) -> Hashable:
    return one.path, one.function, one.code


def _paired(
    gone: list[KnownBreak], new: list[KnownBreak], key: Callable[[KnownBreak], Hashable]
) -> list[tuple[KnownBreak, KnownBreak]]:
    """Takes the pairs with equal keys out of both lists."""
    waiting: dict[Hashable, list[KnownBreak]] = {}
    for one in gone:
        waiting.setdefault(key(one), []).append(one)
    pairs = [(same.pop(0), other) for other in new if (same := waiting.get(key(other)))]
    _take_out(pairs, gone, new)
    return pairs


def _edited(gone: list[KnownBreak], new: list[KnownBreak]) -> list[tuple[KnownBreak, KnownBreak]]:
    alike = sorted(
        (
            (-ratio, i, j)
            for i, one in enumerate(gone)
            for j, other in enumerate(new)
            if (one.path, one.function, one.kind) == (other.path, other.function, other.kind)
            and (ratio := SequenceMatcher(None, one.code, other.code).ratio()) >= SIMILAR
        ),
    )
    pairs: list[tuple[KnownBreak, KnownBreak]] = []
    for _, i, j in alike:
        if not any(gone[i] is one or new[j] is other for one, other in pairs):
            pairs.append((gone[i], new[j]))
    _take_out(pairs, gone, new)
    return pairs


def _take_out(pairs: Iterable[tuple[KnownBreak, KnownBreak]], gone: list[KnownBreak], new: list[KnownBreak]) -> None:
    taken = {id(one) for pair in pairs for one in pair}
    gone[:] = [one for one in gone if id(one) not in taken]
    new[:] = [one for one in new if id(one) not in taken]


def _of_site(site: BreakSite, folder: str) -> KnownBreak:
    return _known(site, folder, site.gb_type, site.verdict)


def _of_function(frame: UncompiledFrame, folder: str) -> KnownBreak:
    verdict = Verdict.RAISES if frame.status is FrameStatus.RAISED else Verdict.EAGER
    return _known(frame, folder, frame.gb_type or "not compiled", verdict)


def _of_export(failure: ExportFailure, folder: str) -> KnownBreak:
    return _known(failure, folder, failure.gb_type or failure.problem.value, Verdict.RAISES)


def _known(found: BreakSite | UncompiledFrame | ExportFailure, folder: str, type_: str, verdict: Verdict) -> KnownBreak:
    return KnownBreak(
        path=portable_path(found.site.path, folder),
        function=found.function,
        rule=found.rule.id if found.rule else None,
        gb=found.gb_id,
        type=type_,
        code=found.code or "",
        verdict=verdict,
        count=found.count,
        line=found.site.line,
    )
