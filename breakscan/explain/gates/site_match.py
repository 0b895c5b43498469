"""Which break of one run is which of another: see :mod:`breakscan.source.code_match`."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from breakscan.explain.explanation import BreakSite, Explanation, FrameStatus, UncompiledFrame
from breakscan.explain.exported import ExportFailure
from breakscan.model.findings import Origin, Verdict
from breakscan.source import code_match
from breakscan.source.code_match import Matched, identity

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
        known = found.setdefault(identity(one), one)
        if known is not one:
            worst = max(known.verdict, one.verdict, key=SEVERITIES.index)
            found[identity(one)] = replace(
                known, verdict=worst, count=known.count + one.count, line=min(known.line, one.line)
            )
    return list(found.values())


def matched(before: Sequence[KnownBreak], after: Sequence[KnownBreak]) -> Matched[KnownBreak]:
    """Pairs what is the same; then what breaks the same line for another reason, as on another torch; then, within a
    function, the same kind of break on a line that was edited."""
    return code_match.matched(before, after, [_line])


def _line(one: KnownBreak) -> Hashable:
    return one.path, one.function, one.code


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
