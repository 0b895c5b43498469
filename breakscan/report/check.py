"""Reports of ``check``: JSON by ``schemas/check.schema.json``, and diagnostics.  ``check_terminal.py`` has others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from breakscan.model.findings import CheckResult, Finding, Mode, Severity
from breakscan.model.words import counted
from breakscan.report.diagnostics import DiagnosticReport, Remark, error_site, finding_diagnostic
from breakscan.report.findings import MODE_WORDS, finding_object, targets_object, versions_words
from breakscan.report.printable import printable, write_json_report
from breakscan.report.sources import NotebookCells
from breakscan.rulebook.library import Library


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A result of ``check``, the seconds that it took, and the rules.  ``texts`` holds the sources of paths that are
    not on disk, such as standard input.  Of notebooks, the result shows places in ``cells``.  ``known`` counts the
    findings that a baseline allows, or that another commit has, which are not in the result, and ``fixable`` those that
    ``fix`` has an edit for.  ``quiet`` leaves out all but the findings and what was not checked.  ``changes`` are the
    findings that are new, gone or changed between two versions of torch, as they were and as they are."""

    result: CheckResult
    seconds: float
    library: Library
    texts: Mapping[str, str] = field(default_factory=dict)
    cells: NotebookCells = field(default_factory=NotebookCells)
    known: int = 0
    quiet: bool = False
    fixable: int = 0
    changes: Sequence[tuple[str, Finding | None, Finding | None]] | None = None


def summary_line(report: CheckReport) -> str:
    """``2 errors, 3 warnings in 41 files (0.4 s) · torch 2.13, default mode · 3 hidden · 1 suppressed``."""
    result = report.result
    counts = Counter(finding.severity for finding in result.findings if finding.behind is None)
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}
    found = [counted(counts[severity], word) for severity, word in words.items() if counts[severity]]
    found = found or ["nothing new" if report.known else "nothing found"]
    modes = {finding.mode for finding in result.findings} or {target.mode for target in result.targets}
    parts = [
        f"{', '.join(found)} in {counted(result.files, 'file')} ({report.seconds:.1f} s)",
        f"torch {versions_words(result.targets)}, {' and '.join(MODE_WORDS[mode] for mode in Mode if mode in modes)}",
    ]
    if not counts and not report.known:
        more = [f"{len(result.outside)} more in files that were not given"] if result.outside else []
        more += [counted(len(result.unknown), "unknown target")] if result.unknown else []
        compiled = ", ".join([counted(len(result.compiled), "compiled function"), *more])
        parts.insert(1, f"{compiled}: --show-regions" if more else compiled)
    if behind := len(result.findings) - counts.total():
        parts.append(f"{behind} hidden")
    if result.elsewhere:
        parts.append(f"{len(result.elsewhere)} more in code that is not seen to be compiled: --regions modules")
    if report.known:
        parts.append(f"{report.known} known")
    if result.suppressed:
        parts.append(f"{result.suppressed} suppressed")
    if result.errors:
        parts.append(f"{counted(len(result.errors), 'path')} not checked")
    return " · ".join(parts)


def region_lines(result: CheckResult) -> Iterator[str]:
    """A line for each entry that counts as compiled, and for each call whose target is unknown."""
    reached, outside = Counter(result.compiled), Counter(result.outside)
    for region in sorted(reached | outside, key=lambda one: (one.path, one.line, one.entry or "")):
        parts = [f"{region.path}:{region.line}: {region.entry}", region.how or "assumed"]
        parts += [counted(reached[region], "function")] if reached[region] else []
        parts += [f"{counted(outside[region], 'function')} in files that were not given"] if outside[region] else []
        yield " · ".join(parts)
    yield from (f"{place}: unknown target" for place in result.unknown)


def write_json(report: CheckReport, stream: TextIO) -> None:
    result, cells = report.result, report.cells

    def listed(finding: Finding | None) -> object:
        return finding and finding_object(finding, cells, report.library)

    by_rule = Counter(finding.rule for finding in result.findings)
    data = {
        **targets_object(result.targets),
        "findings": [listed(finding) for finding in result.findings],
        "errors": [cells.object(error) for error in result.errors],
        "warnings": [cells.object(warning) for warning in result.warnings],
        "summary": {
            "files": result.files,
            "findings": len(result.findings),
            "known": report.known,
            "by_rule": dict(sorted(by_rule.items())),
        },
    }
    if report.changes is not None:
        data["changes"] = [{"change": how, "before": listed(a), "after": listed(b)} for how, a, b in report.changes]
    write_json_report(1, data, stream)


def check_diagnostics(report: CheckReport) -> DiagnosticReport:
    """One diagnostic for each finding, and a remark for each file or suppression comment that cannot be read."""
    originals: dict[str, str] = {}
    result = printable(report.result, originals)
    remarks = [
        Remark(Severity.ERROR, f"not checked: {error.message}", "not checked", error_site(error))
        for error in result.errors
    ]
    remarks += [Remark(Severity.WARNING, one.message, "suppression", error_site(one)) for one in result.warnings]
    return DiagnosticReport(
        "check",
        [finding_diagnostic(finding, report.library.get(finding.rule)) for finding in result.findings],
        remarks=remarks,
        end=[summary_line(report)],
        texts={**report.texts, **report.cells.texts},
        cells=report.cells,
        originals=originals,
    )
