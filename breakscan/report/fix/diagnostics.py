"""The findings of ``fix`` as diagnostics, with what happened to each."""

from __future__ import annotations

from dataclasses import replace

from breakscan.fix.result import FileRepair
from breakscan.model.findings import Severity, SourceError
from breakscan.report.diagnostics.diagnostic import Diagnostic, DiagnosticReport, Remark
from breakscan.report.diagnostics.finding import error_site, finding_diagnostic, unread_remark
from breakscan.report.fix.outcomes import FindingOutcome, FixedFinding, fixed_findings
from breakscan.report.fix.report import FixReport
from breakscan.report.fix.words import summary_line
from breakscan.report.shared.printable import printable


def fix_diagnostics(report: FixReport) -> DiagnosticReport:
    """One diagnostic for each finding: a note if the rewrite was written, else with the severity of the finding."""
    originals: dict[str, str] = {}
    files = [printable(file, originals) for file in report.repair.files]
    errors = tuple(map(report.cells.error, report.repair.errors))
    remarks = [unread_remark(error) for error in printable(errors, originals)]
    remarks += [_unwritten(error) for error in printable(report.unwritten, originals)]
    return DiagnosticReport(
        "fix",
        [_diagnostic(one, report) for file in files for one in _findings(file, report)],
        remarks=remarks,
        end=[summary_line(report)],
        texts={**{file.display: file.before for file in report.repair.files}, **report.cells.texts},
        cells=report.cells,
        originals=originals,
    )


def _findings(file: FileRepair, report: FixReport) -> list[FixedFinding]:
    return fixed_findings(file, file.display in report.unwritten_paths, report.cells)


def _diagnostic(one: FixedFinding, report: FixReport) -> Diagnostic:
    diagnostic = finding_diagnostic(one.finding, report.library.get(one.finding.rule))
    is_gone = report.written and one.outcome is FindingOutcome.REWRITTEN
    severity = Severity.INFO if is_gone else diagnostic.severity
    return replace(diagnostic, severity=severity, details=(*diagnostic.details, _outcome(one, report.written)))


def _outcome(one: FixedFinding, written: bool) -> str:
    if one.outcome is FindingOutcome.REWRITTEN:
        return f"{'Rewritten' if written else 'breakscan fix --write rewrites this'} by {one.words}"
    if one.outcome is FindingOutcome.NOT_WRITTEN:
        return f"The file could not be written: this would be rewritten by {one.words}"
    if one.outcome is FindingOutcome.OBSERVED:
        return f"breakscan fix --observed rewrites this by {one.words}"
    if one.outcome is FindingOutcome.UNSAFE:
        return f"breakscan fix --unsafe rewrites this by {one.words}"
    if one.outcome is FindingOutcome.SOFTENS:
        return f"breakscan fix --soften softens this by {one.words}"
    if one.outcome is FindingOutcome.REGENERATE:
        return f"Generate the file again: this is {one.words}"
    return f"Not rewritten: {one.words}"


def _unwritten(error: SourceError) -> Remark:
    return Remark(Severity.ERROR, f"not written: {error.message}", "not written", error_site(error))
