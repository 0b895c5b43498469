"""A run as diagnostics: breaks, functions that are not compiled, recompiles, and what else has a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakscan.findings import Origin, Severity, Site, Verdict
from breakscan.reports.diagnostics.diagnostic import Diagnostic, DiagnosticReport, Location, Remark
from breakscan.reports.explain.advice_words import recompile_advice
from breakscan.reports.explain.grouping import by_cause, frames_on_their_own, frames_over_limit, users_line
from breakscan.reports.explain.price_words import dearest_first
from breakscan.reports.explain.report import ExplainReport
from breakscan.reports.explain.words import (
    headline,
    outcome_line,
    recompile_sentence,
    useful_hints,
    verdict_sentence,
    why_nothing_compiled,
)
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.site_words import short_path
from breakscan.reports.shared.wording import listed
from breakscan.rulebook.document import Rule
from breakscan.runtime.explain.compiled import CudaGraphSkip, Specialisation
from breakscan.runtime.explain.explanation import (
    BreakSite,
    Caller,
    Explanation,
    FrameStatus,
    RankDifference,
    Recompile,
    UncompiledFrame,
)
from breakscan.runtime.explain.ranks import alike

_SEVERITIES = {Verdict.RAISES: Severity.ERROR, Verdict.EAGER: Severity.ERROR, Verdict.SPLITS: Severity.WARNING}
_OWNERS = tuple(Origin)
_KIND_SUMMARIES = {
    "graph-break": "torch.compile broke the graph",
    "not-compiled": "a function passed to torch.compile is not compiled",
    "recompile": "a function was recompiled",
    "rank-difference": "the ranks of a distributed run behaved differently",
    "cudagraph-skip": "a graph does not run as a CUDA graph",
    "specialisation": "a dynamic size became a constant",
}


def explain_diagnostics(report: ExplainReport) -> DiagnosticReport:
    """One diagnostic for each break site, uncompiled function, cause of recompiles, and so on."""
    explanation = printable(report.explanation)
    head, remarks = [outcome_line(explanation)], []
    if explanation.graphs:
        head.append(headline(explanation))
    else:
        remarks.append(Remark(Severity.WARNING, why_nothing_compiled(explanation), "Nothing was compiled"))
    remarks += [Remark(Severity.INFO, notice) for notice in explanation.notices]
    return DiagnosticReport("explain", list(_diagnostics(explanation)), remarks, head, lines=report.files.lines)


def _diagnostics(explanation: Explanation) -> Iterator[Diagnostic]:
    """Of breaks, those in the user's code come first, and there the most expensive."""
    by_owner = sorted(explanation.breaks, key=lambda site: (_OWNERS.index(site.origin), dearest_first(site)))
    yield from map(_break, by_owner)
    yield from map(_frame, frames_on_their_own(explanation))
    over_limit = {frame.function: frame for frame in frames_over_limit(explanation)}
    for group in by_cause(explanation.recompiles):
        given_up = [over_limit[r.function] for r in group if r.function is not None and r.function in over_limit]
        yield _recompile(group, given_up)
    differences = explanation.ranks.differences if explanation.ranks else ()
    yield from (_rank_difference(difference) for difference in differences if difference.site)
    yield from (_cudagraph_skip(skip) for skip in explanation.cudagraph_skips if skip.site)
    yield from (_specialisation(size) for size in explanation.specialisations if size.site)


def _break(site: BreakSite) -> Diagnostic:
    id_, name = _named(site.rule, site.gb_id or "graph-break", site.gb_type)
    times = "" if site.count == 1 else f" {site.count} times"
    verb = "torch.compile raises" if site.verdict is Verdict.RAISES else "The graph breaks"
    users = users_line(site.stack) if site.origin is not Origin.USER else None
    consequence = verdict_sentence(site)
    related = []
    if users:
        where = f"{short_path(site.site.path)}:{site.site.line}"
        inside = f"in {site.function} ({where})" if site.function else f"at {where}"
        message = f"{verb}{times} {inside}, which this line leads to"
        related.append(Location(site.site, f"the break{f' in {site.function}' if site.function else ''}"))
    else:
        message = f"{verb} here{times}"
        if site.verdict is Verdict.RAISES and consequence:
            message, consequence = consequence, None
    details = (f"Why: {site.rule.why if site.rule else site.reason}", consequence, _hint(site))
    return Diagnostic(
        id=id_,
        name=name,
        rule=site.rule,
        kind_summary=_KIND_SUMMARIES.get(id_, ""),
        severity=_SEVERITIES[site.verdict],
        site=_line_of(users) if users else site.site,
        function=users.function if users else site.function,
        message=message,
        details=tuple(filter(None, details)),
        help=site.advice,
        count=site.count,
        code=None if users else site.code,
        flow=tuple(Location(_line_of(caller), _step(caller)) for caller in site.stack),
        related=tuple(related),
    )


def _hint(site: BreakSite) -> str | None:
    """Returns Dynamo's first useful hint, if breakscan has no advice."""
    if site.advice or site.rule or site.origin is Origin.FRAMEWORK:
        return None
    return next((f"Hint: {hint}" for hint in useful_hints(site.hints)), None)


def _step(caller: Caller) -> str:
    return f"in {caller.function}" if caller.function else f"{short_path(caller.path)}:{caller.line}"


def _frame(frame: UncompiledFrame) -> Diagnostic:
    id_, name = _named(frame.rule, frame.gb_id or "not-compiled", frame.gb_type or "not compiled")
    what = {
        FrameStatus.EAGER: "runs as plain Python",
        FrameStatus.RAISED: "fails to compile",
        FrameStatus.PASSED_OVER: "holds nothing to compile",
    }[frame.status]
    return Diagnostic(
        id=id_,
        name=name,
        rule=frame.rule,
        kind_summary=_KIND_SUMMARIES.get(id_, ""),
        severity=Severity.INFO if frame.status is FrameStatus.PASSED_OVER else Severity.ERROR,
        site=frame.site,
        function=frame.function,
        message=f"{frame.function} {what}",
        details=(f"Why: {frame.reason}",),
        help=frame.advice,
        count=frame.count,
        code=frame.code,
    )


def _recompile(group: Sequence[Recompile], given_up: Sequence[UncompiledFrame]) -> Diagnostic:
    first = group[0]
    id_, name = _named(first.rule, "recompile", "recompiled")
    functions = listed([r.function or "a function" for r in group], "function")
    times = "" if len(group) == 1 else f" {len(group)} times"
    trigger = first.trigger
    if trigger and first.origin is not Origin.USER and trigger.origin is Origin.USER:
        site, function = _line_of(trigger), trigger.function
        related = [Location(first.site, "what relies on the old value")]
    else:
        site, function = first.site, first.function
        related = [Location(_line_of(trigger), "the call")] if trigger else []
    return Diagnostic(
        id=id_,
        name=name,
        rule=first.rule,
        kind_summary=_KIND_SUMMARIES.get(id_, ""),
        severity=Severity.ERROR if given_up else Severity.WARNING,
        site=site,
        function=function,
        message=f"Recompiled{times} ({functions}): {recompile_sentence(group)}",
        details=tuple(dict.fromkeys(f"{frame.function} runs eager from then on: {frame.reason}" for frame in given_up)),
        help=recompile_advice(first),
        count=len(group),
        related=tuple(related),
    )


def _rank_difference(difference: RankDifference) -> Diagnostic:
    each = ", ".join(f"{ranks} {what}" for ranks, what in alike(difference.by_rank))
    return _of_kind(
        "rank-difference", "ranks", Severity.ERROR, difference.site, f"The ranks differ in {difference.what}: {each}"
    )


def _cudagraph_skip(skip: CudaGraphSkip) -> Diagnostic:
    message = f"Graphs do not run as CUDA graphs: {skip.reason}"
    return _of_kind("cudagraph-skip", "CUDA graphs", Severity.WARNING, skip.site, message, count=skip.count)


def _specialisation(size: Specialisation) -> Diagnostic:
    message = f"A dynamic size, {listed(size.sources, 'input')}, became the constant {size.value}"
    why = f"Why: {size.reason}"
    return _of_kind("specialisation", "specialisation", Severity.INFO, size.site, message, details=(why,))


def _of_kind(
    id_: str,
    name: str,
    severity: Severity,
    site: Site | None,
    message: str,
    details: tuple[str, ...] = (),
    count: int = 1,
) -> Diagnostic:
    """What no rule and no id of PyTorch documents."""
    return Diagnostic(id_, name, severity, site, message, details, kind_summary=_KIND_SUMMARIES[id_], count=count)


def _named(rule: Rule | None, id_: str, name: str) -> tuple[str, str]:
    return (rule.id, rule.name) if rule else (id_, name)


def _line_of(caller: Caller) -> Site:
    return Site(caller.path, caller.line, 1, caller.line, 1)
