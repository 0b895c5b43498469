"""The JSON of ``fix``, as ``breakscan/schemas/fix.schema.json`` describes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TextIO

from breakscan import __version__
from breakscan.fix.result import Applied, FileRepair
from breakscan.model.findings import Finding
from breakscan.report.fix.diff import diff_lines
from breakscan.report.fix.report import FixReport
from breakscan.report.shared.finding_json import finding_object, targets_object

SCHEMA = 2

Show = Callable[[Finding], dict[str, Any]]


def write_fix_json(report: FixReport, stream: TextIO) -> None:
    """Writes the repair as one JSON object in ASCII, with a line end."""
    repair, cells = report.repair, report.cells

    def show(finding: Finding) -> dict[str, Any]:
        return finding_object(cells.finding(finding), cells, report.library)

    failed = {error.path for error in report.unwritten}
    made = {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        **targets_object(repair.targets),
        "files": [_file(file, report.written and file.display not in failed, show) for file in repair.files],
        "errors": [cells.object(error) for error in (*map(cells.error, repair.errors), *report.unwritten)],
        "summary": {
            "files": repair.checked,
            "changed": sum(file.changed for file in repair.files),
            "applied": sum(len(file.applied) for file in repair.files),
            "observed": sum(not one.differences for file in repair.files for one in file.held),
            "unsafe": sum(bool(one.differences) for file in repair.files for one in file.held),
            "softening": sum(len(file.softened) for file in repair.files),
            "regenerated": sum(one.at_origin is not None for file in repair.files for one in file.refused),
            "declined": sum(one.at_origin is None for file in repair.files for one in file.refused),
            "without": sum(len(file.without) for file in repair.files),
        },
    }
    json.dump(made, stream, indent=2)
    stream.write("\n")


def _file(file: FileRepair, written: bool, show: Show) -> dict[str, Any]:
    return {
        "path": file.display,
        "changed": file.changed,
        "written": written and file.changed,
        "diff": "".join(diff_lines(file)),
        "applied": [_applied(one, show) for one in file.applied],
        "observed": [_applied(one, show) for one in file.held if not one.differences],
        "unsafe": [_applied(one, show) for one in file.held if one.differences],
        "softening": [_applied(one, show) for one in file.softened],
        "regenerated": [
            {"finding": show(one.finding), "by": _applied(one.at_origin, show)}
            for one in file.refused
            if one.at_origin is not None
        ],
        "declined": [
            {
                "finding": show(refused.finding),
                "reasons": [{"rewrite": one.rewrite, "reason": one.text, "near": one.near} for one in refused.reasons],
            }
            for refused in file.refused
            if refused.at_origin is None
        ],
        "without": [show(finding) for finding in file.without],
    }


def _applied(one: Applied, show: Show) -> dict[str, Any]:
    finding = show(one.finding)
    return {
        "finding": finding,
        "rewrite": one.rewrite,
        "difference": one.difference,
        "effects": sorted({effect.value for difference in one.differences for effect in difference.effects}),
        "remains": one.remains,
        "takes_out": None if one.takes_out is None else asdict(one.takes_out),
        "rests_on": None if one.rests_on is None else asdict(one.rests_on),
    }
