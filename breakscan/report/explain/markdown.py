"""The report of ``explain`` as a comment on a pull request, or the summary of a job."""

from collections.abc import Iterator
from typing import TextIO

from breakscan.explanation.explanation import Explanation, alike, rank_sentences
from breakscan.explanation.problems import Topic, sections_of, topic_of
from breakscan.model.findings import Verdict
from breakscan.model.problem import Caller, Problem, ProblemKind
from breakscan.model.words import counted, first_few, place
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.summary import headline, made_lines, outcome_line, time_sentences
from breakscan.report.markdown import LIMIT, code, paragraph, prose, row, table_head
from breakscan.report.printable import printable

MARK = "<!-- breakscan explain -->"  # the first line: by it, a job finds the comment that it wrote before
_CUT = (
    "**Cut here:** a comment on GitHub holds 65,536 characters. `breakscan explain --format html` or `--format json` "
    "shows everything.\n"
)
_MOST_NAMED = 3
_OF_BREAKS = (Topic.BREAKS, Topic.LIBRARY_BREAKS, Topic.TORCH_BREAKS)
_WHERE = ("where", "why", "instead")
_TITLES = {
    **dict.fromkeys(_OF_BREAKS, ("graph break", *_WHERE, "takes")),
    Topic.FAILURES: ("failed to compile", *_WHERE),
    Topic.EXPORTS: ("export", *_WHERE),
    Topic.FRAMES: ("not compiled", *_WHERE),
    Topic.AROUND: ("around the compiler", *_WHERE),
    Topic.RECOMPILES: ("recompiled", "where", "what changed", "instead"),
}
_FOLDED = _OF_BREAKS[1:]


def write_explain_markdown(report: ExplainReport, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown of at most :data:`LIMIT` characters: what matters most first, then if it is
    cut."""
    explanation = printable(report.explanation)
    parts = [f"{MARK}\n### breakscan: {prose(headline(explanation))}\n", paragraph(outcome_line(explanation)) + "\n"]
    parts += [paragraph(sentence) + "\n" for sentence in time_sentences(explanation)]
    room = LIMIT - len(_CUT) - sum(len(part) + 1 for part in parts)
    for start, rows, end in _sections(explanation):
        room -= len(start) + len(end) + 1
        kept = []
        for line in rows:
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        if kept:
            parts.append(start + "".join(kept) + end)
        if room < 0:
            parts.append(_CUT)
            break
    stream.write("\n".join(parts))


def _sections(explanation: Explanation) -> Iterator[tuple[str, list[str], str]]:
    """Tables and lists: the text before the rows, the rows as lines of Markdown, the text after them."""
    said = _Said()
    sections = sections_of(explanation.problems)
    for section in sections:
        if section.topic not in _FOLDED:
            yield table_head(*_TITLES[section.topic]), [_row(problem, said) for problem in section.problems], ""
    if explanation.ranks:
        yield "", [f"- {paragraph(sentence)}\n" for sentence in rank_sentences(explanation.ranks)], ""
        rows = [
            row(prose(one.what), "<br>".join(f"{ranks}: {prose(what)}" for ranks, what in alike(one)))
            for one in explanation.ranks.differences
        ]
        yield table_head("the ranks differ in", "what each did"), rows, ""
    yield "", [f"- **Note:** {prose(notice.text)}.\n" for notice in explanation.notices], ""
    others = [problem for section in sections if section.topic in _FOLDED for problem in section.problems]
    title = counted(len(others), "break in library code", "breaks in library code")
    start = f"<details>\n<summary>{title}</summary>\n\n{table_head(*_TITLES[Topic.LIBRARY_BREAKS])}"
    yield start, [_row(problem, said) for problem in others], "\n</details>\n"
    yield "", [f"- **{label}:** {prose(sentence.rstrip('.'))}.\n" for label, sentence in made_lines(explanation)], ""


class _Said:
    """The reasons and advice that were written: they are the same at most sites of a rule, and are written once."""

    def __init__(self) -> None:
        self._explained: set[str] = set()
        self._advised: dict[str, str] = {}

    def why(self, problem: Problem) -> str:
        """The verdict says so already, except for the reason why a whole function runs eager."""
        why = [prose(problem.why)]
        if problem.rule is not None:
            why = [f"{problem.id} {prose(problem.name)}", *([] if problem.id in self._explained else why)]
            self._explained.add(problem.id)
        consequences = problem.consequences if problem.verdict is Verdict.EAGER else ()
        return "<br>".join([": ".join(why), *map(prose, consequences)])

    def instead(self, problem: Problem) -> str:
        if not problem.advice:
            return ""
        if problem.rule and self._advised.get(problem.id) == problem.advice:
            return "as above"
        self._advised[problem.id] = problem.advice
        return prose(problem.advice)


def _row(problem: Problem, said: _Said) -> str:
    todo = said.instead(problem) or "<br>".join(map(prose, problem.hints[:1]))
    if topic_of(problem) in _OF_BREAKS:
        what, where = f"{problem.what} {problem.times}".strip(), _where(problem, problem.users_line)
        return row(what, where, said.why(problem), todo, prose(problem.takes))
    told_by_title = problem.kind is ProblemKind.RECOMPILES or problem.is_failure
    functions = first_few([*map(code, problem.functions)], _MOST_NAMED)
    parts = (functions, "" if told_by_title else prose(problem.what), problem.times)
    where = _where(problem, *problem.called_from[:_MOST_NAMED])
    named = f" ({problem.id} {prose(problem.name)})" if problem.rule else ""
    why = "<br>".join([f"{prose(problem.why)}{named}", *map(prose, problem.consequences)])
    return row(" ".join(filter(None, parts)), where, why, todo)


def _where(problem: Problem, *callers: Caller | None) -> str:
    inside = f" in {code(problem.function)}" if problem.kind is ProblemKind.BREAK and problem.function else ""
    called_from = [f"from {code(place(one))}" for one in callers if one]
    return "<br>".join([f"{code(place(problem.site))}{inside}", *called_from])
