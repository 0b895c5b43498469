"""The message of a test whose code is not compiled as it should be."""

from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Verdict
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.words import counted, place, position, sentence, sentences
from breakscan.report.printable import visible

INDENT = "   "


def objections(explanation: Explanation, breaks: int, recompiles: int | None) -> list[str]:
    """Return the reasons for which a test fails: more than ``breaks`` sites break graphs, more than ``recompiles``
    recompiles, something cannot be compiled or runs eager, calls ran eager unintentionally, or nothing is compiled.
    Breaks in torch's own code do not count; recompiles of its functions do, since the test changes its arguments."""
    found: list[str] = []
    sites = _breaks(explanation)
    if len(sites) > breaks or any(site.verdict is Verdict.RAISES for site in sites):
        allowed = f", {breaks} allowed" if breaks else ""
        found.append(f"{counted(len(sites), 'site breaks', 'sites break')} the graph{allowed}:")
        found += map(block_of, sites)
    problems = [problem for problem in explanation.problems if problem.verdict is not None]
    found += [block_of(one) for one in problems if one.is_lost and one.counts_as_break]
    found += [block_of(one) for one in problems if one.kind is ProblemKind.EAGER_CALLS and one.cause is None]
    if recompiles is not None and len(explanation.recompiles) > recompiles:
        allowed = f", {recompiles} allowed" if recompiles else ""
        found.append(f"{counted(len(explanation.recompiles), 'recompile')}{allowed}:")
        found += [block_of(one) for one in problems if one.kind is ProblemKind.RECOMPILES]
    if not found and not explanation.graphs:
        reasons = [f"{frame.function}: {frame.reason}" for frame in explanation.frames]
        found.append(_block("Nothing was compiled.", *map(sentence, reasons)))
    return found


def break_lines(explanation: Explanation) -> list[dict[str, str]]:
    """Return the sites of breaks as plain values, for a summary of many tests: their line, and the advice."""
    return [{"line": visible(_head(one)), "instead": visible(one.advice or "")} for one in _breaks(explanation)]


def _breaks(explanation: Explanation) -> list[Problem]:
    """The breaks in code that is not torch's."""
    return [one for one in explanation.problems if one.kind is ProblemKind.BREAK and one.counts_as_break]


def block_of(problem: Problem, advises: bool = True) -> str:
    """A problem in a few lines: where and what, the code, why, and what to do."""
    is_break = problem.kind is ProblemKind.BREAK
    callers = [] if is_break else [f"Called from {place(caller)}" for caller in problem.called_from]
    return _block(
        _head(problem),
        (problem.code or "") if problem.kind in (ProblemKind.BREAK, ProblemKind.FAILURE) else "",
        sentences(problem.why if problem.kind is ProblemKind.RECOMPILES else f"Why: {problem.why}", *callers),
        f"Instead: {sentence(problem.advice)}" if problem.advice and advises else "",
    )


def _head(problem: Problem) -> str:
    """``model.py:41:9  splits the graph  BRK201 tensor-item  in Block.forward``."""
    parts = [position(problem.site)]
    if problem.kind in (ProblemKind.FUNCTION, ProblemKind.FAILURE, ProblemKind.EAGER_CALLS):
        parts = [place(problem.site), f"{problem.function} {problem.what}"]
    else:
        what = f"{problem.kind.words} {problem.times}" if problem.kind is ProblemKind.RECOMPILES else problem.what
        inside = f"in {problem.function}" if problem.function else ""
        parts += [what, problem.rule_words or problem.name, inside]
    return "  ".join(filter(None, parts))


def _block(head: str, *rest: str) -> str:
    return "\n".join([visible(head), *(f"{INDENT}{visible(text)}" for text in rest if text)])
