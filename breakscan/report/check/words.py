"""The last line of the reports of ``check``."""

from __future__ import annotations

from collections import Counter

from breakscan.model.findings import CheckResult, Mode, Severity
from breakscan.model.words import counted
from breakscan.report.check.report import CheckReport
from breakscan.report.shared.finding_words import MODE_WORDS, versions_words


def summary_line(report: CheckReport) -> str:
    """``2 errors, 3 warnings in 41 files (0.4 s) · torch 2.13, default mode · 3 hidden · 1 suppressed``."""
    result = report.result
    counts = Counter(finding.severity for finding in result.findings if finding.behind is None)
    behind = sum(finding.behind is not None for finding in result.findings)
    found = [
        counted(counts[severity], one, many)
        for severity, one, many in (
            (Severity.ERROR, "error", "errors"),
            (Severity.WARNING, "warning", "warnings"),
            (Severity.INFO, "hint", "hints"),
        )
        if counts[severity]
    ]
    nothing = "nothing new" if report.known else "nothing found"
    parts = [
        f"{', '.join(found) or nothing} in {counted(result.files, 'file')} ({report.seconds:.1f} s)",
        f"torch {versions_words(result.targets)}, {' and '.join(MODE_WORDS[mode] for mode in _modes(result))}",
    ]
    if behind:
        parts.append(f"{behind} hidden")
    if report.known:
        parts.append(f"{report.known} known")
    if result.suppressed:
        parts.append(f"{result.suppressed} suppressed")
    if result.errors:
        parts.append(f"{counted(len(result.errors), 'path')} not checked")
    return " · ".join(parts)


def _modes(result: CheckResult) -> list[Mode]:
    """How the findings' code is compiled: as it was asked for, or as a file exports it."""
    found = {finding.mode for finding in result.findings} or {target.mode for target in result.targets}
    return [mode for mode in Mode if mode in found]
