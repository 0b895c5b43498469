"""Findings as diagnostics of the protocol."""

from __future__ import annotations

import os

from lsprotocol import types
from pygls.uris import from_fs_path

from breakscan.model.findings import Finding, Severity, Site
from breakscan.report.editor import message_words
from breakscan.rulebook.library import Library
from breakscan.serve.editor.checked import CheckedText
from breakscan.serve.editor.open_text import OpenText

SOURCE = "breakscan"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def diagnostics_of(opened: OpenText, checked: CheckedText, library: Library) -> dict[str, list[types.Diagnostic]]:
    """What was found in an open file, for each of its documents."""
    found: dict[str, list[types.Diagnostic]] = {part.uri: [] for part in opened.parts}
    for finding in checked.findings:
        part, place = opened.range_of(finding.site)
        found[part.uri].append(
            types.Diagnostic(
                place,
                message_words(finding, library.get(finding.rule)),
                _SEVERITIES[finding.severity],
                finding.rule,
                source=SOURCE,
                related_information=_related(opened, finding),
            )
        )
    for error in checked.errors:
        part, place = opened.range_of(Site(error.path, error.line, error.column, error.line, error.column + 1))
        found[part.uri].append(types.Diagnostic(place, error.message, types.DiagnosticSeverity.Error, source=SOURCE))
    return found


def _related(opened: OpenText, finding: Finding) -> list[types.DiagnosticRelatedInformation] | None:
    region = finding.region
    if region is None or region.assumed is not None:
        return None
    path = os.path.abspath(region.path)
    if path == str(opened.path):
        part, place = opened.range_of(Site(region.path, region.line, 1, region.line, 1))
        location = types.Location(part.uri, types.Range(place.start, place.start))
    else:
        line = types.Position(region.line - 1, 0)
        location = types.Location(from_fs_path(path) or "", types.Range(line, line))
    return [types.DiagnosticRelatedInformation(location, region.how)]
