"""The findings of ``check`` as diagnostics."""

from __future__ import annotations

from breakscan.model.findings import Severity
from breakscan.report.check.report import CheckReport
from breakscan.report.check.words import summary_line
from breakscan.report.diagnostics.diagnostic import DiagnosticReport, Remark
from breakscan.report.diagnostics.finding import error_site, finding_diagnostic, unread_remark
from breakscan.report.shared.printable import printable


def check_diagnostics(report: CheckReport) -> DiagnosticReport:
    """One diagnostic for each finding, and a remark for each file or suppression comment that cannot be read."""
    originals: dict[str, str] = {}
    result = printable(report.result, originals)
    remarks = [unread_remark(error) for error in result.errors]
    remarks += [
        Remark(Severity.WARNING, warning.message, "suppression", error_site(warning)) for warning in result.warnings
    ]
    return DiagnosticReport(
        "check",
        [finding_diagnostic(finding, report.library.get(finding.rule)) for finding in result.findings],
        remarks=remarks,
        end=[summary_line(report)],
        texts={**report.texts, **report.cells.texts},
        cells=report.cells,
        originals=originals,
    )
