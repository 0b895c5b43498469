"""The pipeline of ``check``: the findings of many files, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from breakscan.analysis.pipeline.cache_fingerprint import open_cache
from breakscan.analysis.pipeline.check_file import FileChecker
from breakscan.analysis.pipeline.deep_stack import with_deep_stack
from breakscan.analysis.pipeline.merge import CONFIDENCE_ORDER, Merged, Roots
from breakscan.analysis.pipeline.results import FileResult
from breakscan.analysis.pipeline.shadowed import Reach, mark_behind
from breakscan.analysis.pipeline.workers import check_files
from breakscan.config import Settings, resolve_target
from breakscan.findings import CheckResult, SourceError
from breakscan.rulebook.library import load_library
from breakscan.source.paths import display_path


def check_paths(
    files: Sequence[Path],
    settings: Settings,
    *,
    stdin: tuple[str, Path] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    jobs: int | None = None,
    functions: Mapping[Path, Mapping[str, bool]] | None = None,
    checker: FileChecker | None = None,
) -> CheckResult:
    """Checks files, given by their absolute paths, and a text from standard input under the path it goes by.

    A file that cannot be read or parsed becomes an error entry; the others are still checked.
    ``on_progress`` is called with how many files are done, and of how many.  ``jobs`` is the number of
    processes, by default one a core.  ``functions`` names those that the compiler is known to have been in, see
    :class:`FileChecker`: they alone are checked then, in this process, and no result is kept.
    """
    merged, silenced = Merged(), Merged()
    errors: list[SourceError] = []
    warnings: list[SourceError] = []
    reaches: list[Reach] = []
    roots = Roots()

    def take(result: FileResult) -> None:
        for finding in result.findings:
            if finding.site.path in wanted:
                merged.add(finding)
                roots.add(finding, result.path)
        for finding in result.suppressed:
            if finding.site.path in wanted:
                silenced.add(finding)
        errors.extend(result.errors)
        warnings.extend(result.warnings)
        reaches.extend(result.reaches)

    cwd = Path.cwd()
    wanted = {display_path(path, cwd) for path in files}
    if stdin is not None:
        wanted.add(display_path(stdin[1], cwd))
        take(FileChecker(settings).check_file(stdin[1], stdin[0]))
    cache = open_cache(settings, cwd) if functions is None else None
    anew: list[Path] = []
    for path in files:
        known = cache.get(path) if cache is not None else None
        if known is not None:
            take(known)
        else:
            anew.append(path)
    checked = (
        check_files(anew, settings, jobs, checker) if functions is None else _in_functions(files, settings, functions)
    )
    for done, result in enumerate(checked, len(files) - len(anew) + 1):
        take(result)
        if on_progress:
            on_progress(done, len(files))
    by_place = sorted(merged.findings(), key=lambda f: (f.site.path, f.site.line, f.site.column, f.rule))
    deferred = frozenset(rule.id for rule in load_library(settings.rule_folders) if rule.deferred)
    shown = CONFIDENCE_ORDER[: CONFIDENCE_ORDER.index(settings.confidence) + 1]
    return CheckResult(
        findings=tuple(f for f in mark_behind(by_place, reaches, deferred) if f.confidence in shown),
        errors=tuple(sorted(errors, key=lambda e: (e.path, e.line))),
        files=len(files) + (stdin is not None),
        suppressed=len(silenced.findings()),
        torch=resolve_target(settings).torch,
        mode=settings.mode,
        warnings=tuple(sorted(warnings, key=lambda e: (e.path, e.line))),
        roots=roots.by_path(),
    )


def _in_functions(
    files: Sequence[Path], settings: Settings, functions: Mapping[Path, Mapping[str, bool]]
) -> Iterator[FileResult]:
    checker = FileChecker(settings, functions)
    for path in files:
        yield with_deep_stack(checker.check_file, path)
    checker.project.release()
