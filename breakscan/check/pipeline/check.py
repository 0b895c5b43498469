"""The pipeline of ``check``: the findings of many files, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from breakscan.check.pipeline.cache_fingerprint import Caches
from breakscan.check.pipeline.deep_stack import with_deep_stack
from breakscan.check.pipeline.file_checkers import FileCheckers
from breakscan.check.pipeline.merge import Merged, Roots
from breakscan.check.pipeline.results import FileResult
from breakscan.check.pipeline.shadowed import Reach, mark_behind
from breakscan.check.pipeline.shown import Shown
from breakscan.check.pipeline.workers import check_files
from breakscan.model.findings import CheckResult, CompiledFunction, SourceError
from breakscan.rulebook.config import FileSettings, check_targets, library_of
from breakscan.source.paths import display_path


def check_paths(
    files: Sequence[Path],
    settings: FileSettings,
    *,
    stdin: tuple[str, Path] | None = None,
    reached_from: Sequence[Path] = (),
    on_progress: Callable[[int, int], None] | None = None,
    jobs: int | None = None,
    functions: Mapping[Path, Mapping[str, bool]] | None = None,
    checkers: FileCheckers | None = None,
    earlier: Callable[[Path], FileResult | None] | None = None,
) -> CheckResult:
    """Checks files, given by their absolute paths, and a text from standard input under the path it goes by.

    A file that cannot be read or parsed becomes an error entry; the others are still checked.  Files ``reached_from``
    are those whose compiled code reaches that text; what they bring about in it counts.
    ``on_progress`` is called with how many files are done, and of how many.  ``jobs`` is the number of
    processes, by default one a core.  ``functions`` names those that the compiler is known to have been in, see
    :class:`.FileChecker`: they alone are checked then, in this process, and no result is kept.  ``earlier`` gives
    results that are known to hold, in place of those that are kept.
    """
    merged, silenced, covered = Merged(), Merged(), Merged()
    errors: list[SourceError] = []
    warnings: list[SourceError] = []
    reaches: list[Reach] = []
    depends: set[str] = set()
    compiled: tuple[CompiledFunction, ...] = ()
    roots = Roots()
    shown = Shown(settings)

    def take(result: FileResult) -> None:
        for finding in result.findings:
            if finding.site.path in wanted and shown.shows(finding):
                merged.add(finding)
                roots.add(finding, result.path)
        for finding in result.suppressed:
            if finding.site.path in wanted:
                covered.add(finding)
            if finding.site.path in wanted and shown.shows(finding):
                silenced.add(finding)
        errors.extend(result.errors)
        warnings.extend(result.warnings)
        reaches.extend(result.reaches)

    cwd = Path.cwd()
    paths = [*files, *([stdin[1]] if stdin is not None else [])]
    wanted = {display_path(path, cwd) for path in paths}
    if stdin is not None:
        text, name = stdin
        own = checkers or FileCheckers(settings)
        with own.changed(name, text, [name, *reached_from]):
            ways = [(name, text), *((root, None) for root in reached_from)]
            for result in (with_deep_stack(lambda way: own.check_file(*way), way) for way in ways):
                take(result)
                depends.update(result.depends)
                if result.path == str(name):
                    compiled = tuple(result.compiled)
        if checkers is None:
            own.release()
    known_of = earlier or (Caches(settings, cwd).result if functions is None else lambda path: None)
    anew: list[Path] = []
    for path in files:
        known = known_of(path)
        if known is not None:
            take(known)
        else:
            anew.append(path)
    checked = (
        check_files(anew, settings, jobs, checkers) if functions is None else _in_functions(files, settings, functions)
    )
    for done, result in enumerate(checked, len(files) - len(anew) + 1):
        take(result)
        if on_progress:
            on_progress(done, len(files))
    by_place = sorted(merged.findings(), key=lambda f: (f.site.path, f.site.line, f.site.column, f.rule))
    distinct = list({id(one): one for one in map(settings.of, paths)}.values())
    deferred = {rule.id for rule in library_of(distinct) if rule.deferred}
    return CheckResult(
        findings=tuple(f for f in mark_behind(by_place, reaches, deferred) if shown.shows(f)),
        errors=tuple(sorted(errors, key=lambda e: (e.path, e.line))),
        files=len(paths),
        suppressed=len(silenced.findings()),
        targets=check_targets(distinct),
        warnings=tuple(sorted(warnings, key=lambda e: (e.path, e.line))),
        covered=tuple(covered.findings()),
        roots=roots.by_path(),
        depends=frozenset(depends),
        kept=len(files) - len(anew),
        compiled=compiled,
    )


def _in_functions(
    files: Sequence[Path], settings: FileSettings, functions: Mapping[Path, Mapping[str, bool]]
) -> Iterator[FileResult]:
    checkers = FileCheckers(settings, functions)
    for path in files:
        yield with_deep_stack(checkers.check_file, path)
    checkers.release()
