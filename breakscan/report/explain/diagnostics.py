"""A run as diagnostics: breaks, functions that are not compiled, recompiles, and what else has a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from breakscan.explanation.compilations import Specialisation
from breakscan.explanation.cudagraphs import CudaGraphSkip
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.problems import sections_of
from breakscan.explanation.rank_report import RankDifference, alike
from breakscan.model.findings import Severity, Site, Verdict
from breakscan.model.problem import Caller, Problem, ProblemKind
from breakscan.model.words import listed, place
from breakscan.report.diagnostics import Diagnostic, DiagnosticReport, Location, Remark
from breakscan.report.explain.report import ExplainReport
from breakscan.report.explain.repro_text import repro_sentence
from breakscan.report.explain.summary import headline, outcome_line
from breakscan.report.printable import printable, visible

_KIND_SUMMARIES = {
    "graph-break": "torch.compile broke the graph",
    "not-compiled": "a function passed to torch.compile is not compiled",
    "export": "something cannot be exported",
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
    remarks += [Remark(Severity.INFO, notice.text) for notice in explanation.notices]
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
    rules = explanation.rules
    for section in sections_of(explanation.problems):
        for problem in section.problems:
            yield replace(_OF_KIND[problem.kind](problem), rule=rules.get(problem.rule or ""))
    differences = explanation.ranks.differences if explanation.ranks else ()
    yield from (_rank_difference(difference) for difference in differences if difference.site)
    yield from (_cudagraph_skip(skip) for skip in explanation.cudagraph_skips if skip.site)
    yield from (_specialisation(size) for size in explanation.specialisations if size.site)


def _break(problem: Problem) -> Diagnostic:
    times = f" {problem.count} times" if problem.count > 1 else ""
    verb = "torch.compile raises" if problem.verdict is Verdict.RAISES else "The graph breaks"
    inside = f" in {problem.function}" if problem.function else ""
    why, hints = f"Why: {problem.why}", [f"Hint: {hint}" for hint in problem.hints[:1]]
    if problem.users_line:
        where = f"{inside} ({place(problem.site)})" if inside else f" at {place(problem.site)}"
        message = f"{verb}{times}{where}, which this line leads to"
        diagnostic = _diagnostic(problem, message, why, *problem.consequences, *hints)
        return _at_users_line(diagnostic, problem.users_line, Location(problem.site, f"the break{inside}"))
    if problem.verdict is Verdict.RAISES and problem.consequences:
        return _diagnostic(problem, problem.consequences[0], why, *hints)
    return _diagnostic(problem, f"{verb} here{times}", why, *problem.consequences, *hints)


def _frame(problem: Problem) -> Diagnostic:
    return _diagnostic(problem, f"{problem.function} {problem.what}", f"Why: {problem.why}")


def _cause(problem: Problem) -> Diagnostic:
    times = f" {problem.count} times" if problem.count > 1 else ""
    diagnostic = _diagnostic(problem, f"Recompiled{times} ({problem.function}): {problem.why}", *problem.consequences)
    if problem.users_line:
        relies = Location(problem.site, "what relies on the old value")
        return _at_users_line(diagnostic, problem.users_line, relies)
    calls = (Location(_line_of(caller), "the call") for caller in problem.called_from)
    return replace(diagnostic, related=tuple(calls))


def _failure(problem: Problem) -> Diagnostic:
    message = f"torch.compile fails on {problem.function}"
    diagnostic = _diagnostic(problem, message, f"Why: {problem.why}")
    users = problem.users_line
    if users is None or problem.site.path == users.path:
        return diagnostic
    return _at_users_line(diagnostic, users, Location(problem.site, "the line that fails to compile"))


def _export(problem: Problem) -> Diagnostic:
    here = "What is exported" if problem.called_from else "This line"
    inside = f" in {problem.function}" if problem.function else ""
    hints = (f"Hint: {hint}" for hint in problem.hints[:1])
    message = f"{here} {problem.what}{inside}"
    diagnostic = _diagnostic(problem, message, f"Why: {problem.why}", *problem.consequences, *hints)
    calls = (Location(_line_of(caller), "the export") for caller in problem.called_from)
    return replace(diagnostic, related=tuple(calls))


_OF_KIND: Mapping[ProblemKind, Callable[[Problem], Diagnostic]] = {
    ProblemKind.BREAK: _break,
    ProblemKind.FUNCTION: _frame,
    ProblemKind.EXPORT: _export,
    ProblemKind.FAILURE: _failure,
    ProblemKind.EAGER_CALLS: _frame,
    ProblemKind.RECOMPILES: _cause,
}


def _at_users_line(diagnostic: Diagnostic, line: Caller, site: Location) -> Diagnostic:
    """The diagnostic at the user's line that leads to its site."""
    return replace(diagnostic, site=_line_of(line), function=line.function, code=None, related=(site,))


def _diagnostic(problem: Problem, message: str, *details: str) -> Diagnostic:
    return Diagnostic(
        id=problem.id,
        name=problem.name,
        kind_summary=_KIND_SUMMARIES.get(problem.id, ""),
        severity=problem.severity,
        site=problem.site,
        function=problem.functions[0] if problem.functions else None,
        message=message,
        details=details,
        help=problem.advice,
        count=problem.count,
        code=problem.code,
        flow=tuple(Location(_line_of(caller), _step(caller)) for caller in problem.stack),
    )


def _step(caller: Caller) -> str:
    return f"in {caller.function}" if caller.function else place(caller)


def _rank_difference(difference: RankDifference) -> Diagnostic:
    each = ", ".join(f"{ranks} {what}" for ranks, what in alike(difference))
    message = f"The ranks differ in {difference.what}: {each}"
    return _of_kind("rank-difference", "ranks", Severity.ERROR, difference.site, message)


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
    """Return a diagnostic of a kind that no rule and no id of PyTorch documents."""
    return Diagnostic(id_, name, severity, site, message, details, kind_summary=_KIND_SUMMARIES[id_], count=count)


def _line_of(caller: Caller) -> Site:
    return Site(caller.path, caller.line, 1, caller.line, 1)
