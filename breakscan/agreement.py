"""What ``check`` expects of the code that a run compiled, beside what the run recorded.

The two halves know nothing of each other; here they meet.
"""

from __future__ import annotations

import ast
import bisect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from breakscan.analysis.pipeline.check import check_paths
from breakscan.analysis.pipeline.shadowed import reach_of, turn
from breakscan.config import Settings, enabled_rules
from breakscan.findings import (
    CheckResult,
    Confidence,
    Finding,
    Kind,
    Origin,
    Severity,
    Site,
    SourceError,
    Verdict,
)
from breakscan.rulebook.document import Rule
from breakscan.rulebook.ledger import version_key
from breakscan.rulebook.library import load_library
from breakscan.runtime.explain.explanation import BreakSite, Explanation, FrameStatus, UncompiledFrame
from breakscan.runtime.gates.site_match import given_up_alone
from breakscan.source.module import SourceModule, SourceProblem, decode_source, parse_module
from breakscan.source.paths import Patterns
from breakscan.source.per_file_ignores import PerFileIgnores
from breakscan.source.suppressions import Suppressions

Missed = BreakSite | UncompiledFrame
Key = tuple[Site, str]
"""What makes two recorded breaks the same: site and type."""

_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?P<package>[^/]+)")
_STANDARD = re.compile(r".*/lib/python3\.\d+/(?!(?:site|dist)-packages/)|<frozen ")
_JUDGED = (Kind.GRAPH_BREAK, Kind.RECOMPILE)
_SURE = (Confidence.CERTAIN, Confidence.LIKELY)


class AgreementOutcome(str, Enum):
    """What the run says of a finding."""

    CONFIRMED = "confirmed"
    """The run broke, or compiled again, there."""
    HIDDEN = "hidden"
    """A break before it gave the function up, so the compiler never got there."""
    NOT_TRIGGERED = "not-triggered"
    """Nothing of its line was compiled, or its condition did not hold, or nothing changed between calls."""
    CONTRADICTED = "contradicted"
    """The compiler traced the line, and compiled it without a break."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, what the run says of it, and where: the recorded site that confirms or hides it.  ``is_traced`` says
    that an operation of a graph comes from its lines."""

    finding: Finding
    outcome: AgreementOutcome
    by: Site | None
    is_traced: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """A run beside the check of what it compiled.

    ``missed`` are recorded breaks in checked files, and functions that Dynamo would not trace, that no finding speaks
    of; ``silenced`` those whose rule the configuration or a comment turns off.  ``files`` were checked, but for
    ``errors``; ``torch`` is the version that they were checked for.
    """

    torch: str
    files: tuple[str, ...]
    judged: tuple[Judged, ...]
    missed: tuple[Missed, ...]
    silenced: tuple[Missed, ...]
    hidden: Mapping[Key, tuple[Finding, ...]]
    errors: tuple[SourceError, ...]

    def count(self, outcome: AgreementOutcome) -> int:
        """How many findings have it."""
        return sum(one.outcome is outcome for one in self.judged)


def agree(explanation: Explanation, settings: Settings) -> Agreement:
    """Checks the functions that a run compiled, with a user's settings and the run's torch, and compares.

    Of the files of the run, those count that can be read and are not excluded, but for torch's and Python's own.
    Paths of the explanation are relative to the working directory.  Raises what ``check`` raises for an installation
    without verdicts.
    """
    torch = ".".join(map(str, version_key(explanation.torch)))
    settings = replace(settings, target_torch=torch)
    sources = Sources()
    exclude = Patterns(str(settings.root), settings.exclude)
    traced = traced_functions(explanation, sources)
    functions = {path: names for path, names in traced.items() if not exclude.decide(os.path.abspath(path))}
    by_file = {Path(os.path.abspath(path)): _with_enclosing(names) for path, names in functions.items()}
    result = check_paths(sorted(by_file), settings, functions=by_file)
    refused = given_up_alone(explanation)
    wanted = (
        f
        for f in result.findings
        if _is_traced(f, functions) or any(_hands_over(f, frame.rule, frame.function, sources) for frame in refused)
    )
    result = replace(result, findings=tuple(wanted))
    hidden = hidden_behind(explanation, result, sources)
    judged = tuple(_judge(result.findings, explanation, hidden, sources))
    unknown = list(_unknown(judged, explanation, functions))
    is_silenced = _silencer(settings, sources)
    return Agreement(
        torch=result.torch,
        files=tuple(functions),
        judged=judged,
        missed=tuple(site for site in unknown if not is_silenced(site)),
        silenced=tuple(site for site in unknown if is_silenced(site)),
        hidden=hidden,
        errors=result.errors,
    )


def _unknown(
    judged: Sequence[Judged], explanation: Explanation, functions: Mapping[str, Mapping[str, bool]]
) -> Iterator[Missed]:
    """What was recorded in the checked files and no finding tells."""
    known = {(site.path, line) for one in judged for site in [one.finding.site] for line in _lines(site)}
    for broken in explanation.breaks:
        path = broken.site.path
        told = any((path, line) in known for line in _lines(broken.site))
        if path in functions and broken.origin is not Origin.FRAMEWORK and not told:
            yield broken
    confirming = {one.by for one in judged}
    for frame in given_up_alone(explanation):
        if frame.gb_type and frame.site.path in functions and frame.site not in confirming:
            yield frame


def hidden_behind(
    explanation: Explanation, result: CheckResult, sources: Sources | None = None
) -> dict[Key, tuple[Finding, ...]]:
    """The findings that a break of the run keeps the compiler from, by the site and type of the break.

    They stand behind it in a function that it gave up, on every path that leads through it, and were neither recorded
    nor compiled.  Each is told once: at the first break that hides it.
    """
    sources = sources or Sources()
    recorded = _recorded_lines(explanation)
    open_ = [f for f in result.findings if f.kind is Kind.GRAPH_BREAK and not _touches(f.site, recorded)]
    open_ = [f for f in open_ if not _touches(f.site, explanation.traced)]
    hidden: dict[Key, tuple[Finding, ...]] = {}
    told: set[int] = set()
    for site in explanation.breaks:
        heads = list(_heads(site, sources))
        behind = [f for f in open_ if id(f) not in told and any(head.hides(f) for head in heads)]
        told |= {id(finding) for finding in behind}
        if behind:
            hidden[site.site, site.gb_type] = tuple(behind)
    return hidden


# -- what was traced ------------------------------------------------------------------------------------------


def traced_functions(explanation: Explanation, sources: Sources) -> dict[str, dict[str, bool]]:
    """The functions that the compiler was in, by file, for files that a user may want to change; the value tells
    whether Dynamo started there, and did not follow a call."""
    found: dict[str, dict[str, bool]] = {}

    def add(path: str, function: str | None, is_root: bool) -> None:
        if function is not None and _is_wanted(path) and sources.module(path) is not None:
            names = found.setdefault(path, {})
            names[function] = names.get(function, False) or is_root

    for graph in explanation.graphs:
        if graph.site:
            add(graph.site.path, graph.function, True)
    for compiled in explanation.compiles:
        add(compiled.site.path, compiled.function.removeprefix("the rest of "), True)
    for frame in explanation.frames:
        if frame.status is not FrameStatus.PASSED_OVER:
            add(frame.site.path, frame.function, True)
    roots = {(path, function) for path, names in found.items() for function in names}
    for path, lines in explanation.traced.items():
        if _is_wanted(path):
            for line in lines:
                add(path, sources.function(path, line), False)
    for site in explanation.breaks:
        stack = [(caller.path, sources.function(caller.path, caller.line) or caller.function) for caller in site.stack]
        first = max((n for n, caller in enumerate(stack) if caller in roots), default=len(stack))
        for caller in stack[first:]:
            add(*caller, False)
        add(site.site.path, sources.function(site.site.path, site.site.line) or site.function, False)
    return {path: found[path] for path in sorted(found)}


def _with_enclosing(names: Mapping[str, bool]) -> dict[str, bool]:
    """The functions, and those that they are defined in: what a lambda knows of its names stands there."""
    parts = (name.split(".") for name in names)
    enclosing = {".".join(part[:n]): False for part in parts for n in range(1, len(part))}
    return {**enclosing, **names}


def _is_wanted(path: str) -> bool:
    installed = _INSTALLED.match(path)
    return not _STANDARD.match(path) and not (installed and installed["package"] == "torch")


def _is_traced(finding: Finding, functions: Mapping[str, Mapping[str, bool]]) -> bool:
    name = (finding.function or "").replace(".<locals>", "")
    return finding.kind in _JUDGED and name in functions.get(finding.site.path, {})


def _hands_over(finding: Finding, rule: Rule | None, function: str | None, sources: Sources) -> bool:
    """Whether a finding is about the call that hands a function to the compiler, which does not take it."""
    if finding.kind is not Kind.GRAPH_BREAK or rule is None or rule.id != finding.rule or function is None:
        return False
    return re.search(rf"\b{re.escape(function.rpartition('.')[2])}\b", sources.text(finding.site)) is not None


class Sources:
    """The files of a run by the paths that reports show, each read once."""

    def __init__(self) -> None:
        self._files: dict[str, _File | None] = {}

    def module(self, path: str) -> SourceModule | None:
        """A file's tree; None where it cannot be read or parsed."""
        file = self._file(path)
        return file.module if file else None

    def text(self, site: Site) -> str:
        """The text of a site; nothing where the file cannot be read."""
        module = self.module(site.path)
        return module.segment(site) if module and site.end_line <= len(module.lines) else ""

    def function(self, path: str, line: int) -> str | None:
        """The qualified name of the function around a line, without ``<locals>``."""
        file = self._file(path)
        return file.function(line) if file else None

    def may_be_skipped(self, site: Site) -> bool:
        """Whether the code of a site can be left out when its line is run: a branch of an ``if`` expression, what
        follows an ``and``, what a comprehension makes."""
        file = self._file(site.path)
        return file is None or file.may_be_skipped(site)

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            try:
                text = decode_source(Path(path).read_bytes(), path)
                self._files[path] = _File(parse_module(text, Path(path), path))
            except (OSError, ValueError, SourceProblem):
                self._files[path] = None
        return self._files[path]


@dataclass(slots=True)
class _File:
    module: SourceModule
    _scopes: list[tuple[int, int, str]] = field(default_factory=list)

    def function(self, line: int) -> str | None:
        if not self._scopes:
            self._scopes = sorted(_functions(self.module.tree, ""))
        behind = bisect.bisect_right(self._scopes, (line, 1 << 31, ""))
        around = (name for first, last, name in reversed(self._scopes[:behind]) if last >= line)
        return next(around, None)

    def may_be_skipped(self, site: Site) -> bool:
        for node in ast.walk(self.module.tree):
            parts: list[ast.AST] = []
            if isinstance(node, ast.IfExp):
                parts = [node.body, node.orelse]
            elif isinstance(node, ast.BoolOp):
                parts = list(node.values[1:])
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
                parts = [node]
            if any(self._holds(part, site) for part in parts):
                return True
        return False

    def _holds(self, node: ast.AST, site: Site) -> bool:
        line, end_line = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not line <= site.line <= end_line:
            return False
        first = self.module.column(line, getattr(node, "col_offset", 0))
        last = self.module.column(end_line, getattr(node, "end_col_offset", 0))
        return (line, first) <= (site.line, site.column) and (site.end_line, site.end_column) <= (end_line, last)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[int, int, str]]:
    """The first and last line of every function, and its qualified name without ``<locals>``."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _functions(child, prefix)
            continue
        name = f"{prefix}{'<lambda>' if isinstance(child, ast.Lambda) else child.name}"
        if not isinstance(child, ast.ClassDef):
            yield child.lineno, child.end_lineno or child.lineno, name
        yield from _functions(child, f"{name}.")


# -- what the run says of a finding ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Recorded:
    """Something that the run recorded and a finding may have told: its rule, and where."""

    site: Site
    rule: Rule | None
    kind: Kind
    function: str | None
    whole: bool = False
    """Whether it is about a function and no line of it."""


def _judge(
    findings: Sequence[Finding], explanation: Explanation, hidden: Mapping[Key, Sequence[Finding]], sources: Sources
) -> Iterator[Judged]:
    confirmed = _confirmed(findings, list(_recorded(explanation)), sources)
    hiding = {id(finding): key[0] for key, group in hidden.items() for finding in group}
    for number, finding in enumerate(findings):
        is_traced = _touches(finding.site, explanation.traced)
        if number in confirmed:
            yield Judged(finding, AgreementOutcome.CONFIRMED, confirmed[number], is_traced)
        elif id(finding) in hiding:
            yield Judged(finding, AgreementOutcome.HIDDEN, hiding[id(finding)], is_traced)
        elif (
            is_traced
            and finding.kind is Kind.GRAPH_BREAK
            and finding.confidence in _SURE
            and not sources.may_be_skipped(finding.site)
        ):
            yield Judged(finding, AgreementOutcome.CONTRADICTED, None, is_traced)
        else:
            yield Judged(finding, AgreementOutcome.NOT_TRIGGERED, None, is_traced)


def _recorded(explanation: Explanation) -> Iterator[_Recorded]:
    for site in explanation.breaks:
        yield _Recorded(site.site, site.rule, Kind.GRAPH_BREAK, site.function)
    for frame in explanation.frames:
        if frame.break_site is None and frame.status is not FrameStatus.PASSED_OVER:
            yield _Recorded(frame.site, frame.rule, Kind.GRAPH_BREAK, frame.function, True)
    for again in explanation.recompiles:
        yield _Recorded(again.site, again.rule, Kind.RECOMPILE, again.function, True)


def _confirmed(findings: Sequence[Finding], recorded: Sequence[_Recorded], sources: Sources) -> dict[int, Site]:
    """The site that confirms each finding, by the finding's number: one of its rule at its place, else one of its rule
    on its lines, else any other on them that no finding accounts for."""
    confirmed: dict[int, Site] = {}
    used: set[int] = set()

    def take(fits: Callable[[Finding, _Recorded], bool], shared: bool) -> None:
        before = set(used)
        for number, finding in enumerate(findings):
            for other, record in enumerate(recorded):
                if number not in confirmed and (shared or other not in before) and fits(finding, record):
                    confirmed[number] = record.site
                    used.add(other)

    def same_rule(finding: Finding, record: _Recorded) -> bool:
        return record.rule is not None and record.rule.id == finding.rule

    take(lambda f, r: same_rule(f, r) and (_same_place(f.site, r.site) or _same_function(f, r)), shared=True)
    take(lambda f, r: same_rule(f, r) and r.whole and _hands_over(f, r.rule, r.function, sources), shared=True)
    take(lambda f, r: same_rule(f, r) and not r.whole and f.site.shares_line_with(r.site), shared=False)
    take(lambda f, r: r.kind is f.kind and not r.whole and f.site.shares_line_with(r.site), shared=False)
    # Two rules may speak of one thing.
    at = {findings[number].site: site for number, site in confirmed.items()}
    return {n: at[finding.site] for n, finding in enumerate(findings) if finding.site in at}


def _same_function(finding: Finding, record: _Recorded) -> bool:
    name = (finding.function or "").replace(".<locals>", "")
    return record.whole and finding.site.path == record.site.path and name == record.function


def _same_place(one: Site, other: Site) -> bool:
    """Whether two spans overlap."""
    start, end = (one.line, one.column), (one.end_line, one.end_column)
    return one.path == other.path and start < (other.end_line, other.end_column) and (other.line, other.column) < end


def _lines(site: Site) -> range:
    return range(site.line, site.end_line + 1)


def _touches(site: Site, lines: Mapping[str, Sequence[int]]) -> bool:
    """Whether a site has one of these lines, which are sorted."""
    known = lines.get(site.path, ())
    at = bisect.bisect_left(known, site.line)
    return at < len(known) and known[at] <= site.end_line


def _recorded_lines(explanation: Explanation) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for site in explanation.breaks:
        found.setdefault(site.site.path, set()).update(_lines(site.site))
    return {path: sorted(lines) for path, lines in found.items()}


# -- what a break hides ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Head:
    """The place in a function that was given up from which on nothing of it is compiled."""

    site: Site
    function: str
    module: SourceModule

    def hides(self, finding: Finding) -> bool:
        name = (finding.function or "").replace(".<locals>", "")
        if name != self.function or finding.site.path != self.site.path or turn(finding.site) <= turn(self.site):
            return False
        return reach_of(self.site, self.module).holds(finding.site)


def _heads(site: BreakSite, sources: Sources) -> Iterator[_Head]:
    """Where in each function that a break gave up the compiler stood: at the break, or at the call that led there."""
    if site.verdict not in (Verdict.EAGER, Verdict.RAISES):
        return
    given_up = [name.removeprefix("the rest of ") for name in site.given_up] or [site.function or ""]
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


# -- what is not to be told -----------------------------------------------------------------------------------


def _silencer(settings: Settings, sources: Sources) -> Callable[[Missed], bool]:
    """Tells of a recorded break whether the user wants to hear nothing of its rule there."""
    enabled = enabled_rules(settings, load_library(settings.rule_folders))
    per_file = PerFileIgnores(settings)

    def is_silenced(site: Missed) -> bool:
        module = sources.module(site.site.path)
        if site.rule is None or module is None:
            return False
        path = Path(os.path.abspath(site.site.path))
        if site.rule.id not in enabled or per_file.covers(path, site.rule.id, site.rule.name):
            return True
        return Suppressions.read(module).covers(_as_finding(site))

    return is_silenced


def _as_finding(site: Missed) -> Finding:
    assert site.rule is not None
    return Finding(
        rule=site.rule.id,
        name=site.rule.name,
        kind=Kind.GRAPH_BREAK,
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        message=site.reason,
        site=site.site,
        function=site.function,
        region=None,
        gb=(),
    )
