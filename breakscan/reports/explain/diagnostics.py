"""What a run comes to as messages at lines: the form that annotations and code scanning take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from breakscan.findings import Origin, Severity, Site, Verdict
from breakscan.reports.explain.price_words import dearest_first
from breakscan.reports.explain.words import listed, recompile_sentence, useful_hints, verdict_sentence
from breakscan.reports.shared.site_words import short_path
from breakscan.reports.shared.wording import sentence
from breakscan.rulebook.document import Rule
from breakscan.runtime.explain.explanation import (
    BreakSite,
    Caller,
    Explanation,
    FrameStatus,
    Recompile,
    UncompiledFrame,
)
from breakscan.runtime.explain.ranks import alike

_SEVERITIES = {Verdict.RAISES: Severity.ERROR, Verdict.EAGER: Severity.ERROR, Verdict.SPLITS: Severity.WARNING}
_OWNERS = tuple(Origin)
_EXPLAINED = re.compile(r"(BRK|GB)\d")


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a point speaks of."""

    site: Site
    words: str


@dataclass(frozen=True, slots=True)
class Point:
    """A message at a line of the user's: ``id`` and ``name`` are those of the rule, else of PyTorch's break or of the
    kind of point.  A site whose columns are not known is empty.  ``message`` is sentences; ``stack`` the way to it,
    outermost first; ``code`` the line's text."""

    id: str
    name: str
    rule: Rule | None
    severity: Severity
    site: Site
    function: str | None
    message: str
    count: int = 1
    code: str | None = None
    stack: tuple[Caller, ...] = ()
    related: tuple[Related, ...] = ()

    @property
    def title(self) -> str:
        """The name, with the id where breakscan or PyTorch explains it under that."""
        return f"{self.id} {self.name}" if _EXPLAINED.match(self.id) else self.name


def points(explanation: Explanation) -> Iterator[Point]:
    """Breaks, functions that are not compiled, recompiles, and what else has a line.  Of breaks, those in the user's
    code come first, and there the dearest."""
    by_owner = sorted(explanation.breaks, key=lambda site: (_OWNERS.index(site.origin), dearest_first(site)))
    yield from map(_break, by_owner)
    yield from map(_frame, frames_told_alone(explanation))
    over_limit = {frame.function: frame for frame in frames_over_limit(explanation)}
    for group in by_cause(explanation.recompiles):
        given_up = [over_limit[r.function] for r in group if r.function is not None and r.function in over_limit]
        yield _recompile(group, given_up)
    for difference in explanation.ranks.differences if explanation.ranks else ():
        if difference.site:
            each = ", ".join(f"{ranks} {what}" for ranks, what in alike(difference.by_rank))
            message = _sentences(f"The ranks differ in {difference.what}: {each}")
            yield Point("rank-difference", "ranks", None, Severity.ERROR, difference.site, None, message)
    for skip in explanation.cudagraph_skips:
        if skip.site:
            message = _sentences(f"Graphs do not run as CUDA graphs: {skip.reason}")
            yield Point("cudagraph-skip", "CUDA graphs", None, Severity.WARNING, skip.site, None, message, skip.count)
    for size in explanation.specialisations:
        if size.site:
            what = f"A dynamic size, {listed(size.sources, 'input')}, became the constant {size.value}"
            message = _sentences(what, f"Why: {size.reason}")
            yield Point("specialisation", "specialisation", None, Severity.INFO, size.site, None, message)


def by_cause(recompiles: Iterable[Recompile]) -> list[list[Recompile]]:
    """The recompiles that one change caused, together; the changes that caused most come first."""
    groups: dict[int, list[Recompile]] = {}
    for recompile in recompiles:
        groups.setdefault(recompile.cause, []).append(recompile)
    return sorted(groups.values(), key=len, reverse=True)


def frames_told_alone(explanation: Explanation) -> list[UncompiledFrame]:
    """The functions that are not compiled, but for those that a break or their recompiles tell of."""
    over_limit = frames_over_limit(explanation)
    return [frame for frame in explanation.frames if frame.break_site is None and frame not in over_limit]


def frames_over_limit(explanation: Explanation) -> list[UncompiledFrame]:
    """The functions that were given up because they were compiled too often, and that have recompiles to tell so."""
    recompiled = {recompile.function for recompile in explanation.recompiles}
    return [frame for frame in explanation.frames if frame.over_limit and frame.function in recompiled]


def users_line(stack: Iterable[Caller]) -> Caller | None:
    """The innermost line of a stack that is the user's own."""
    return next((caller for caller in reversed(tuple(stack)) if caller.origin is Origin.USER), None)


def _break(site: BreakSite) -> Point:
    id_, name = _named(site.rule, site.gb_id or "graph-break", site.gb_type)
    times = "" if site.count == 1 else f" {site.count} times"
    verb = "torch.compile raises" if site.verdict is Verdict.RAISES else "The graph breaks"
    beyond = verdict_sentence(site)
    shown, related = site.site, []
    users = users_line(site.stack) if site.origin is not Origin.USER else None
    if users:
        shown = _line_of(users)
        where = f"{short_path(site.site.path)}:{site.site.line}"
        inside = f"in {site.function} ({where})" if site.function else f"at {where}"
        first = f"{verb}{times} {inside}, which this line leads to"
        related.append(Related(site.site, f"the break{f' in {site.function}' if site.function else ''}"))
    else:
        first = f"{verb} here{times}"
        if site.verdict is Verdict.RAISES and beyond:
            first, beyond = beyond, None
    why = site.rule.why if site.rule else site.reason
    return Point(
        id=id_,
        name=name,
        rule=site.rule,
        severity=_SEVERITIES[site.verdict],
        site=shown,
        function=users.function if users else site.function,
        message=_sentences(first, f"Why: {why}", beyond, *_todo(site)),
        count=site.count,
        code=None if users else site.code,
        stack=site.stack,
        related=tuple(related),
    )


def _todo(site: BreakSite) -> list[str]:
    if site.advice:
        return [f"Instead: {site.advice}"]
    if site.rule or site.origin is Origin.FRAMEWORK:
        return []
    return [f"Hint: {hint}" for hint in useful_hints(site.hints)[:1]]


def _frame(frame: UncompiledFrame) -> Point:
    id_, name = _named(frame.rule, frame.gb_id or "not-compiled", frame.gb_type or "not compiled")
    what = {
        FrameStatus.EAGER: "runs as plain Python",
        FrameStatus.RAISED: "fails to compile",
        FrameStatus.PASSED_OVER: "holds nothing to compile",
    }[frame.status]
    return Point(
        id=id_,
        name=name,
        rule=frame.rule,
        severity=Severity.INFO if frame.status is FrameStatus.PASSED_OVER else Severity.ERROR,
        site=frame.site,
        function=frame.function,
        message=_sentences(
            f"{frame.function} {what}", f"Why: {frame.reason}", frame.advice and f"Instead: {frame.advice}"
        ),
        count=frame.count,
        code=frame.code,
    )


def _recompile(group: Sequence[Recompile], given_up: Sequence[UncompiledFrame]) -> Point:
    first = group[0]
    id_, name = _named(first.rule, "recompile", "recompiled")
    functions = listed([r.function or "a function" for r in group], "function")
    times = "" if len(group) == 1 else f" {len(group)} times"
    at_call = first.origin is not Origin.USER and first.trigger and first.trigger.origin is Origin.USER
    related = []
    if first.trigger and not at_call:
        related.append(Related(_line_of(first.trigger), "the call"))
    elif at_call:
        related.append(Related(first.site, "what relies on the old value"))
    return Point(
        id=id_,
        name=name,
        rule=first.rule,
        severity=Severity.ERROR if given_up else Severity.WARNING,
        site=_line_of(first.trigger) if first.trigger and at_call else first.site,
        function=first.trigger.function if first.trigger and at_call else first.function,
        message=_sentences(
            f"Compiled again{times} ({functions}): {recompile_sentence(group)}",
            *dict.fromkeys(f"{frame.function} is given up: {frame.reason}" for frame in given_up),
            first.advice and f"Instead: {first.advice}",
        ),
        count=len(group),
        related=tuple(related),
    )


def _named(rule: Rule | None, id_: str, name: str) -> tuple[str, str]:
    return (rule.id, rule.name) if rule else (id_, name)


def _line_of(caller: Caller) -> Site:
    return Site(caller.path, caller.line, 1, caller.line, 1)


def _sentences(*parts: str | None) -> str:
    return " ".join(sentence(part) for part in parts if part and part.strip())
