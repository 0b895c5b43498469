"""The pipeline of ``check``: the findings of many files, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from breakscan.analysis.file_checker import FileChecker, FileResult
from breakscan.analysis.workers import check_files
from breakscan.config import Settings, resolve_target
from breakscan.findings import CheckResult


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
        total.add(checker.check_text(*stdin))
    done = 0
    for part, count in check_files(files, settings, checker, jobs):
        total.add(part)
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
