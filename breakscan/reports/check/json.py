"""The JSON of ``check``, as ``breakscan/schemas/check.schema.json`` describes it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any, TextIO

from breakscan import __version__
from breakscan.findings import CheckResult, Finding

SCHEMA = 1


def write_json(result: CheckResult, stream: TextIO) -> None:
    """Writes the result as one JSON object, ASCII only, and a line end."""
    json.dump(check_object(result), stream, indent=2)
    stream.write("\n")


def check_object(result: CheckResult) -> dict[str, Any]:
    """The result as plain dictionaries and lists."""
    by_rule = Counter(finding.rule for finding in result.findings)
    return {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        "target": {"torch": result.torch, "fullgraph": result.fullgraph},
        "findings": [finding_object(finding) for finding in result.findings],
        "errors": [asdict(error) for error in result.errors],
        "summary": {
            "files": result.files,
            "findings": len(result.findings),
            "by_rule": dict(sorted(by_rule.items())),
        },
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as a dictionary of plain values."""
    return {
        "rule": finding.rule,
        "name": finding.name,
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "site": asdict(finding.site),
        "function": finding.function,
        "region": asdict(finding.region) if finding.region else None,
        "gb": list(finding.gb),
        "rewrite": asdict(finding.rewrite) if finding.rewrite else None,
        "condition": finding.condition,
        "behind": asdict(finding.behind) if finding.behind else None,
    }
