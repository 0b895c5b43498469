"""The JSON of ``check``, as ``breakscan/schemas/check.schema.json`` describes it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, TextIO

from breakscan import __version__
from breakscan.report.check.report import CheckReport
from breakscan.report.shared.finding_json import finding_object, targets_object

SCHEMA = 1


def write_json(report: CheckReport, stream: TextIO) -> None:
    """Writes the result as one JSON object, ASCII only, and a line end."""
    json.dump(check_object(report), stream, indent=2)
    stream.write("\n")


def check_object(report: CheckReport) -> dict[str, Any]:
    """The result as plain dictionaries and lists."""
    result = report.result
    by_rule = Counter(finding.rule for finding in result.findings)
    return {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        **targets_object(result.targets),
        "findings": [finding_object(finding, report.cells, report.library) for finding in result.findings],
        "errors": [report.cells.object(error) for error in result.errors],
        "warnings": [report.cells.object(warning) for warning in result.warnings],
        "summary": {
            "files": result.files,
            "findings": len(result.findings),
            "known": report.known,
            "by_rule": dict(sorted(by_rule.items())),
        },
    }
