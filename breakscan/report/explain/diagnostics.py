"""A run as diagnostics: breaks, functions that are not compiled, recompiles, and what else has a line."""

from collections.abc import Iterator
from dataclasses import replace

from breakscan.explanation.explanation import Explanation, RankDifference, alike
from breakscan.explanation.graphs import CudaGraphSkip
from breakscan.explanation.problems import sections_of
from breakscan.model.findings import Severity, Verdict
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.words import place
from breakscan.report.diagnostics import Diagnostic, DiagnosticReport, Location, Remark
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.summary import headline, outcome_line
from breakscan.report.printable import printable
from breakscan.report.sources import start_of_line

_KIND_SUMMARIES = {
    "graph-break": "torch.compile broke the graph",
    "not-compiled": "a function passed to torch.compile is not compiled",
    "export": "something cannot be exported",
    "eager-calls": "calls of something compiled used no compiled code",
    "recompile": "a function was recompiled",
    "rank-difference": "the ranks of a distributed run behaved differently",
    "cudagraph-skip": "a graph does not run as a CUDA graph",
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
    remarks += [Remark(Severity.INFO, notice.text) for notice in explanation.notices]
    return DiagnosticReport(
        "explain", list(_diagnostics(explanation)), remarks, head, lines=report.files.lines, originals=originals
    )


def _diagnostics(explanation: Explanation) -> Iterator[Diagnostic]:
    """In the order of a report."""
    rules = explanation.rules
    for section in sections_of(explanation.problems):
        for problem in section.problems:
            yield replace(_diagnostic(problem), rule=rules.get(problem.rule or ""))
    differences = explanation.ranks.differences if explanation.ranks else ()
    yield from (_rank_difference(difference) for difference in differences if difference.site)
    yield from (_cudagraph_skip(skip) for skip in explanation.cudagraph_skips if skip.site)


def _diagnostic(problem: Problem) -> Diagnostic:
    """The diagnostic of a problem, at the user's line that leads to its site if there is one."""
    times = f" {problem.count} times" if problem.count > 1 else ""
    inside = f" in {problem.function}" if problem.function else ""
    why = [f"Why: {problem.why}"]
    details = [*why, *problem.consequences, *(f"Hint: {hint}" for hint in problem.hints[:1])]
    details += [f"Takes: {problem.takes}"] if problem.price and problem.takes else []
    users_line, called_from, at_site = problem.users_line, "", ""
    match problem.kind:
        case ProblemKind.BREAK:
            verb = "torch.compile raises" if problem.verdict is Verdict.RAISES else "The graph breaks"
            message, at_site = f"{verb} here{times}", f"the break{inside}"
            if users_line:
                where = f"{inside} ({place(problem.site)})" if inside else f" at {place(problem.site)}"
                message = f"{verb}{times}{where}, which this line leads to"
            elif problem.verdict is Verdict.RAISES and problem.consequences:
                message = problem.consequences[0]
                del details[1 : 1 + len(problem.consequences)]
        case ProblemKind.EXPORT:
            here = "What is exported" if problem.called_from else "This line"
            message, called_from, users_line = f"{here} {problem.what}{inside}", "the export", None
        case ProblemKind.RECOMPILES:
            message = f"Recompiled{times} ({problem.function}): {problem.why}"
            details, at_site = list(problem.consequences), "what relies on the old value"
            called_from = "" if users_line else "the call"
        case ProblemKind.FAILURE:
            message, details = f"torch.compile fails on {problem.function}", why
            at_site = "the line that fails to compile"
            users_line = users_line if users_line and users_line.path != problem.site.path else None
        case _:
            message, details, users_line = f"{problem.function} {problem.what}", why, None
    calls = [Location(start_of_line(caller), called_from) for caller in problem.called_from if called_from]
    return Diagnostic(
        id=problem.id,
        name=problem.name,
        kind_summary=_KIND_SUMMARIES.get(problem.id, ""),
        severity=problem.severity,
        site=start_of_line(users_line) if users_line else problem.site,
        function=users_line.function if users_line else next(iter(problem.functions), None),
        message=message,
        details=tuple(details),
        help=problem.advice,
        count=problem.count,
        code=None if users_line else problem.code,
        flow=tuple(
            Location(start_of_line(caller), f"in {caller.function}" if caller.function else place(caller))
            for caller in problem.stack
        ),
        related=(Location(problem.site, at_site),) if users_line else tuple(calls),
    )


def _rank_difference(difference: RankDifference) -> Diagnostic:
    each = ", ".join(f"{ranks} {what}" for ranks, what in alike(difference))
    message = f"The ranks differ in {difference.what}: {each}"
    id_ = "rank-difference"
    return Diagnostic(id_, "ranks", Severity.ERROR, difference.site, message, kind_summary=_KIND_SUMMARIES[id_])


def _cudagraph_skip(skip: CudaGraphSkip) -> Diagnostic:
    message, id_ = f"Graphs do not run as CUDA graphs: {skip.reason}", "cudagraph-skip"
    summary = _KIND_SUMMARIES[id_]
    return Diagnostic(id_, "CUDA graphs", Severity.WARNING, skip.site, message, kind_summary=summary, count=skip.count)
