"""The HTML report of ``explain``: one file that needs nothing else, for any browser, with or without scripts.

What the program is made of may be hostile: text reaches the page escaped or as JSON, the scripts build the page from
text nodes, and the page's own policy lets run no script but the one whose digest it names.

Its data are the explanation as the JSON report has it, sentences of the terminal report, and source.  What there is
much of is kept short: a ``Site`` is ``[path, line, column, end_line, end_column]``, a ``Caller`` ``[path, line,
function, origin]``, a ``GuardLine`` ``[kind, text, site]``; paths are numbers into ``paths``."""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from importlib import resources
from itertools import groupby
from operator import attrgetter
from string import Template
from typing import Any, ClassVar, TextIO

from breakscan import __version__
from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.compilations import CompiledFrame, GuardLine, compile_time
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.exports import Export
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.graphs import Generated
from breakscan.explanation.problems import Section, break_problem, causes_of, frame_problem, sections_of
from breakscan.explanation.recompiles import Recompile
from breakscan.model.findings import Site
from breakscan.model.problem import AROUND_COMPILER, Caller, Problem, ProblemKind
from breakscan.model.words import sentences, short_path
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.json import COMPUTED, Computed, Plain
from breakscan.report.explain.summary import headline, outcome_line, time_sentences
from breakscan.report.printable import visible
from breakscan.source.source_files import SourceFiles

MOST_CHARACTERS = 5_000_000  # of source, in all of a report
LONGEST_WHOLE = 600_000
AROUND = 4  # lines kept before and after each mentioned line, if a file is not kept whole
Segment = tuple[int, str]  # consecutive lines: the number of the first, and their text


class SourceStore:
    """Gives each path a number, notes which of its lines are spoken of, and reads them in the end."""

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        self.numbers: dict[str, int] = {}  # the number of each path, in order
        self._lines: dict[str, set[int]] = {}
        self._marked: set[str] = set()

    def number(self, path: str, first: int, last: int, marked: bool = False) -> int:
        """The number of a path, whose lines from ``first`` to ``last`` are spoken of; all of ``marked`` files."""
        self._lines.setdefault(path, set()).update(range(first, min(last, first + AROUND) + 1))
        if marked:
            self._marked.add(path)
        return self.numbers.setdefault(path, len(self.numbers))

    def segments(self) -> dict[int, list[Segment]]:
        """By the number of its path, what is kept of each file that can be read: of all of them what is spoken of,
        then as many whole ones as there is room for."""
        room = MOST_CHARACTERS
        kept: dict[int, list[Segment]] = {}
        for path, number in sorted(self.numbers.items(), key=lambda item: item[0] not in self._marked):
            segments = list(_excerpts(self._files.lines(path), self._lines[path]))
            length = _length(segments)
            if segments and length <= room:
                kept[number] = segments
                room -= length
        for path, number in self.numbers.items():
            if path not in self._marked or number not in kept:
                continue
            whole = [(1, "\n".join(self._files.lines(path)))]
            more = _length(whole) - _length(kept[number])
            if _length(whole) <= LONGEST_WHOLE and more <= room:
                kept[number] = whole
                room -= more
        return kept


def _length(segments: Iterable[Segment]) -> int:
    return sum(len(text) for _, text in segments)


def _excerpts(lines: list[str], wanted: Iterable[int]) -> Iterator[Segment]:
    """The wanted lines with those around them, each run of consecutive lines once."""
    spoken_of = (line for line in wanted if 1 <= line <= len(lines))
    around = (range(max(line - AROUND, 1), min(line + AROUND, len(lines)) + 1) for line in spoken_of)
    kept = sorted(set().union(*around))
    for _, run in groupby(enumerate(kept), key=lambda place: place[1] - place[0]):
        first, *rest = (line for _, line in run)
        yield first, "\n".join(lines[first - 1 : first + len(rest)])


MOST_CODE = 4_000_000  # characters of generated code in all of a report
MOST_GUARDS = 2_000_000  # characters of guards in all of a report
LONGEST = 20_000  # characters of one text that is not code
_TABS = {
    ProblemKind.BREAK: "breaks",
    ProblemKind.FAILURE: "frames",
    ProblemKind.FUNCTION: "frames",
    ProblemKind.EXPORT: "exports",
    **dict.fromkeys(AROUND_COMPILER, "around"),
    ProblemKind.RECOMPILES: "recompiles",
}
"""The tab that shows a kind of problem."""
_FIRST = "breaks frames recompiles exports export_problems around graphs compiles".split()
_ABSENT = ("traced", "export_rules")  # fields of an explanation that the page does not show as they are


def island(explanation: Explanation, files: SourceFiles) -> dict[str, Any]:
    """Return all that the page shows, as objects that JSON can hold."""
    plain = _PagePlain(files)
    data = {name: plain(getattr(explanation, name)) for name in _FIRST}
    data |= {
        "causes": {cause: ". ".join([one.why, *one.consequences]) for cause, one in _causes(explanation).items()},
        "advice": {cause: one.advice for cause, one in _causes(explanation).items()},
        "compile_time": plain(compile_time(explanation.compiles)),
    }
    rest = [field.name for field in fields(explanation) if field.name not in (*data, *_ABSENT)]
    data |= {name: plain(getattr(explanation, name)) for name in rest}
    numbers = plain.sources.numbers
    data["traced"] = {numbers[path]: list(lines) for path, lines in explanation.traced.items() if path in numbers}
    argv = explanation.argv
    program = " ".join(argv[: 2 if argv[0] in ("-m", "-c") else 1]) if argv else "this process"
    return {
        "breakscan": __version__,
        "title": f"{program} · breakscan explain",
        "outcome": outcome_line(explanation),
        "headline": headline(explanation),
        "times": time_sentences(explanation),
        # Failures can be breaks or functions: the first one decides.
        "order": list(dict.fromkeys(_TABS[one.problems[0].kind] for one in sections_of(explanation.problems))),
        "explanation": data,
        "rules": {
            id_: {"name": rule.name, "summary": rule.summary, "why": rule.why}
            for id_, rule in explanation.rules.items()
        },
        "paths": list(numbers),
        "short": [short_path(path) for path in numbers],
        "sources": plain.sources.segments(),
    }


class _PagePlain(Plain):
    """As for the JSON report, with more words and less text.  Files of problems are kept whole where there is room."""

    computed: ClassVar[Computed] = {
        **COMPUTED,
        BreakSite: {
            **COMPUTED[BreakSite],
            "hints": lambda site: break_problem(site).hints,
            "so": lambda site: " ".join(break_problem(site).consequences) or None,
        },
        UncompiledFrame: {**COMPUTED[UncompiledFrame], "label": lambda frame: frame_problem(frame).what},
        Export: {"how": attrgetter("how")},
    }

    def __init__(self, files: SourceFiles) -> None:
        self.sources = SourceStore(files)
        self._code_room, self._guard_room = MOST_CODE, MOST_GUARDS

    def __call__(self, value: Any) -> Any:
        if type(value) is CompiledFrame:
            value = self._with_room_for_guards(value)
        made = super().__call__(value)
        if type(value) in _WITH_WHOLE_FILE:
            for site in filter(None, (value.site, getattr(value, "failed_at", None))):
                self._number(site, marked=True)
        return made

    def text(self, text: str) -> str:
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

    def _number(self, site: Site, *, marked: bool = False) -> int:
        return self.sources.number(site.path, site.line, site.end_line, marked)

    def _with_room_for_guards(self, frame: CompiledFrame) -> CompiledFrame:
        """The compilation without the guards for which there is no room; their number stays."""
        guards = []
        for guard in frame.guards:
            self._guard_room -= len(guard.kind) + len(guard.text)
            if self._guard_room < 0:
                break
            guards.append(guard)
        count = frame.guard_count if frame.guard_count is not None else len(frame.guards) or None
        return replace(frame, guards=guards, guard_count=count)

    def _generated(self, generated: Generated) -> Any:
        """Generated code is left out where there is no room for it."""
        length = len(generated.code or "")
        code = generated.code if length <= self._code_room else None
        self._code_room -= length if code else 0
        return self({one.name: getattr(generated, one.name) for one in fields(generated)}) | {"code": code}

    special: ClassVar[Mapping[type, Callable[[Any, Any], Any]]] = {
        Site: lambda self, at: [self._number(at), at.line, at.column, at.end_line, at.end_column],
        Caller: lambda self, at: [
            self.sources.number(at.path, at.line, at.line),
            at.line,
            at.function,
            at.origin.value,
        ],
        GuardLine: lambda self, guard: [guard.kind, self(guard.text), self(guard.site)],
        Generated: _generated,
    }


_WITH_WHOLE_FILE = (BreakSite, UncompiledFrame, Recompile, Problem)


def _causes(explanation: Explanation) -> dict[int, Problem]:
    """The problems of recompiles by the number of their cause."""
    problems = [problem for problem in explanation.problems if problem.kind is ProblemKind.RECOMPILES]
    groups = causes_of(explanation.recompiles)
    return {group[0].cause: problem for group, problem in zip(groups, problems, strict=True)}


MOST_ROWS = 300  # of each table: enough for a reader without scripts, and soon parsed for the others


def _table(section: Section) -> str:
    problems = section.problems
    rows = map(_row, problems[:MOST_ROWS])
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows)
    rest = f"<p>{len(problems) - MOST_ROWS} more are shown with scripts only.</p>" if len(problems) > MOST_ROWS else ""
    return f"<h2>{section.topic.value}</h2><table><tr><th>Where<th>What<th>Why<th>Instead{body}</table>{rest}"


def _row(problem: Problem) -> tuple[str, ...]:
    inside = f" in {problem.function}" if problem.function else ""
    return (
        f"{problem.site.path}:{problem.site.line}:{problem.site.column}{inside}",
        " ".join(filter(None, [problem.what, problem.times, problem.rule_words])),
        sentences(problem.why, *problem.consequences),
        problem.advice or "",
    )


_SCRIPTS = """
dom words table theme tabs model code details overview breaks frames around recompiles source graphs guards compiling
exports ranks app
""".split()
"""In the order in which they run: names defined at the top of one are known to those after it."""


def write_html(report: ExplainReport, stream: TextIO) -> None:
    """Writes the report, ASCII only, with line ends as the stream has them."""
    data = island(report.explanation, report.files)
    style, script = _part("style.css"), "\n".join(_part(f"script/{name}.js") for name in _SCRIPTS)
    # The tables for a reader without scripts, as HTML in ASCII.
    static = [_table(section) for section in sections_of(report.explanation.problems)]
    if notices := "".join(f"<li>{escaped(notice.text)}" for notice in report.explanation.notices):
        static.append(f"<h2>Notes</h2><ul>{notices}</ul>")
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}"
    page = Template(_part("page.html")).substitute(
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        title=escaped(data["title"]),
        style=style,
        script=script,
        outcome=escaped(data["outcome"]),
        headline=escaped(data["headline"]),
        static="\n".join(static),
        data=_json_for_html(data),
    )
    stream.write(page)


def escaped(text: str) -> str:
    """Text as HTML in ASCII, also for attributes: one line, without characters that hide or reorder text."""
    return html.escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()


def _json_for_html(data: dict[str, Any]) -> str:
    """Returns JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")


def _digest(text: str) -> str:
    """The name of an inline script or style sheet with this text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
