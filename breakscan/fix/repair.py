"""The pipeline of ``fix``: from the findings of many files to the repair of each, and to what is written."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from breakscan.check.pipeline.check import no_collector
from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.result import FileRepair, Repair
from breakscan.model.findings import CheckResult, Finding, SourceError
from breakscan.model.words import grouped
from breakscan.rulebook.config import FileSettings, check_targets, library_of
from breakscan.source.files import usable_cores
from breakscan.source.module import SourceProblem
from breakscan.source.paths import display_path
from breakscan.source.writing import rewrite_file

Task = tuple[Path, tuple[Path, ...], tuple[Finding, ...]]
"""A file, the files from which the compiler reaches it, and its findings."""

FEWEST_FILES = 4
"""The number of files below which starting processes costs more than it saves."""


def repair_found(
    found: CheckResult,
    settings: FileSettings,
    wanted: WantedRewrites,
    *,
    jobs: int | None = None,
    checkers: Checker | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Repair:
    """Plans the repair of files that have been checked, perhaps by ``checkers``. Writes nothing.

    If only some places are wanted, only their files are repaired. ``jobs`` is the number of processes, by default one
    per core; ``on_progress`` receives the number of files that are done and their total."""
    paths = set(found.roots)
    if wanted.places is not None:
        paths &= {path for path, *_ in wanted.places}
    findings = grouped((finding.site.path, finding) for finding in found.findings)
    roots = {path: tuple(map(Path, found.roots[path])) for path in sorted(paths)}
    tasks = [(Path(os.path.abspath(path)), roots[path], tuple(findings.get(path, ()))) for path in roots]
    repairs: list[FileRepair] = []
    for repair in _repairs(tasks, settings, wanted, jobs, checkers):
        repairs.append(repair)
        if on_progress is not None:
            on_progress(len(repairs), len(tasks))
    errors = {*found.errors, *(error for repair in repairs for error in repair.errors)}
    ordered = sorted(errors, key=lambda error: (error.path, error.line))
    targets = found.targets or check_targets([settings.of(Path.cwd() / "no_file.py")])
    return Repair(tuple(repairs), tuple(ordered), found.files, targets)


MOST_FILES_TRIED = 10
"""The number of files above which no edits are planned that nobody asked for."""


def fixable(found: CheckResult, settings: FileSettings) -> list[Finding]:
    """The findings of a check that have an edit; none if more than :data:`MOST_FILES_TRIED` files may have one."""
    library = library_of(settings.of(Path(os.path.abspath(path))) for path in found.roots)
    paths = {one.site.path for one in found.findings if (rule := library.get(one.rule)) and rule.rewrites}
    if not paths or len(paths) > MOST_FILES_TRIED:
        return []
    tried = replace(found, roots={path: found.roots[path] for path in paths})
    own = {(one.rule, one.site) for one in found.findings}
    repair = repair_found(tried, settings, WantedRewrites(useful=True), jobs=1)
    return [one.finding for file in repair.files for one in file.applied if (one.finding.rule, one.finding.site) in own]


def _repairs(
    tasks: Sequence[Task], settings: FileSettings, wanted: WantedRewrites, jobs: int | None, checkers: Checker | None
) -> Iterator[FileRepair]:
    workers = min(jobs or usable_cores(), len(tasks))
    if workers <= 1 or len(tasks) < FEWEST_FILES:
        with no_collector():
            planned = _Planned(settings, wanted, tasks, checkers)
            yield from map(planned, tasks)
            planned.release()
        return
    if checkers is not None:
        checkers.release()
    from breakscan.check.pipeline.workers import in_processes  # slow to import

    start = partial(_Planned, settings, wanted, tasks)
    yield from in_processes(start, [[task] for task in tasks], workers, here=start(), died=_died)


def _died(task: Task) -> FileRepair:
    path, display = task[0], display_path(task[0], Path.cwd())
    message = "cannot be rewritten: the process died over it, a bug in breakscan or Python: please report it"
    return FileRepair(path, display, errors=(SourceError(display, 1, 1, message),))


class _Planned:
    """Repairs files one after the other."""

    def __init__(
        self, settings: FileSettings, wanted: WantedRewrites, tasks: Sequence[Task], checkers: Checker | None = None
    ) -> None:
        self.settings = settings
        self.wanted = wanted
        paths = [path for path, _, _ in tasks]
        self.studies = Studies(settings, paths, checkers)
        observed = any(settings.of(path).observations is not None for path in paths)
        self.observed = Studies(settings, paths, Checker(settings, observing=True)) if observed else None

    def __call__(self, task: Task) -> FileRepair:
        path, roots, found = task
        findings = found if self.observed is None else None
        return repair_file(path, roots, self.settings, self.wanted, self.studies, self.observed, findings)

    def release(self) -> None:
        self.studies.release()
        if self.observed is not None:
            self.observed.release()


def write_repairs(repairs: Iterable[FileRepair], unsafe: bool) -> tuple[SourceError, ...]:
    """Writes the files that change. Returns the reasons why some could not be written; those are left unchanged."""
    errors: list[SourceError] = []
    for repair in repairs:
        if (text := repair.text(unsafe)) != repair.before:
            try:
                rewrite_file(repair.path, repair.display, repair.before, text)
            except SourceProblem as problem:
                errors.append(problem.error)
    return tuple(errors)
