"""Checks one file: text → index → regions → values → events → findings."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from breakscan.check.compile_uses.events import compile_events
from breakscan.check.interpreter.program import Program
from breakscan.check.interpreter.signatures import State
from breakscan.check.interpreter.value_log import Notes
from breakscan.check.pipeline.results import CONFIDENCE_ORDER, FileResult, Merged
from breakscan.check.pipeline.shadowed import gives_up, reach_of
from breakscan.check.project.entry_points import find_entries, observed_entries
from breakscan.check.project.imports import Project
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.check.project.roots import Entry
from breakscan.model.findings import (
    Condition,
    ConditionKind,
    Confidence,
    Finding,
    Kind,
    Mode,
    Place,
    Region,
    Severity,
    Site,
    SourceError,
    Verdict,
)
from breakscan.model.observations import Observations
from breakscan.model.torch_versions import NESTED as NESTED_TARGET
from breakscan.rulebook.config import Settings, resolve_target
from breakscan.rulebook.document import EventPattern, Rule
from breakscan.rulebook.events import Event
from breakscan.rulebook.ledger import Ledger, Ruling, load_ledger
from breakscan.rulebook.library import Library
from breakscan.rulebook.matching import RuleIndex, argument_conditions
from breakscan.rulebook.remedies import ASKS_FOR_NAMES, NESTED, remedies_at
from breakscan.rulebook.torch_facts.table import load_api
from breakscan.source.module import SourceProblem
from breakscan.source.paths import display_path
from breakscan.source.suppressions import Suppressions
from breakscan.source.walking import walk

# Turns events into findings: which rule, and what the targeted torch does at such a place.
_JUDGED = (Kind.GRAPH_BREAK, Kind.EXPORT, Kind.RECOMPILE, Kind.WRONG_RESULT)
"""Kinds that depend on the version of torch; misuse is misuse in all of them."""
_OF_EXPORTS = frozenset({Kind.GRAPH_BREAK, Kind.EXPORT})
"""An exported program is not compiled again, and what is wrong with ``torch.compile`` need not concern it."""
_OF_TENSORS = ("tensor", "shape:by-data")
"""Words for values that are as sure as what is known of a tensor."""
_ENDS_COMPILATION = (Verdict.EAGER, Verdict.RAISES, Verdict.WRONG)


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules of the kinds for the mode, the ledger for the targeted version, the mode, and that version.
    With ``everything``, what rarely happens counts like other conditions."""

    rules: RuleIndex
    ledger: Ledger
    mode: Mode
    torch: str
    everything: bool

    def findings(
        self, event: Event, path: str, function: str | None, region: Region | None, flags: frozenset[str]
    ) -> list[Finding]:
        """The findings that an event makes: none where the targeted torch compiles it. ``flags`` are the settings of
        ``torch._dynamo.config`` that the program switches on."""
        found = []
        for rule, pattern in self.rules.matching(event):
            if not self.mode.exports and not flags.isdisjoint(rule.flags):
                continue
            ruling, is_settled = self._ruling(rule, event)
            verdict = ruling.verdict if ruling else None
            if rule.kind in _JUDGED and verdict is Verdict.COMPILES:
                continue
            under = (event.test,) if event.test else event.conditions
            conditions = tuple(dict.fromkeys([*under, *argument_conditions(event, pattern)]))
            confidence = _confidence(event, pattern, conditions)
            if not is_settled or (event.rare and not self.everything):
                confidence = Confidence.POSSIBLE
            is_break = rule.kind is Kind.GRAPH_BREAK
            is_placed = is_break and not self.mode.exports
            is_called = is_placed and region is not None and region.entry != function
            splits_callers = is_called and verdict is Verdict.SPLITS and rule.id != ASKS_FOR_NAMES
            found.append(
                Finding(
                    rule=rule.id,
                    name=rule.name,
                    kind=rule.kind,
                    severity=Severity.ERROR if is_break and verdict in _ENDS_COMPILATION else rule.severity,
                    confidence=confidence,
                    message=rule.message.format(callee=event.callee, attribute=event.attribute, text=event.text),
                    site=Site(path, event.line, event.column, event.end_line, event.end_column),
                    function=function,
                    region=region,
                    gb=ruling.gb if ruling else (),
                    verdict=verdict,
                    place=event.place if is_placed else Place.PLAIN,
                    via=event.via if is_placed else None,
                    mode=self.mode,
                    torch=self.torch,
                    conditions=conditions if confidence is Confidence.CONDITIONAL else (),
                    remedies=(NESTED,) if splits_callers and NESTED not in flags else (),
                )
            )
        return found

    def _ruling(self, rule: Rule, event: Event) -> tuple[Ruling | None, bool]:
        """The verdict of the ledger on an event, and whether all examples of such events agree on it. The first example
        decides, but of exports one that fails: whether code like it can be exported depends more on the code around it
        than whether it compiles."""
        labels = rule.examples_of(event.callee)
        rulings = self.ledger.rulings(rule.id, self.mode, event.place, event.form, labels)
        if not self.mode.exports:
            return (rulings[0] if rulings else None), True
        failing = [ruling for ruling in rulings if ruling.verdict is not Verdict.COMPILES]
        return next(iter(failing or rulings), None), len(failing) in (0, len(rulings))


def _confidence(event: Event, pattern: EventPattern, conditions: Sequence[Condition]) -> Confidence:
    confidence = event.confidence
    if pattern.operand or any(state.startswith(_OF_TENSORS) for wanted in pattern.arguments for state in wanted.states):
        confidence = max(confidence, event.operand_confidence, key=CONFIDENCE_ORDER.index)
    if any(condition.kind is ConditionKind.DEVICE for condition in conditions):
        return Confidence.POSSIBLE
    return Confidence.CONDITIONAL if conditions and confidence is not Confidence.POSSIBLE else confidence


@lru_cache(maxsize=16)
def _rule_index(library: Library, kinds: frozenset[Kind]) -> RuleIndex:
    return RuleIndex(rule for rule in library if rule.kind in kinds)


class FileChecker:
    """Checks one file after the other under one set of settings, by all rules: what is shown depends on the settings of
    the files that hold the findings (see :class:`.Shown`). ``observations`` are taken for true."""

    def __init__(self, settings: Settings, observations: Observations | None = None) -> None:
        self.settings = settings
        self.library = settings.library
        self.target = resolve_target(settings)
        self.api = load_api(self.target.ledger.removesuffix(NESTED_TARGET))
        self.project = Project(settings.root, observations)

    def check_file(self, path: Path, text: str | None = None, notes: Notes | None = None) -> FileResult:
        """The findings of what a file, or a text that goes by its path, hands to the compiler. ``notes`` collects facts
        for rewrites."""
        self.project.start(path)
        result = FileResult(str(path))
        try:
            index = self.project.load(path, text)
            with self.project.sparing(index, index.module.tree):
                _with_deep_stack(self._check, index, result, notes)
        except SourceProblem as problem:
            result.errors.append(problem.error)
        except RecursionError:
            reason = "cannot be analyzed: nested too deeply"
            result.errors.append(SourceError(display_path(path, Path.cwd()), 1, 1, reason))
        result.errors += dict.fromkeys(self.project.faults)
        result.depends = self.project.depends
        return result

    def _check(self, index: ModuleIndex, result: FileResult, notes: Notes | None) -> None:
        own = Suppressions.read(index.module)
        result.warnings += own.problems(self.library.problem_with)
        suppressions = {index: own}
        eager: set[tuple[str, str | None]] = set()
        splits: list[tuple[ModuleIndex, Finding]] = []
        for where, finding in self._findings(index, notes, result):
            if where not in suppressions:
                suppressions[where] = Suppressions.read(where.module)
            if suppressions[where].covers(finding):
                result.suppressed.append(finding)
                continue
            result.findings.append(self._with_remedies(finding, where))
            if gives_up(finding):
                result.reaches.append(reach_of(finding.site, where.module))
                eager.add((finding.site.path, finding.function))
            elif finding.verdict is Verdict.SPLITS:
                splits.append((where, finding))
        for where, finding in splits:
            if (finding.site.path, finding.function) in eager:  # it takes long
                result.reaches.append(reach_of(finding.site, where.module))

    def _with_remedies(self, finding: Finding, where: ModuleIndex) -> Finding:
        rule = self.library.get(finding.rule)
        if rule is None:
            return finding
        returns = finding.region is not None and finding.region.entry == finding.function
        key = "remedies", rule.id, finding.site, returns
        at_site = where.answers.get(key)  # kept for all files that reach the finding
        if not isinstance(at_site, tuple):
            at_site = where.answers[key] = remedies_at(rule, where.module, finding.site, returns=returns)
        return replace(finding, remedies=(*at_site, *finding.remedies))

    def _findings(
        self, index: ModuleIndex, notes: Notes | None, result: FileResult
    ) -> Iterator[tuple[ModuleIndex, Finding]]:
        if not _MAY_COMPILE.search(index.module.text):
            return
        entries, roots = find_entries(self.project, index, self.settings.regions, self.settings.mode)
        result.calls = roots.calls
        entries += observed_entries(self.project, index, self.settings.mode)
        found = Merged()
        where: dict[str, ModuleIndex] = {}
        for mode, some in self._by_mode(entries).items():
            where |= self._find(index, some, mode, found, notes, result)
        for finding in found.findings():
            yield where[finding.site.path], finding

    def _find(
        self,
        index: ModuleIndex,
        entries: list[Entry],
        mode: Mode,
        found: Merged,
        notes: Notes | None,
        result: FileResult,
    ) -> dict[str, ModuleIndex]:
        """Adds the findings of some entries, which are compiled in one way.  Returns the files that hold them."""
        kinds = _OF_EXPORTS if mode.exports else frozenset(Kind) - {Kind.EXPORT}
        rules = _rule_index(self.library, kinds)
        program = Program(self.project, index, self.api, rules, mode, notes=notes)
        program.run(entries)
        compiled = compiled_functions(program, everything=self.settings.regions == "all")
        for drawn in {info.index for info in compiled}:
            if "_dynamo.config" in drawn.module.text:
                program.names.assigned(drawn)  # a setting made in any file that is imported holds for all
        if "_dynamo.config" in index.module.text:
            for node in walk(index.tree):  # also in functions such as main
                if isinstance(node, ast.Assign):
                    program.config.read_assignment(index, node)
                elif isinstance(node, ast.Call):
                    program.config.read_call(index, node)
        asked = {NESTED} if self.target.ledger.endswith(NESTED_TARGET) else set()
        flags = frozenset(program.config.flags | (asked - program.config.off))
        ledger = load_ledger(self.api.version + (NESTED_TARGET if NESTED in flags else ""))
        judge = Judge(rules, ledger, mode, self.target.torch, self.settings.regions == "all")
        for info, state in compiled.items():
            path = info.index.module.display
            if state.region is not None:
                result.compiled[f"{path}:{info.node.lineno}"] = state.region
            for event in state.events.values():
                for finding in judge.findings(event, path, info.qualname, state.region, flags):
                    found.add(finding)
        with self.project.sparing(index, index.module.tree):
            for function, event in compile_events(program, set(compiled)):
                region = compiled[function].region if function in compiled else None
                name = function.qualname if function else None
                for finding in judge.findings(event, index.module.display, name, region, flags):
                    found.add(finding)
        program.release()
        return {one.module.display: one for one in (index, *(info.index for info in compiled))}

    def _by_mode(self, entries: list[Entry]) -> dict[Mode, list[Entry]]:
        """The entries by the mode in which they are compiled: as the settings say, or as the code does.  What a file
        only exports is exported as it is there."""
        wanted = self.settings.mode
        exported = [entry.mode for entry in entries if entry.mode is not None and entry.mode.exports]
        if len(exported) == len(entries) > 0 and not wanted.exports:
            wanted = Mode.EXPORT if Mode.EXPORT in exported else Mode.EXPORT_STRICT
        by_mode: dict[Mode, list[Entry]] = {wanted: []}
        for entry in entries:
            is_full = wanted is Mode.DEFAULT and entry.mode is Mode.FULLGRAPH
            by_mode.setdefault(Mode.FULLGRAPH if is_full else wanted, []).append(entry)
        return {mode: some for mode, some in by_mode.items() if some or len(by_mode) == 1}


_MAY_COMPILE = re.compile("torch|Tensor")


def compiled_functions(program: Program, *, everything: bool) -> dict[FunctionInfo, State]:
    """The functions that the compiler will trace. With ``everything``, where any function may be an entry, those count
    that handle tensors or what NumPy computes, and what they call."""
    if not everything:
        return program.states
    reached = {info for info, state in program.states.items() if state.handles_tensors}
    queue = list(reached)
    while queue:
        for callee in program.states[queue.pop()].calls:
            if callee not in reached and callee in program.states:
                reached.add(callee)
                queue.append(callee)
    return {info: state for info, state in program.states.items() if info in reached}


SLOTS = 20_000
"""The space that a frame requests, in pointers; the chunk is the next power of two: the rest is for other frames."""


def _with_deep_stack(function: Callable[..., None], *arguments: Any) -> None:
    """Calls a function where calls go deep. From 3.11 on, CPython keeps the frames of Python functions in chunks of 16
    KiB, and maps and unmaps one whenever calls cross the end of the last (``push_chunk`` in ``Python/pystate.c``). An
    interpreter of expressions crosses it all the time, which took a tenth of its time. A frame that requests much space
    gets a chunk with space for all."""
    function(*arguments)


_with_deep_stack.__code__ = _with_deep_stack.__code__.replace(co_stacksize=SLOTS)
