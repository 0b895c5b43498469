"""GitLab's Code Quality report: the subset of the Code Climate format that GitLab reads."""

from __future__ import annotations

import json
from typing import TextIO

from breakscan.model.findings import Severity
from breakscan.report.diagnostics.diagnostic import DiagnosticReport
from breakscan.report.diagnostics.placed import placed

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}
_NOT_CHECKED = "critical"


def write_gitlab(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes a list with one object for each diagnostic and each remark that has a site: GitLab shows nothing without a
    line.  ASCII only, and a line end."""
    entries = [
        {
            "description": one.text if one.not_checked else f"{one.title}: {one.text}",
            "check_name": one.check,
            "fingerprint": one.fingerprint,
            "severity": _NOT_CHECKED if one.not_checked else _SEVERITIES[one.severity],
            "location": {"path": one.path, "lines": {"begin": one.site.line, "end": one.site.end_line}},
        }
        for one in placed(report)
        if one.site
    ]
    json.dump(entries, stream, indent=2)
    stream.write("\n")
