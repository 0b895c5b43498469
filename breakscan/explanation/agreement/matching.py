"""Matches the findings of ``check`` with what a run recorded."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from breakscan.check.pipeline.shadowed import reach_of, turn
from breakscan.explanation.breaks import BreakSite, Key
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.model.findings import CheckResult, Finding, Kind, Site, Verdict
from breakscan.model.problem import FunctionHead, Problem, ProblemKind
from breakscan.source.module import SourceModule, SourceProblem, parse_module
from breakscan.source.source_files import SourceFiles
from breakscan.source.spans import Outline, may_be_skipped, without_locals


class Sources:
    """Parses the files of a run. Files that are not what ran, or cannot be read or parsed, are treated as unknown."""

    def __init__(self, files: SourceFiles) -> None:
        self._run = files
        self._files: dict[str, _File | None] = {}

    def module(self, path: str) -> SourceModule | None:
        """Return the syntax tree of a file."""
        file = self._file(path)
        return file.module if file else None

    def text(self, site: Site) -> str:
        """Return the text of a site, or the empty string."""
        module = self.module(site.path)
        return module.segment(site) if module and site.end_line <= len(module.lines) else ""

    def function(self, path: str, line: int) -> str | None:
        """Return the qualified name, without ``<locals>``, of the function or lambda around a line."""
        file = self._file(path)
        scope = file.outline.function_at(line, lambdas=True) if file else None
        return scope.path if scope else None

    def may_be_skipped(self, site: Site) -> bool:
        """Return whether the code of a site may be left out when its line runs."""
        module = self.module(site.path)
        return module is None or may_be_skipped(site, module)

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            text = self._run.text(path) if self._run.is_current(path) else None
            try:
                self._files[path] = None if text is None else _File(parse_module(text, Path(path), path))
            except SourceProblem:
                self._files[path] = None
        return self._files[path]


@dataclass
class _File:
    module: SourceModule

    @cached_property
    def outline(self) -> Outline:
        return Outline(self.module.tree)


def lines_of(site: Site) -> range:
    """The lines that a site spans."""
    return range(site.line, site.end_line + 1)


def touches(site: Site, lines: Mapping[str, Sequence[int]]) -> bool:
    """Return whether a site spans one of these lines, which are sorted."""
    known = lines.get(site.path, ())
    at = bisect.bisect_left(known, site.line)
    return at < len(known) and known[at] <= site.end_line


_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?P<package>[^/]+)")
_STANDARD = re.compile(r".*/lib/python3\.\d+/(?!(?:site|dist)-packages/)|<frozen ")
_COMPARED = (Kind.GRAPH_BREAK, Kind.RECOMPILE)


def traced_functions(explanation: Explanation, sources: Sources) -> dict[str, dict[str, bool]]:
    """Return the functions that the compiler entered, by file, in files that a user may want to change. The value is
    True if Dynamo started there, and False if it followed a call.
    """
    found: dict[str, dict[str, bool]] = {}

    def add(path: str, function: str | None, is_root: bool) -> None:
        if function is not None and is_wanted(path) and sources.module(path) is not None:
            names = found.setdefault(path, {})
            names[function] = names.get(function, False) or is_root

    for graph in explanation.graphs:
        if graph.site:
            add(graph.site.path, graph.function, True)
    for compiled in explanation.compiles:
        add(compiled.site.path, compiled.function, True)
    for frame in explanation.frames:
        if frame.status is not FrameStatus.PASSED_OVER:
            add(frame.site.path, frame.function, True)
    roots = {(path, function) for path, names in found.items() for function in names}
    for path, lines in explanation.traced.items():
        if is_wanted(path):
            for line in lines:
                add(path, sources.function(path, line), False)
    for site in explanation.breaks:
        stack = [(caller.path, sources.function(caller.path, caller.line) or caller.function) for caller in site.stack]
        first = max((n for n, caller in enumerate(stack) if caller in roots), default=len(stack))
        for caller in stack[first:]:
            add(*caller, False)
        add(site.site.path, sources.function(site.site.path, site.site.line) or site.function, False)
    return {path: found[path] for path in sorted(found)}


def with_enclosing(names: Mapping[str, bool]) -> dict[str, bool]:
    """Return the functions and their enclosing functions, which bind the names that a lambda uses."""
    parts = (name.split(".") for name in names)
    enclosing = {".".join(part[:n]): False for part in parts for n in range(1, len(part))}
    return {**enclosing, **names}


def is_wanted(path: str) -> bool:
    """Return whether a file may be one that a user wants to change: not torch's or the standard library's."""
    installed = _INSTALLED.match(path)
    return not _STANDARD.match(path) and not (installed and installed["package"] == "torch")


def is_compiled(finding: Finding, functions: Mapping[str, Mapping[str, bool]]) -> bool:
    """Return whether a finding lies in a function that the run compiled."""
    name = without_locals(finding.function or "")
    return finding.kind in _COMPARED and name in functions.get(finding.site.path, {})


def head_of(problem: Problem) -> FunctionHead:
    """The function that a problem is about, and its first line; of a line, the function that it is in."""
    return problem.head or FunctionHead(problem.site, problem.functions[0] if problem.functions else "")


def confirming_sites(findings: Sequence[Finding], problems: Sequence[Problem], sources: Sources) -> dict[int, Site]:
    """Return the recorded site that confirms each finding, by the finding's number.

    A site of the same rule at the same position is preferred, then one of the same rule on the same lines, then any
    other site on these lines that no finding accounts for.
    """
    confirmed: dict[int, Site] = {}
    used: set[int] = set()
    sites = [head_of(problem).site for problem in problems]

    def take(fits: Callable[[Finding, Problem, Site], bool], shared: bool) -> None:
        before = set(used)
        for number, finding in enumerate(findings):
            for other, problem in enumerate(problems):
                if number not in confirmed and (shared or other not in before) and fits(finding, problem, sites[other]):
                    confirmed[number] = sites[other]
                    used.add(other)

    def of_line(finding: Finding, problem: Problem, site: Site) -> bool:
        return not problem.is_about_function and finding.site.shares_line_with(site)

    def is_there(finding: Finding, problem: Problem, site: Site) -> bool:
        return _same_place(finding.site, site) or _same_function(finding, problem)

    take(lambda f, p, site: p.rule == f.rule and is_there(f, p, site), shared=True)
    take(lambda f, p, site: hands_over(f, p, sources), shared=True)
    take(lambda f, p, site: p.rule == f.rule and of_line(f, p, site), shared=False)
    take(lambda f, p, site: p.predicted_as is f.kind and of_line(f, p, site), shared=False)
    # Two rules may report the same site.
    at = {findings[number].site: site for number, site in confirmed.items()}
    return {n: at[finding.site] for n, finding in enumerate(findings) if finding.site in at}


def _same_function(finding: Finding, problem: Problem) -> bool:
    head, name = head_of(problem), without_locals(finding.function or "")
    names = problem.functions if problem.kind is ProblemKind.RECOMPILES else (head.function,)
    return problem.is_about_function and finding.site.path == head.site.path and name in names


def _same_place(one: Site, other: Site) -> bool:
    """Return whether two spans overlap."""
    start, end = (one.line, one.column), (one.end_line, one.end_column)
    return one.path == other.path and start < (other.end_line, other.end_column) and (other.line, other.column) < end


def hands_over(finding: Finding, problem: Problem, sources: Sources) -> bool:
    """Return whether a finding is about the call that passes a function to the compiler, and the compiler rejects the
    function.
    """
    name = head_of(problem).function.rpartition(".")[2]
    if not problem.is_lost or finding.kind is not Kind.GRAPH_BREAK or problem.rule != finding.rule or not name:
        return False
    return re.search(rf"\b{re.escape(name)}\b", sources.text(finding.site)) is not None


def hidden_behind(explanation: Explanation, result: CheckResult, sources: Sources) -> dict[Key, tuple[Finding, ...]]:
    """Return the findings that the compiler did not reach because of a break of the run, by the break's site and type.

    They follow the break in a function that runs eager because of it, on every path through the break, and were neither
    recorded nor compiled. Each is reported once, at the first break that hides it.
    """
    recorded = _recorded_lines(explanation)
    open_ = [f for f in result.findings if f.kind is Kind.GRAPH_BREAK and not touches(f.site, recorded)]
    open_ = [f for f in open_ if not touches(f.site, explanation.traced)]
    hidden: dict[Key, tuple[Finding, ...]] = {}
    reported: set[int] = set()
    for site in explanation.breaks:
        heads = list(_heads(site, sources))
        following = [f for f in open_ if id(f) not in reported and any(head.hides(f) for head in heads)]
        reported |= {id(finding) for finding in following}
        if following:
            hidden[site.site, site.gb_type] = tuple(following)
    return hidden


def _recorded_lines(explanation: Explanation) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for site in explanation.breaks:
        found.setdefault(site.site.path, set()).update(lines_of(site.site))
    return {path: sorted(lines) for path, lines in found.items()}


@dataclass(slots=True)
class _Head:
    """The site in a function that runs eager, from which on nothing of the function is compiled."""

    site: Site
    function: str
    module: SourceModule

    def hides(self, finding: Finding) -> bool:
        name = without_locals(finding.function or "")
        if name != self.function or finding.site.path != self.site.path or turn(finding.site) <= turn(self.site):
            return False
        return reach_of(self.site, self.module).holds(finding.site)


def _heads(site: BreakSite, sources: Sources) -> Iterator[_Head]:
    """Return where the compiler stopped in each function that a break made run eager: at the break, or at the call
    that led there.
    """
    if site.verdict not in (Verdict.EAGER, Verdict.RAISES):
        return
    given_up = [part.function for part in site.given_up] or [site.function or ""]
    for function in dict.fromkeys(given_up):
        where: Site | None = site.site
        if function != site.function:
            caller = next((c for c in reversed(site.stack) if c.function == function), None)
            where = _statement(caller.path, caller.line, sources) if caller else None
        module = sources.module(where.path) if where else None
        if where is not None and module is not None:
            yield _Head(where, function, module)


def _statement(path: str, line: int, sources: Sources) -> Site | None:
    module = sources.module(path)
    if module is None or not 1 <= line <= len(module.lines):
        return None
    text = module.lines[line - 1]
    return Site(path, line, len(text) - len(text.lstrip()) + 1, line, len(text.rstrip()) + 1)
