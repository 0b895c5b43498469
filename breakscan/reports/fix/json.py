"""The JSON of ``fix``, as ``breakscan/schemas/fix.schema.json`` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TextIO

from breakscan import __version__
from breakscan.repair.result import Applied, FileRepair
from breakscan.reports.fix.diff import diff_lines
from breakscan.reports.fix.report import FixReport
from breakscan.reports.shared.finding_json import finding_object, targets_object
from breakscan.reports.shared.notebook_cells import NotebookCells

SCHEMA = 2


def write_fix_json(report: FixReport, stream: TextIO) -> None:
    """Writes the repair as one JSON object in ASCII, with a line end."""
    repair, cells = report.repair, report.cells
    failed = {error.path for error in report.unwritten}
    made = {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        **targets_object(repair.targets),
        "files": [_file(file, report.written and file.display not in failed, cells) for file in repair.files],
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


def _file(file: FileRepair, written: bool, cells: NotebookCells) -> dict[str, Any]:
    return {
        "path": file.display,
        "changed": file.changed,
        "written": written and file.changed,
        "diff": "".join(diff_lines(file)),
        "applied": [_applied(one, cells) for one in file.applied],
        "observed": [_applied(one, cells) for one in file.held if not one.differences],
        "unsafe": [_applied(one, cells) for one in file.held if one.differences],
        "softening": [_applied(one, cells) for one in file.softened],
        "regenerated": [
            {"finding": finding_object(cells.finding(one.finding), cells), "by": _applied(one.at_origin, cells)}
            for one in file.refused
            if one.at_origin is not None
        ],
        "declined": [
            {
                "finding": finding_object(cells.finding(refused.finding), cells),
                "reasons": [{"rewrite": one.rewrite, "reason": one.text} for one in refused.reasons],
            }
            for refused in file.refused
            if refused.at_origin is None
        ],
        "without": [finding_object(cells.finding(finding), cells) for finding in file.without],
    }


def _applied(one: Applied, cells: NotebookCells) -> dict[str, Any]:
    finding = finding_object(cells.finding(one.finding), cells)
    return {
        "finding": finding,
        "rewrite": one.rewrite,
        "difference": one.difference,
        "effects": sorted({effect.value for difference in one.differences for effect in difference.effects}),
        "remains": one.remains,
        "takes_out": None if one.takes_out is None else asdict(one.takes_out),
        "rests_on": None if one.rests_on is None else asdict(one.rests_on),
    }
