"""The report of ``explain`` as a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from breakscan.explain.compilations import constant_words
from breakscan.explain.compile_time import compile_time, parts_in_words
from breakscan.explain.explanation import Explanation
from breakscan.explain.notice import notice_words
from breakscan.explain.problems import Topic, sections_of
from breakscan.explain.rank_report import alike, difference_words, rank_sentences
from breakscan.model.findings import Site, Verdict
from breakscan.model.problem import Caller, Price, Problem, ProblemKind
from breakscan.model.words import counted, duration, place, seconds_in_words
from breakscan.report.explain.report import ExplainReport
from breakscan.report.explain.repro_text import repro_sentence
from breakscan.report.explain.summary import Group, ceiling_sentence, costs_sentence, headline, outcome_line, overview
from breakscan.report.markdown import code, paragraph, prose, row, table_head
from breakscan.report.printable import printable, visible

MARK = "<!-- breakscan explain -->"
"""The first line: by it, a job finds the comment that it wrote before."""
LIMIT = 65_000
"""Characters: GitHub takes 65,536 in a comment."""
_CUT = (
    "**Cut here:** a comment on GitHub holds 65,536 characters. `breakscan explain --format html` or `--format json` "
    "shows everything.\n"
)
_MOST_COMPILES = 20
_MOST_GRAPHS = 50
_MOST_NAMED = 3
_AS_ABOVE = "as above"
_BREAK_TITLES = ("graph break", "where", "why", "instead", "each pass")
_TITLES = {
    Topic.FAILURES: ("failed to compile", "where", "why", "instead"),
    Topic.EXPORTS: ("export", "where", "why", "instead"),
    Topic.BREAKS: _BREAK_TITLES,
    Topic.LIBRARY_BREAKS: _BREAK_TITLES,
    Topic.TORCH_BREAKS: _BREAK_TITLES,
    Topic.FRAMES: ("not compiled", "where", "why", "instead"),
    Topic.EAGER_CALLS: ("ran eager", "where", "why", "instead"),
    Topic.RECOMPILES: ("recompiled", "what changed", "where", "instead"),
}
_FOLDED = (Topic.LIBRARY_BREAKS, Topic.TORCH_BREAKS)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of Markdown with the text before and after it; ``rows`` are lines of Markdown."""

    start: str
    rows: Sequence[str]
    end: str = ""


def write_explain_markdown(report: ExplainReport, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown of at most :data:`LIMIT` characters: what matters most comes first, and a last
    line says where it is cut."""
    explanation = printable(report.explanation)
    parts = [f"{MARK}\n### breakscan: {prose(headline(explanation))}\n", paragraph(outcome_line(explanation)) + "\n"]
    costs = filter(None, (ceiling_sentence(explanation), costs_sentence(explanation)))
    parts += [paragraph(sentence) + "\n" for sentence in costs]
    if report.reproduction:
        parts.append(f"**Reproduction:** {paragraph(visible(repro_sentence(report.reproduction)))}\n")
    room = LIMIT - len(_CUT) - sum(len(part) + 1 for part in parts)
    for section in _sections(explanation):
        room -= len(section.start) + len(section.end) + 1
        kept = []
        for line in section.rows:
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        if kept:
            parts.append(section.start + "".join(kept) + section.end)
        if room < 0:
            parts.append(_CUT)
            break
    stream.write("\n".join(parts))


def _sections(explanation: Explanation) -> Iterator[_Table]:
    said = _Said()
    told = sections_of(explanation.problems)
    if (groups := overview(explanation)) is not None:
        for title, found in (("kind", groups.kinds), ("file", groups.files)):
            yield _Table(table_head(title, "sites", "times", "cost"), list(map(_group_row, found)))
    for section in told:
        if section.topic not in _FOLDED:
            in_words = _failure if section.topic is Topic.FAILURES else _row
            yield _Table(table_head(*_TITLES[section.topic]), [in_words(problem, said) for problem in section.problems])
    if explanation.ranks:
        yield _Table("", [f"- {paragraph(sentence)}\n" for sentence in rank_sentences(explanation.ranks)])
        yield _Table(
            table_head("the ranks differ in", "what each did"),
            [
                row(prose(difference_words(one)), "<br>".join(f"{ranks}: {prose(what)}" for ranks, what in alike(one)))
                for one in explanation.ranks.differences
            ],
        )
    yield _Table("", [f"- **Note:** {prose(notice_words(notice))}.\n" for notice in explanation.notices])
    others = [problem for section in told if section.topic in _FOLDED for problem in section.problems]
    yield _folded(
        counted(len(others), "break in library code", "breaks in library code"),
        _TITLES[Topic.LIBRARY_BREAKS],
        [_row(problem, said) for problem in others],
    )
    yield _folded(
        counted(len(explanation.cudagraph_skips), "reason against CUDA graphs", "reasons against CUDA graphs"),
        ("", "why", "where"),
        [
            row(f"{skip.count}×" if skip.count > 1 else "", prose(skip.reason), _place(skip.site))
            for skip in explanation.cudagraph_skips
        ],
    )
    yield _folded(
        counted(len(explanation.specialisations), "dynamic size became a constant", "dynamic sizes became constants"),
        ("size", "became", "where", "why"),
        [
            row(code(", ".join(size.sources)), code(size.value), _place(size.site), prose(constant_words(size.reason)))
            for size in explanation.specialisations
        ],
    )
    yield from _costs(explanation)


def _costs(explanation: Explanation) -> Iterator[_Table]:
    time = compile_time(explanation)
    slowest = time.functions[:_MOST_COMPILES]
    compilations = counted(len(explanation.compiles), "compilation")
    longest = f", the {len(slowest)} longest functions" if len(slowest) < len(time.functions) else ""
    yield _folded(
        f"Compile time: {seconds_in_words(explanation.compile_seconds)} in {compilations}{longest}",
        ("function", "where", "compiled", "in all", "spent on"),
        [
            row(
                code(function.function),
                _place(function.site),
                f"{function.compiles}\u00d7",
                duration(function.seconds),
                parts_in_words(function.parts),
            )
            for function in slowest
        ],
    )
    yield _folded(
        "Lines that took longest to trace",
        ("line", "function", "took"),
        [row(_place(line.site), code(line.function), duration(line.seconds)) for line in time.lines[:_MOST_COMPILES]],
    )
    yield _folded(
        "Kernels that took longest to compile",
        ("kernel", "compiled in", "autotuned in", "lines"),
        [
            row(
                code(kernel.name),
                duration(kernel.seconds),
                duration(kernel.autotuning_seconds) if kernel.autotuning_seconds else "",
                ", ".join(map(_place, kernel.lines[:_MOST_NAMED])),
            )
            for kernel in time.kernels[:_MOST_COMPILES]
        ],
    )
    graphs = explanation.graphs[:_MOST_GRAPHS]
    yield _folded(
        counted(len(explanation.graphs), "graph")
        + (f", the first {_MOST_GRAPHS}" if len(graphs) < len(explanation.graphs) else ""),
        ("graph", "function", "operations", "runs", "each run", "ended by"),
        [
            row(
                str(graph.number),
                code(graph.function) if graph.function else "",
                str(graph.ops),
                "" if graph.runs is None else str(graph.runs),
                duration(graph.seconds / graph.runs) if graph.runs and graph.seconds is not None else "",
                _place(graph.ended_by),
            )
            for graph in graphs
        ],
    )


class _Said:
    """What a rule says, once: its reason is the same at each of its sites, and so is its advice at most of them."""

    def __init__(self) -> None:
        self._explained: set[str] = set()
        self._advised: dict[str, str] = {}

    def why(self, problem: Problem) -> str:
        if problem.rule is None:
            return prose(problem.why)
        name = f"{problem.id} {prose(problem.name)}"
        if problem.id in self._explained:
            return name
        self._explained.add(problem.id)
        return f"{name}: {prose(problem.why)}"

    def instead(self, problem: Problem) -> str:
        if not problem.advice:
            return ""
        if problem.rule and self._advised.get(problem.id) == problem.advice:
            return _AS_ABOVE
        self._advised[problem.id] = problem.advice
        return prose(problem.advice)


def _group_row(group: Group) -> str:
    return row(prose(group.name), str(group.sites), str(group.times), duration(group.seconds) if group.seconds else "")


def _row(problem: Problem, said: _Said) -> str:
    return _ROWS[problem.kind](problem, said)


def _break(problem: Problem, said: _Said) -> str:
    why = said.why(problem)
    # The word says so already, except for the reason why a whole function runs eager.
    if problem.verdict is Verdict.EAGER:
        why = "<br>".join([why, *map(prose, problem.consequences)])
    todo = said.instead(problem) or "<br>".join(map(prose, problem.hints[:1]))
    what, where = f"{problem.what} {problem.times}".strip(), _where(problem, problem.users_line)
    return row(what, where, why, todo, _price(problem.price))


def _cause(problem: Problem, said: _Said) -> str:
    where = _where(problem, *problem.called_from)
    return row(f"{problem.times} {_listed(problem.functions)}", _why(problem), where, said.instead(problem))


def _frame(problem: Problem, said: _Said) -> str:
    return row(f"{_listed(problem.functions)} {problem.what}", _where(problem), _why(problem), said.instead(problem))


def _eager_calls(problem: Problem, said: _Said) -> str:
    where = _where(problem, *problem.called_from)
    return row(f"{_listed(problem.functions)} {problem.times}".strip(), where, _why(problem), said.instead(problem))


def _failure(problem: Problem, said: _Said) -> str:
    return row(_listed(problem.functions), _where(problem, *problem.called_from), _why(problem), said.instead(problem))


def _export(problem: Problem, said: _Said) -> str:
    what = " ".join(filter(None, (_listed(problem.functions), problem.what, problem.times)))
    todo = said.instead(problem) or "<br>".join(map(prose, problem.hints[:1]))
    return row(what, _where(problem, *problem.called_from[:_MOST_NAMED]), _why(problem), todo)


_ROWS: Mapping[ProblemKind, Callable[[Problem, _Said], str]] = {
    ProblemKind.BREAK: _break,
    ProblemKind.FUNCTION: _frame,
    ProblemKind.FAILURE: _failure,
    ProblemKind.EXPORT: _export,
    ProblemKind.EAGER_CALLS: _eager_calls,
    ProblemKind.RECOMPILES: _cause,
}


def _why(problem: Problem) -> str:
    named = f" ({problem.id} {prose(problem.name)})" if problem.rule else ""
    return "<br>".join([f"{prose(problem.why)}{named}", *map(prose, problem.consequences)])


def _where(problem: Problem, *callers: Caller | None) -> str:
    inside = f" in {code(problem.function)}" if problem.kind is ProblemKind.BREAK and problem.function else ""
    return "<br>".join([f"{_place(problem.site)}{inside}", *(f"from {code(place(one))}" for one in callers if one)])


def _folded(title: str, titles: Sequence[str], rows: Sequence[str]) -> _Table:
    """A table that opens on a click.  ``title`` holds no foreign text."""
    start = f"<details>\n<summary>{title}</summary>\n\n{table_head(*titles)}"
    return _Table(start, rows, "\n</details>\n")


def _place(site: Site | None) -> str:
    return code(place(site)) if site else ""


def _listed(functions: Sequence[str]) -> str:
    more = f" and {len(functions) - _MOST_NAMED} more" if len(functions) > _MOST_NAMED else ""
    return ", ".join(map(code, functions[:_MOST_NAMED])) + more


def _price(price: Price | None) -> str:
    if price is None or not price.passes:
        return ""
    waits = " of the device's time" if price.is_on_device else ", waits for the device" if price.waits else ""
    return f"{duration(price.seconds)}{waits} ({counted(price.passes, 'pass', 'passes')})"
