"""The Reviewdog Diagnostic Format, which reviewdog posts as comments of a review in many services."""

from __future__ import annotations

import json
from typing import Any, TextIO

from breakscan.model.findings import Severity, Site
from breakscan.report.diagnostics.diagnostic import DiagnosticReport
from breakscan.report.diagnostics.line_texts import LineTexts
from breakscan.report.diagnostics.placed import placed

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def write_rdjson(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes one object with a diagnostic for each diagnostic and each remark that has a site, ASCII only, and a line
    end."""
    lines = LineTexts(report)
    found = [
        {
            "message": one.text,
            "location": {"path": one.path, "range": _range(one.site, lines if one.has_columns else None)},
            "severity": _SEVERITIES[one.severity],
            "code": {"value": one.title},
        }
        for one in placed(report)
        if one.site
    ]
    json.dump({"source": {"name": "breakscan"}, "diagnostics": found}, stream, indent=2)
    stream.write("\n")


def _range(site: Site, lines: LineTexts | None) -> dict[str, Any]:
    """A site as the format has it: columns count the bytes of UTF-8 from 1, and the end is exclusive."""
    start: dict[str, int] = {"line": site.line}
    end: dict[str, int] = {"line": site.end_line}
    if lines is not None:
        start["column"] = _bytes_before(lines.line(site.path, site.line), site.column) + 1
        end["column"] = _bytes_before(lines.line(site.path, site.end_line), site.end_column) + 1
    return {"start": start, "end": end}


def _bytes_before(line: str, column: int) -> int:
    before = line[: column - 1]
    # A column past the end of the line stays as far behind it.
    return len(before.encode("utf-8", "surrogatepass")) + column - 1 - len(before)
