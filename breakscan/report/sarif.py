"""SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, TextIO
from urllib.parse import quote

from breakscan import __version__
from breakscan.model.findings import Severity, Site
from breakscan.model.words import sentence
from breakscan.report.diagnostics import (
    Diagnostic,
    DiagnosticReport,
    Fingerprints,
    Location,
    Remark,
    cell_words,
    checkout_root,
)
from breakscan.rulebook.document import Rule
from breakscan.source.paths import relative_to

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"


def write_sarif(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes one result for each diagnostic that has a site, and a notification for each remark, as one JSON object,
    ASCII only, and a line end."""
    results = _Results(checkout_root(), report)
    for diagnostic in report.diagnostics:
        if diagnostic.site:
            results.add(diagnostic, diagnostic.site)
    run = {
        "tool": {"driver": {"name": "breakscan", "version": __version__, "rules": list(results.rules.values())}},
        # Keeps the reports of different commands on one commit apart.
        "automationDetails": {"id": f"breakscan/{report.command}/"},
        "invocations": [
            {
                "executionSuccessful": not any(remark.severity is Severity.ERROR for remark in report.remarks),
                "toolExecutionNotifications": [results.notification(remark) for remark in report.remarks],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": _file_uri(results.root).rstrip("/") + "/"}},
        "results": results.results,
    }
    json.dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
    stream.write("\n")


class _Results:
    """The results of one run and the rules that they refer to.  Paths are relative to ``root`` if they are inside
    it."""

    def __init__(self, root: str, report: DiagnosticReport) -> None:
        self.root = root.rstrip("/\\") or root
        self.rules: dict[str, Mapping[str, Any]] = {}
        self.results: list[dict[str, Any]] = []
        self._fingerprints = Fingerprints(report)
        self._cells = report.cells
        self._originals = report.originals

    def add(self, diagnostic: Diagnostic, site: Site) -> None:
        id_ = diagnostic.id
        self.rules.setdefault(id_, _rule(diagnostic.rule) if diagnostic.rule else _kind(diagnostic))
        location = self._location(site)
        if diagnostic.function:
            location["logicalLocations"] = [{"fullyQualifiedName": diagnostic.function, "kind": "function"}]
        result: dict[str, Any] = {
            "ruleId": id_,
            "ruleIndex": list(self.rules).index(id_),
            "level": LEVELS[diagnostic.severity],
            "message": {"text": f"{cell_words(self._cells, site)}{diagnostic.text}"},
            "locations": [location],
            # By it code scanning recognises a result in the next run.
            "partialFingerprints": {"breakscanSite/v1": self._fingerprints.of(diagnostic, self._uri(site))},
        }
        if diagnostic.count > 1:
            result["occurrenceCount"] = diagnostic.count
        if diagnostic.related:
            others = map(self._with_message, diagnostic.related)
            result["relatedLocations"] = [{"id": number, **other} for number, other in enumerate(others, 1)]
        if len(diagnostic.flow) > 1:
            steps = [{"location": self._with_message(step)} for step in diagnostic.flow]
            result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
        self.results.append(result)

    def notification(self, remark: Remark) -> dict[str, Any]:
        notification: dict[str, Any] = {"level": LEVELS[remark.severity]}
        notification["message"] = {"text": f"{cell_words(self._cells, remark.site)}{remark.message}"}
        if remark.site:
            notification["locations"] = [self._location(remark.site)]
        return notification

    def _with_message(self, location: Location) -> dict[str, Any]:
        return {**self._location(location.site), "message": {"text": location.message}}

    def _location(self, site: Site) -> dict[str, Any]:
        site = self._cells.in_file(site)
        region = {"startLine": site.line}
        if site.end_line > site.line:
            region["endLine"] = site.end_line
        if (site.end_line, site.end_column) != (site.line, site.column):
            region |= {"startColumn": site.column, "endLine": site.end_line, "endColumn": site.end_column}
        return {"physicalLocation": {"artifactLocation": self._artifact(site.path), "region": region}}

    def _artifact(self, path: str) -> dict[str, str]:
        path = os.path.abspath(self._originals.get(path, path))
        if relative := relative_to(path, self.root):
            return {"uri": _quoted(relative), "uriBaseId": _ROOT}
        return {"uri": _file_uri(path)}

    def _uri(self, site: Site) -> str:
        return self._artifact(self._cells.file_of(site.path))["uri"]


def _rule(rule: Rule) -> dict[str, Any]:
    """A rule for viewers: its document is its help."""
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": sentence(rule.why)},
        "help": {"text": f"Why: {sentence(rule.why)}\nInstead: {sentence(rule.instead)}", "markdown": rule.body},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["torch.compile", rule.kind.value]},
    }


def _kind(diagnostic: Diagnostic) -> dict[str, Any]:
    """Describes an id that no rule documents: PyTorch's graph break, or the kind of diagnostic."""
    return {
        "id": diagnostic.id,
        "name": diagnostic.name if diagnostic.id.startswith("GB") else diagnostic.id,
        "shortDescription": {"text": diagnostic.kind_summary or diagnostic.name},
        "properties": {"tags": ["torch.compile"]},
    }


def _file_uri(path: str) -> str:
    path = path.replace(os.sep, "/")
    return f"file://{_quoted(path)}" if path.startswith("/") else f"file:///{_quoted(path, '/:')}"


def _quoted(path: str, safe: str = "/") -> str:
    """A path in a URI, with the bytes that a name is made of, also where they are no text."""
    try:
        return quote(path.encode("utf-8", "surrogateescape"), safe)
    except UnicodeEncodeError:  # the name of no file, in a recording
        return quote(path, safe, errors="replace")
