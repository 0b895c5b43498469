"""The data of an HTML report: the explanation as plain lists and dictionaries, the sentences that the terminal report
says of it, and the source text.

Keys are the field names of the explanation's dataclasses.  What there is much of is kept short: a ``Site`` is
``[path, line, column, end_line, end_column]``, a ``Caller`` ``[path, line, function, origin]``, a ``RunTotals``
``[graph, at, seconds]``, a ``GuardLine`` ``[kind, text, site]``, a ``TimeNode`` ``[name, part, seconds, count, site,
whether its line is the user's, what is in it]``; paths are numbers into ``paths``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from breakscan import __version__
from breakscan.explanation.advice import recompile_advice
from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.caches import CacheMiss, miss_words
from breakscan.explanation.compilations import CompiledFrame, GuardLine, restarts_in_words
from breakscan.explanation.compile_time import compile_time
from breakscan.explanation.cudagraphs import cause_words
from breakscan.explanation.eager_calls import EagerCalls, eager_calls_advice, eager_calls_reason
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.exports import Export, ExportFailure, way_words
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.graphs import Generated, Graph, saved_memory
from breakscan.explanation.guards import demand_words
from breakscan.explanation.problems import Section, break_problem, causes_of, export_problem, frame_problem, sections_of
from breakscan.explanation.rank_report import RankDifference, difference_words
from breakscan.explanation.recompiles import Recompile
from breakscan.explanation.run_totals import RunTotals
from breakscan.explanation.time_trees import TimeNode
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller, ProblemKind
from breakscan.model.words import short_path
from breakscan.report.explain.json import WORDS
from breakscan.report.explain.summary import ceiling_sentence, costs_sentence, headline, outcome_line
from breakscan.rulebook.document import Rule
from breakscan.source.source_files import SourceFiles

MOST_CHARACTERS = 5_000_000
"""Of source, in all of a report."""
LONGEST_WHOLE = 600_000
AROUND = 4
"""Lines kept before and after each mentioned line, if a file is not kept whole."""
Segment = tuple[int, str]
"""Consecutive lines: the number of the first, and their text."""


class SourceStore:
    """Gives each path a number, notes which of its lines are spoken of, and reads them in the end."""

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        self._numbers: dict[str, int] = {}
        self._lines: dict[str, set[int]] = {}
        self._marked: set[str] = set()

    def number(self, path: str, first: int, last: int, marked: bool = False) -> int:
        """The number of a path, whose lines from ``first`` to ``last`` are spoken of.  Of ``marked`` files the reader
        wants to see all."""
        self._lines.setdefault(path, set()).update(range(first, min(last, first + AROUND) + 1))
        if marked:
            self._marked.add(path)
        return self._numbers.setdefault(path, len(self._numbers))

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each path, in order."""
        return self._numbers

    def segments(self) -> dict[int, list[Segment]]:
        """By the number of its path, what is kept of each file that can be read: of all of them what is spoken of,
        then as many whole ones as there is room for."""
        room = MOST_CHARACTERS
        kept: dict[int, list[Segment]] = {}
        for path, number in sorted(self._numbers.items(), key=lambda item: item[0] not in self._marked):
            segments = list(_excerpts(self._files.lines(path), self._lines[path]))
            length = _length(segments)
            if segments and length <= room:
                kept[number] = segments
                room -= length
        for path, number in self._numbers.items():
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
    start = end = 0
    for line in sorted(line for line in wanted if 1 <= line <= len(lines)):
        if end and line - AROUND <= end + 1:
            end = min(line + AROUND, len(lines))
            continue
        if end:
            yield start, "\n".join(lines[start - 1 : end])
        start, end = max(line - AROUND, 1), min(line + AROUND, len(lines))
    if end:
        yield start, "\n".join(lines[start - 1 : end])


MOST_CODE = 4_000_000
"""Characters of generated code in all of a report."""
MOST_GUARDS = 2_000_000
"""Characters of guards in all of a report."""
LEAST_NODE = 0.0005
"""Seconds of what the compiler did."""
LONGEST = 20_000
"""Characters of one text that is not code."""
_TABS = {
    ProblemKind.BREAK: "breaks",
    ProblemKind.FAILURE: "frames",
    ProblemKind.FUNCTION: "frames",
    ProblemKind.EXPORT: "exports",
    ProblemKind.EAGER_CALLS: "eager",
    ProblemKind.RECOMPILES: "recompiles",
}
"""The tab that shows a kind of problem."""
_DIGITS = 7
"""Decimal places of seconds: a tenth of a microsecond."""


def island(explanation: Explanation, files: SourceFiles) -> dict[str, Any]:
    """All that the page shows, as objects that JSON can hold."""
    plain = _Plain(files)
    told = {
        "breaks": [_break(plain, site) for site in explanation.breaks],
        "frames": [_frame(plain, frame) for frame in explanation.frames],
        "recompiles": [_recompile(plain, recompile) for recompile in explanation.recompiles],
        "causes": _causes(explanation),
        "exports": [_export(plain, one) for one in explanation.exports],
        "export_failures": [_export_failure(plain, failure) for failure in explanation.export_failures],
        "eager_calls": [_eager_calls(plain, found) for found in explanation.eager_calls],
        "cudagraph_recordings": [{**plain(one), "why": cause_words(one)} for one in explanation.cudagraph_recordings],
        "graphs": plain(_with_room_for_code(explanation.graphs)),
        "compiles": plain(_with_room_for_guards(explanation.compiles)),
        "compile_time": plain(compile_time(explanation)),
        "saved_memory": plain(saved_memory(explanation.graphs)),
    }
    # The values of functions are for programs, and many.
    rest = [field.name for field in fields(explanation) if field.name not in (*told, "traced", "values", "timelines")]
    told |= {name: plain(getattr(explanation, name)) for name in rest}
    numbers = plain.sources.numbers
    told["traced"] = {numbers[path]: list(lines) for path, lines in explanation.traced.items() if path in numbers}
    return {
        "breakscan": __version__,
        "title": f"{_program(explanation.argv)} · breakscan explain",
        "outcome": outcome_line(explanation),
        "headline": headline(explanation),
        "costs": list(filter(None, (ceiling_sentence(explanation), costs_sentence(explanation)))),
        "order": list(dict.fromkeys(map(_tab, sections_of(explanation.problems)))),
        "explanation": told,
        "rules": {id_: _rule(rule) for id_, rule in explanation.rules.items()},
        "paths": list(numbers),
        "short": [short_path(path) for path in numbers],
        "sources": plain.sources.segments(),
    }


class _Plain:
    """Turns the explanation's objects into what JSON can hold."""

    def __init__(self, files: SourceFiles) -> None:
        self.sources = SourceStore(files)

    def __call__(self, value: Any, marked: bool = False) -> Any:
        if isinstance(value, Site):
            number = self.sources.number(value.path, value.line, value.end_line, marked)
            return [number, value.line, value.column, value.end_line, value.end_column]
        if isinstance(value, Caller):
            number = self.sources.number(value.path, value.line, value.line)
            return [number, value.line, value.function, value.origin.value]
        if isinstance(value, RankDifference):
            ranks, words = self(value.by_rank), self(difference_words(value))
            return {"what": words, "site": self(value.site), "by_rank": ranks}
        if words := WORDS.get(type(value)):
            return self(words(value))
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, CacheMiss):
            return self(miss_words(value))
        if isinstance(value, TimeNode):
            inner = [self(node) for node in value.inner if node.seconds >= LEAST_NODE]
            is_users = value.origin is Origin.USER
            return [
                value.name,
                value.part.value,
                round(value.seconds, _DIGITS),
                value.count,
                self(value.site),
                is_users,
                inner,
            ]
        if isinstance(value, RunTotals | GuardLine):
            return [self(getattr(value, field.name)) for field in fields(value)]
        if is_dataclass(value):
            told = {field.name: self(getattr(value, field.name)) for field in fields(value)}
            return told | {"code": value.code} if isinstance(value, Generated) else told
        if isinstance(value, Mapping):
            return {str(self(key)): self(item) for key, item in value.items()}
        if isinstance(value, float):
            return round(value, _DIGITS) if math.isfinite(value) else None
        if isinstance(value, str):
            return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
        if isinstance(value, Sequence):
            return [self(item) for item in value]
        return value

    def marked(self, value: BreakSite | UncompiledFrame | Recompile | EagerCalls | ExportFailure) -> Any:
        """As a call; the file that it is in is one to show whole."""
        return self(value) | {"site": self(value.site, marked=True)}


def _tab(section: Section) -> str:
    """That of its first entry: failures can be breaks or functions."""
    return _TABS[section.problems[0].kind]


def _break(plain: _Plain, site: BreakSite) -> dict[str, Any]:
    problem = break_problem(site)
    so = " ".join(problem.consequences) or None
    told = {"hints": list(problem.hints), "so": so, "advice": plain(problem.advice), "page": problem.page}
    return {**plain.marked(site), **told}


def _frame(plain: _Plain, frame: UncompiledFrame) -> dict[str, Any]:
    problem = frame_problem(frame)
    failed_at = frame.failed_at and plain(frame.failed_at, marked=True)
    return {**plain.marked(frame), "failed_at": failed_at, "advice": plain(problem.advice), "label": problem.what}


def _eager_calls(plain: _Plain, found: EagerCalls) -> dict[str, Any]:
    return {**plain.marked(found), "reason": eager_calls_reason(found), "advice": eager_calls_advice(found)}


def _export(plain: _Plain, one: Export) -> dict[str, Any]:
    return {**plain(one), "how": way_words(one.way, one.strict), "result": one.status.value}


def _export_failure(plain: _Plain, failure: ExportFailure) -> dict[str, Any]:
    problem = export_problem(failure)
    so, hints = " ".join(problem.consequences), list(problem.hints)
    words = {"why": problem.why, "label": problem.what, "so": so, "hints": hints, "advice": plain(problem.advice)}
    return {**plain.marked(failure), **words}


def _recompile(plain: _Plain, recompile: Recompile) -> dict[str, Any]:
    return {**plain.marked(recompile), "advice": plain(recompile_advice(recompile))}


def _causes(explanation: Explanation) -> dict[int, str]:
    """What changed and what came of it, in words, by the number of the cause."""
    problems = [problem for problem in explanation.problems if problem.kind is ProblemKind.RECOMPILES]
    groups = zip(causes_of(explanation.recompiles), problems, strict=True)
    return {group[0].cause: ". ".join([problem.why, *problem.consequences]) for group, problem in groups}


def _with_room_for_code(graphs: Iterable[Graph]) -> list[Graph]:
    """The graphs, without the generated code for which there is no room."""
    room = MOST_CODE

    def kept(generated: Generated) -> Generated:
        nonlocal room
        length = len(generated.code or "")
        if length > room:
            return replace(generated, code=None)
        room -= length
        return generated

    return [replace(graph, generated=tuple(kept(generated) for generated in graph.generated)) for graph in graphs]


def _with_room_for_guards(compiles: Iterable[CompiledFrame]) -> list[CompiledFrame]:
    """The compilations, without the guards for which there is no room; their number stays.  Restarts are in words."""
    room = MOST_GUARDS
    shown = []
    for frame in compiles:
        guards = []
        for guard in frame.guards:
            room -= len(guard.kind) + len(demand_words(guard.demand))
            if room < 0:
                break
            guards.append(guard)
        count = frame.guard_count if frame.guard_count is not None else len(frame.guards) or None
        shown.append(replace(frame, guards=guards, guard_count=count, restarts=restarts_in_words(frame)))
    return shown


def _program(argv: Sequence[str]) -> str:
    if not argv:
        return "this process"
    return " ".join(argv[:2]) if argv[0] in ("-m", "-c") else argv[0]


def _rule(rule: Rule) -> dict[str, str]:
    return {"name": rule.name, "summary": rule.summary, "why": rule.why}
