"""The JSON of surveys, as ``breakscan/schemas/survey.schema.json`` and ``survey-diff.schema.json`` describe it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TextIO

from breakscan import __version__
from breakscan.survey.comparison import CauseChange, SurveyComparison
from breakscan.survey.overview import CauseCount, SurveyOverview

SCHEMA = 1


def write_survey_json(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the overview as one JSON object, and a line end."""
    _write(
        {
            "units": [asdict(row) for row in report.rows],
            "conditions": [asdict(count) for count in report.counts],
            "versions": [asdict(count) for count in report.versions],
            "causes": [_with_cause(count) for count in report.causes],
            "places": [asdict(place) for place in report.places],
            "files": [asdict(file) for file in report.files],
            "endings": [asdict(ending) for ending in report.endings],
            "statuses": dict(report.statuses),
        },
        stream,
    )


def write_survey_diff_json(found: SurveyComparison, stream: TextIO) -> None:
    """Writes the comparison as one JSON object, and a line end."""
    changes = [
        {
            "regression": change.is_regression,
            "before": asdict(change.before),
            "after": asdict(change.after),
            "causes": list(map(_with_cause, change.causes)),
        }
        for change in found.changes
    ]
    only = {"only_before": list(map(asdict, found.only_before)), "only_after": list(map(asdict, found.only_after))}
    _write({"changes": changes, "unchanged": found.unchanged, **only}, stream)


def _with_cause(one: CauseCount | CauseChange) -> dict[str, Any]:
    """With the keys of the cause beside the others."""
    told = asdict(one)
    return {**told.pop("cause"), **told}


def _write(value: dict[str, Any], stream: TextIO) -> None:
    json.dump({"schema": SCHEMA, "tool": {"name": "breakscan", "version": __version__}, **value}, stream, indent=2)
    stream.write("\n")
