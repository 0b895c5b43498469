"""Checks one file: text → index → regions → values → events → findings."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.analysis.api import load_api
from breakscan.analysis.compile_calls import compile_events
from breakscan.analysis.index import FunctionInfo, build_index
from breakscan.analysis.judge import Judge
from breakscan.analysis.program import Program, State
from breakscan.analysis.regions import find_entries
from breakscan.config import Settings, enabled_rules, resolve_target
from breakscan.findings import Confidence, Finding, Mode, Site, SourceError
from breakscan.rulebook.ledger import load_ledger
from breakscan.rulebook.library import load_library
from breakscan.rulebook.matching import RuleIndex
from breakscan.source.module import SourceModule, SourceProblem, parse_module, read_module
from breakscan.source.paths import display_path
from breakscan.source.per_file_ignores import PerFileIgnores
from breakscan.source.suppressions import Suppressions

_SHOWN_FROM = [Confidence.CERTAIN, Confidence.LIKELY, Confidence.CONDITIONAL, Confidence.POSSIBLE]


@dataclass(slots=True)
class FileResult:
    """What one file gave."""

    findings: list[Finding] = field(default_factory=list)
    errors: list[SourceError] = field(default_factory=list)
    warnings: list[SourceError] = field(default_factory=list)
    suppressed: int = 0

    def add(self, part: FileResult) -> None:
        """Takes in what another file gave."""
        self.findings += part.findings
        self.errors += part.errors
        self.warnings += part.warnings
        self.suppressed += part.suppressed


class FileChecker:
    """Checks single files under one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.library = load_library(settings.rule_folders)
        enabled = enabled_rules(settings, self.library)
        self.rules = RuleIndex(rule for rule in self.library if rule.id in enabled)
        target = resolve_target(settings)
        mode = Mode.FULLGRAPH if settings.fullgraph else Mode.DEFAULT
        self.judge = Judge(self.rules, load_ledger(target.ledger), mode)
        self.api = load_api(target.ledger)
        self.per_file = PerFileIgnores(settings)
        self.shown = frozenset(_SHOWN_FROM[: _SHOWN_FROM.index(settings.confidence) + 1])

    def check_file(self, path: Path) -> FileResult:
        """The findings of a file."""
        try:
            return self.check_module(read_module(path, display_path(path, Path.cwd())))
        except SourceProblem as problem:
            return FileResult(errors=[problem.error])

    def check_text(self, text: str, path: Path) -> FileResult:
        """The findings of a text that goes by a path."""
        display = display_path(path, Path.cwd())
        try:
            return self.check_module(parse_module(text, path, display))
        except SourceProblem as problem:
            return FileResult(errors=[problem.error])

    def check_module(self, module: SourceModule) -> FileResult:
        """The findings of a parsed file."""
        result = FileResult()
        try:
            suppressions = Suppressions.read(module)
            result.warnings += suppressions.problems(self.library.select)
            found = self._findings(module)
        except RecursionError:
            result.errors.append(SourceError(module.display, 1, 1, "cannot be analysed: nested too deeply"))
            return result
        except Exception as error:
            # A fault of ours in one file must not cost the user the findings in all the others.
            at = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{error!r} in {Path(at.filename).name}:{at.lineno}"
            result.errors.append(
                SourceError(module.display, 1, 1, f"cannot be analysed: {where}, a bug in breakscan: please report it")
            )
            return result
        for finding in found:
            if finding.confidence not in self.shown or self.per_file.covers(module.path, finding.rule, finding.name):
                continue
            if suppressions.covers(finding):
                result.suppressed += 1
            else:
                result.findings.append(finding)
        return result

    def _findings(self, module: SourceModule) -> list[Finding]:
        if "torch" not in module.text and "Tensor" not in module.text:
            return []
        index = build_index(module.tree)
        program = Program(module, index, self.api, self.rules)
        program.run(find_entries(index, module.text, module.display, self.settings.regions))
        compiled = compiled_functions(program, everything=self.settings.regions == "all")
        flags = frozenset(program.flags)
        found: dict[tuple[str, Site], Finding] = {}
        for info, state in compiled.items():
            for event in state.events.values():
                for finding in self.judge.findings(event, module.display, info.qualname, state.region, flags):
                    _keep_surer(found, finding)
        for function, event in compile_events(program, set(compiled)):
            region = compiled[function].region if function in compiled else None
            name = function.qualname if function else None
            for finding in self.judge.findings(event, module.display, name, region, flags):
                _keep_surer(found, finding)
        return list(found.values())


def compiled_functions(program: Program, *, everything: bool) -> dict[FunctionInfo, State]:
    """The functions that the compiler will trace.

    With ``everything``, where any function may be an entry, those count that handle tensors, and what they call.
    """
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


def _keep_surer(found: dict[tuple[str, Site], Finding], finding: Finding) -> None:
    """Of two findings of one rule at one site, as of a function reached in two ways, the surer one."""
    key = finding.rule, finding.site
    known = found.get(key)
    if known is None or _SHOWN_FROM.index(finding.confidence) < _SHOWN_FROM.index(known.confidence):
        found[key] = finding
