"""A run as diagnostics: breaks, functions that are not compiled, recompiles, and what else has a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from breakscan.explain.compilations import Specialisation, constant_words
from breakscan.explain.cudagraphs import CudaGraphSkip
from breakscan.explain.explanation import Explanation
from breakscan.explain.notice import notice_words
from breakscan.explain.rank_report import RankDifference, alike, difference_words
from breakscan.model.findings import Severity, Site, Verdict
from breakscan.model.problem import Caller
from breakscan.model.words import listed, place
from breakscan.report.diagnostics import Diagnostic, DiagnosticReport, Location, Remark
from breakscan.report.explain.entries import KIND, EntryKind, ReportEntry, report_sections
from breakscan.report.explain.report import ExplainReport
from breakscan.report.explain.repro_text import repro_sentence
from breakscan.report.explain.summary import headline, outcome_line
from breakscan.report.printable import printable, visible

_KIND_SUMMARIES = {
    "graph-break": "torch.compile broke the graph",
    "not-compiled": "a function passed to torch.compile is not compiled",
    KIND: "something cannot be exported",
    "eager-calls": "calls of something compiled used no compiled code",
    "recompile": "a function was recompiled",
    "rank-difference": "the ranks of a distributed run behaved differently",
    "cudagraph-skip": "a graph does not run as a CUDA graph",
    "specialisation": "a dynamic size became a constant",
}


def explain_diagnostics(report: ExplainReport) -> DiagnosticReport:
    """One diagnostic for each break site, uncompiled function, cause of recompiles, and so on."""
    originals: dict[str, str] = {}
    explanation = printable(report.explanation, originals)
    head, remarks = [outcome_line(explanation)], []
    if explanation.graphs:
        head.append(headline(explanation))
    else:
        remarks.append(Remark(Severity.WARNING, headline(explanation), "Nothing was compiled"))
    if report.reproduction:
        remarks.append(Remark(Severity.INFO, visible(repro_sentence(report.reproduction)), "Reproduction"))
    remarks += [Remark(Severity.INFO, notice_words(notice)) for notice in explanation.notices]
    return DiagnosticReport(
        "explain",
        list(_diagnostics(explanation)),
        remarks,
        head,
        lines=report.files.lines,
        originals=originals,
    )


def _diagnostics(explanation: Explanation) -> Iterator[Diagnostic]:
    """In the order of a report."""
    for section in report_sections(explanation):
        yield from (_OF_KIND[entry.kind](entry) for entry in section.entries)
    differences = explanation.ranks.differences if explanation.ranks else ()
    yield from (_rank_difference(difference) for difference in differences if difference.site)
    yield from (_cudagraph_skip(skip) for skip in explanation.cudagraph_skips if skip.site)
    yield from (_specialisation(size) for size in explanation.specialisations if size.site)


def _break(entry: ReportEntry) -> Diagnostic:
    times = f" {entry.count} times" if entry.count > 1 else ""
    verb = "torch.compile raises" if entry.verdict is Verdict.RAISES else "The graph breaks"
    inside = f" in {entry.function}" if entry.function else ""
    why, hints = f"Why: {entry.why}", [f"Hint: {hint}" for hint in entry.hints[:1]]
    if entry.users_line:
        where = f"{inside} ({place(entry.site)})" if inside else f" at {place(entry.site)}"
        message = f"{verb}{times}{where}, which this line leads to"
        diagnostic = _diagnostic(entry, message, why, *entry.consequences, *hints)
        return _at_users_line(diagnostic, entry.users_line, Location(entry.site, f"the break{inside}"))
    if entry.verdict is Verdict.RAISES and entry.consequences:
        return _diagnostic(entry, entry.consequences[0], why, *hints)
    return _diagnostic(entry, f"{verb} here{times}", why, *entry.consequences, *hints)


def _frame(entry: ReportEntry) -> Diagnostic:
    return _diagnostic(entry, f"{entry.function} {entry.label}", f"Why: {entry.why}")


def _cause(entry: ReportEntry) -> Diagnostic:
    times = f" {entry.count} times" if entry.count > 1 else ""
    diagnostic = _diagnostic(entry, f"Recompiled{times} ({entry.function}): {entry.why}", *entry.consequences)
    if entry.users_line:
        relies = Location(entry.site, "what relies on the old value")
        return _at_users_line(diagnostic, entry.users_line, relies)
    calls = (Location(_line_of(caller), "the call") for caller in entry.called_from)
    return replace(diagnostic, related=tuple(calls))


def _failure(entry: ReportEntry) -> Diagnostic:
    message = f"torch.compile fails on {entry.function}"
    diagnostic = _diagnostic(entry, message, f"Why: {entry.why}")
    users = entry.users_line
    if users is None or entry.site.path == users.path:
        return diagnostic
    return _at_users_line(diagnostic, users, Location(entry.site, "the line that fails to compile"))


def _export(entry: ReportEntry) -> Diagnostic:
    here = "What is exported" if entry.called_from else "This line"
    inside = f" in {entry.function}" if entry.function else ""
    hints = (f"Hint: {hint}" for hint in entry.hints[:1])
    diagnostic = _diagnostic(entry, f"{here} {entry.label}{inside}", f"Why: {entry.why}", *entry.consequences, *hints)
    calls = (Location(_line_of(caller), "the export") for caller in entry.called_from)
    return replace(diagnostic, related=tuple(calls))


_OF_KIND: Mapping[EntryKind, Callable[[ReportEntry], Diagnostic]] = {
    EntryKind.BREAK: _break,
    EntryKind.FRAME: _frame,
    EntryKind.EXPORT: _export,
    EntryKind.FAILURE: _failure,
    EntryKind.EAGER_CALLS: _frame,
    EntryKind.CAUSE: _cause,
}


def _at_users_line(diagnostic: Diagnostic, line: Caller, site: Location) -> Diagnostic:
    """The diagnostic at the user's line that leads to its site."""
    return replace(diagnostic, site=_line_of(line), function=line.function, code=None, related=(site,))


def _diagnostic(entry: ReportEntry, message: str, *details: str) -> Diagnostic:
    return Diagnostic(
        id=entry.id,
        name=entry.name,
        rule=entry.rule,
        kind_summary=_KIND_SUMMARIES.get(entry.id, ""),
        severity=entry.severity,
        site=entry.site,
        function=entry.functions[0] if entry.functions else None,
        message=message,
        details=details,
        help=entry.advice,
        count=entry.count,
        code=entry.code,
        flow=tuple(Location(_line_of(caller), _step(caller)) for caller in entry.stack),
    )


def _step(caller: Caller) -> str:
    return f"in {caller.function}" if caller.function else place(caller)


def _rank_difference(difference: RankDifference) -> Diagnostic:
    each = ", ".join(f"{ranks} {what}" for ranks, what in alike(difference))
    message = f"The ranks differ in {difference_words(difference)}: {each}"
    return _of_kind("rank-difference", "ranks", Severity.ERROR, difference.site, message)


def _cudagraph_skip(skip: CudaGraphSkip) -> Diagnostic:
    message = f"Graphs do not run as CUDA graphs: {skip.reason}"
    return _of_kind("cudagraph-skip", "CUDA graphs", Severity.WARNING, skip.site, message, count=skip.count)


def _specialisation(size: Specialisation) -> Diagnostic:
    message = f"A dynamic size, {listed(size.sources, 'input')}, became the constant {size.value}"
    why = f"Why: {constant_words(size.reason)}"
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


def _line_of(caller: Caller) -> Site:
    return Site(caller.path, caller.line, 1, caller.line, 1)
