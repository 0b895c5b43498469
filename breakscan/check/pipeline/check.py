"""The pipeline of ``check``: the findings of many files, in order."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from breakscan.check.pipeline.checker import Checker, Shown
from breakscan.check.pipeline.results import FileResult, Merged, is_assumed, weight
from breakscan.check.pipeline.shadowed import Reach, mark_behind
from breakscan.check.project.roots import CompileCalls, PathLine
from breakscan.model.findings import CheckResult, Finding, Region, Site, SourceError
from breakscan.model.words import grouped
from breakscan.rulebook.config import FileSettings, check_targets, library_of
from breakscan.source.files import usable_cores
from breakscan.source.paths import display_path


def check_paths(
    files: Sequence[Path],
    settings: FileSettings,
    *,
    stdin: tuple[str, Path] | None = None,
    reached_from: Sequence[Path] = (),
    on_progress: Callable[[int, int], None] | None = None,
    jobs: int | None = None,
    checkers: Checker | None = None,
    earlier: Callable[[Path], FileResult | None] | None = None,
    apart: bool = True,
    on_purpose: bool = False,
) -> CheckResult:
    """Checks files, given by their absolute paths, and a text from standard input under the path it goes by. A file
    that cannot be read or parsed becomes an error entry. Files ``reached_from`` are those whose compiled code reaches
    that text. ``on_progress`` is called with how many files are done, and of how many. ``jobs`` is the number of
    processes, by default one a core. ``earlier`` gives results in place of those kept. ``apart`` says that what a
    project that compiles by name does not compile is no finding; a part of its files cannot know that. ``on_purpose``
    shows breaks that the code asks for, as do settings with the least confidence."""
    merged, silenced, covered = Merged(), Merged(), Merged()
    errors: list[SourceError] = []
    warnings: list[SourceError] = []
    reaches: list[Reach] = []
    depends: set[str] = set()
    checked_from: dict[tuple[str, Site], str] = {}
    """For each finding, one of the files whose check reports it: its own, else the first by path."""
    calls, compiled = CompileCalls(), dict[PathLine, Region | None]()
    shown = Shown(settings, on_purpose)

    def take(result: FileResult) -> None:
        for finding in result.findings:
            if finding.site.path in wanted and shown.shows(finding):
                merged.add(finding)
                key, own = (finding.rule, finding.site), os.path.join(cwd, finding.site.path)
                both = {checked_from.get(key, result.path), result.path}
                checked_from[key] = own if own in both else min(both)
        for finding in result.suppressed:
            if finding.site.path in wanted:
                covered.add(finding)
            if finding.site.path in wanted and shown.shows(finding):
                silenced.add(finding)
        errors.extend(result.errors)
        warnings.extend(result.warnings)
        reaches.extend(result.reaches)
        calls.add(result.calls)
        for place, region in result.compiled.items():
            path = place.rpartition(":")[0]
            compiled[place] = min(compiled.get(place), region, key=lambda r, path=path: weight(r, path))

    cwd = Path.cwd()
    paths = [*files, *([stdin[1]] if stdin is not None else [])]
    wanted = {display_path(path, cwd) for path in paths}
    checker = checkers or Checker(settings)
    if stdin is not None:
        text, name = stdin
        with checker.changed(name, text, [name, *reached_from]):
            for way in ((name, text), *((root, None) for root in reached_from)):
                result = checker.check_file(*way)
                take(result)
                depends.update(result.depends)
    earlier = earlier or checker.known
    anew: list[Path] = []
    for path in files:
        known = earlier(path)
        if known is not None:
            take(known)
        else:
            anew.append(path)
    with no_collector():
        found = _results(anew, checker, jobs)
        for done, result in enumerate(found, len(files) - len(anew) + 1):
            take(result)
            if on_progress:
                on_progress(done, len(files))
        if checkers is None:
            checker.release()
        else:
            checker.release_observed()
    by_place = sorted(merged.findings(), key=lambda f: (f.site.path, f.site.line, f.site.column, f.rule))
    distinct = list({id(one): one for one in map(settings.of, paths)}.values())
    kept, elsewhere = list[Finding](), list[Finding]()
    for f in by_place:
        is_apart = apart and calls.name_all and is_assumed(f.region)
        (elsewhere if is_apart and settings.of(cwd / f.site.path).regions == "auto" else kept).append(f)
    roots = grouped((site.path, root) for (_, site), root in checked_from.items())
    deferred = {rule.id for rule in library_of(distinct) if rule.deferred}
    regions: dict[bool, list[Region]] = {True: [], False: []}
    for place, region in sorted(compiled.items()):
        if region and not (apart and calls.name_all and is_assumed(region)):
            regions[place.rpartition(":")[0] in wanted].append(region)
    return CheckResult(
        findings=tuple(f for f in mark_behind(kept, reaches, deferred) if shown.shows(f)),
        errors=tuple(sorted(dict.fromkeys(errors), key=lambda e: (e.path, e.line))),
        files=len(paths),
        suppressed=len(silenced.findings()),
        targets=check_targets(distinct),
        warnings=tuple(sorted(warnings, key=lambda e: (e.path, e.line))),
        covered=tuple(covered.findings()),
        roots={path: tuple(sorted({*found_from})) for path, found_from in roots.items()},
        depends=frozenset(depends),
        elsewhere=tuple(elsewhere),
        compiled=regions[True],
        outside=[region for region in regions[False] if not is_assumed(region)],
        unknown=sorted(calls.unknown | ((calls.name | calls.part) - calls.known)),
    )


FILES_PER_TASK = 16
"""Enough to make handing a task over cheap, few enough to keep all cores busy to the end."""
FEWEST_FILES = 24
"""Below this, starting processes costs more than it saves."""


def _results(files: Sequence[Path], checker: Checker, jobs: int | None) -> Iterator[FileResult]:
    """The result of each file, in some order."""
    workers = min(jobs or usable_cores(), len(files) // FILES_PER_TASK + 1)
    if workers == 1 or len(files) < FEWEST_FILES:
        return map(checker.check, files)
    from breakscan.check.pipeline.workers import in_processes  # slow to import

    start = partial(_started, checker.settings)
    return in_processes(start, _batches(files, workers), workers, here=checker.check, died=_died)


def _started(settings: FileSettings) -> Callable[[Path], FileResult]:
    checker = Checker(settings)
    # The files that a result depends on are hundreds of paths, which only the cache needs.
    return lambda path: replace(checker.check(path), depends={})


def _died(path: Path) -> FileResult:
    message = "cannot be analyzed: the process died over it, a bug in breakscan or Python: please report it"
    return FileResult(str(path), errors=[SourceError(display_path(path, Path.cwd()), 1, 1, message)])


def _batches(files: Sequence[Path], workers: int) -> list[list[Path]]:
    """Batches of files of one folder, which import the same files; the largest first, so that cores end together."""
    ordered = sorted(files)
    size = max(1, min(FILES_PER_TASK, len(ordered) // workers))
    batches = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    return sorted(batches, key=lambda batch: -sum(map(_size, batch)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def no_collector() -> Iterator[None]:
    """Disables the garbage collector, which would walk all trees again and again: they are freed explicitly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
