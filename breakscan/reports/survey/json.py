"""The JSON of surveys, as ``breakscan/schemas/survey.schema.json`` and ``survey-diff.schema.json`` describe it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TextIO

from breakscan import __version__
from breakscan.survey.comparison import SurveyComparison
from breakscan.survey.overview import SurveyOverview

SCHEMA = 1


def write_survey_json(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the overview as one JSON object, and a line end."""
    _write({"units": [asdict(row) for row in report.rows], **_common(report)}, stream)


def _common(report: SurveyOverview) -> dict[str, Any]:
    return {
        "conditions": [asdict(count) for count in report.counts],
        "causes": [asdict(cause) for cause in report.causes],
        "places": [asdict(place) for place in report.places],
        "statuses": dict(report.statuses),
    }


def write_survey_diff_json(found: SurveyComparison, stream: TextIO) -> None:
    """Writes the comparison as one JSON object, and a line end."""
    changes = [{"regression": change.is_regression, **asdict(change)} for change in found.changes]
    only = {"only_before": list(map(asdict, found.only_before)), "only_after": list(map(asdict, found.only_after))}
    _write({"changes": changes, "unchanged": found.unchanged, **only}, stream)


def _write(value: dict[str, Any], stream: TextIO) -> None:
    json.dump({"schema": SCHEMA, "tool": {"name": "breakscan", "version": __version__}, **value}, stream, indent=2)
    stream.write("\n")
