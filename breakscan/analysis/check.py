"""The pipeline of ``check``: files → index → regions → values → events → findings, over all cores."""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.analysis.api import load_api
from breakscan.analysis.compile_calls import compile_events
from breakscan.analysis.index import FunctionInfo, build_index
from breakscan.analysis.judge import Judge
from breakscan.analysis.program import Program, State
from breakscan.analysis.regions import find_entries
from breakscan.config import Settings, enabled_rules, resolve_target
from breakscan.findings import CheckResult, Confidence, Finding, Mode, Site, SourceError
from breakscan.rulebook.ledger import load_ledger
from breakscan.rulebook.library import load_library
from breakscan.rulebook.matching import RuleIndex
from breakscan.source.module import SourceModule, SourceProblem, parse_module, read_module
from breakscan.source.paths import display_path
from breakscan.source.per_file_ignores import PerFileIgnores
from breakscan.source.suppressions import Suppressions

FILES_PER_TASK = 16
"""Enough to make handing a task over cheap, few enough to keep all cores busy to the end."""
FEWEST_FILES_FOR_WORKERS = 24
"""Below this, starting processes costs more than it saves."""
_SHOWN_FROM = [Confidence.CERTAIN, Confidence.LIKELY, Confidence.CONDITIONAL, Confidence.POSSIBLE]


@dataclass(slots=True)
class FileResult:
    """What one file gave."""

    findings: list[Finding] = field(default_factory=list)
    errors: list[SourceError] = field(default_factory=list)
    warnings: list[SourceError] = field(default_factory=list)
    suppressed: int = 0


def check_paths(
    files: Sequence[Path],
    settings: Settings,
    *,
    stdin: tuple[str, Path] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    jobs: int | None = None,
) -> CheckResult:
    """Checks files, given by their absolute paths, and a text from standard input under the path it goes by.

    A file that cannot be read or parsed becomes an error entry; the others are still checked.
    ``on_progress`` is called with how many files are done, and of how many.  ``jobs`` is the number of
    processes, by default one a core.
    """
    checker = FileChecker(settings)
    total = FileResult()
    if stdin is not None:
        _add(total, checker.check_text(*stdin))
    done = 0
    for part, count in _parts(files, settings, checker, jobs):
        _add(total, part)
        done += count
        if on_progress:
            on_progress(done, len(files))
    by_place = sorted(total.findings, key=lambda f: (f.site.path, f.site.line, f.site.column, f.rule))
    return CheckResult(
        findings=tuple(by_place),
        errors=tuple(sorted(total.errors, key=lambda e: (e.path, e.line))),
        files=len(files) + (stdin is not None),
        suppressed=total.suppressed,
        torch=resolve_target(settings).torch,
        fullgraph=settings.fullgraph,
        warnings=tuple(sorted(total.warnings, key=lambda e: (e.path, e.line))),
    )


def _add(total: FileResult, part: FileResult) -> None:
    total.findings += part.findings
    total.errors += part.errors
    total.warnings += part.warnings
    total.suppressed += part.suppressed


def _parts(
    files: Sequence[Path], settings: Settings, checker: FileChecker, jobs: int | None
) -> Iterator[tuple[FileResult, int]]:
    """The results of the files in some order, each with the number of files that it covers."""
    workers = min(jobs or os.cpu_count() or 1, len(files) // FILES_PER_TASK + 1)
    if workers == 1 or len(files) < FEWEST_FILES_FOR_WORKERS:
        for path in files:
            yield checker.check_file(path), 1
        return
    # The largest files first, so that none of them is left for the end.
    ordered = sorted(files, key=_size, reverse=True)
    tasks = max(workers, -(-len(ordered) // FILES_PER_TASK))
    batches = [ordered[i::tasks] for i in range(tasks)]
    with ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(settings, str(Path.cwd()))) as pool:
        for batch, result in zip(batches, pool.map(_check_batch, batches), strict=True):
            yield result, len(batch)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


_worker: FileChecker | None = None


def _start_worker(settings: Settings, folder: str) -> None:
    global _worker
    os.chdir(folder)
    # Trees are large, live briefly and hold no cycles worth looking for: the collector only costs here.
    gc.disable()
    _worker = FileChecker(settings)


def _check_batch(files: Iterable[Path]) -> FileResult:
    assert _worker is not None
    total = FileResult()
    for path in files:
        _add(total, _worker.check_file(path))
    gc.collect()
    return total


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
