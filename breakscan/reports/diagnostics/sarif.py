"""SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from breakscan import __version__
from breakscan.findings import Severity, Site
from breakscan.reports.diagnostics.diagnostic import Diagnostic, DiagnosticReport, Location, Remark
from breakscan.reports.shared.wording import sentence
from breakscan.rulebook.document import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"


def write_sarif(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes one result for each diagnostic that has a site, and a notification for each remark, as one JSON object,
    ASCII only, and a line end."""
    results = _Results(_checkout_root(), report)
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
        self._same_line: Counter[tuple[str, ...]] = Counter()
        self._lines = {path: text.split("\n") for path, text in report.texts.items()}
        self._read = report.lines
        self._cells = report.cells

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
            "message": {"text": f"{self._cell(site)}{diagnostic.text}"},
            "locations": [location],
            "partialFingerprints": {"breakscanSite/v1": self._fingerprint(diagnostic, site)},
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
        notification["message"] = {"text": f"{self._cell(remark.site)}{remark.message}"}
        if remark.site:
            notification["locations"] = [self._location(remark.site)]
        return notification

    def _cell(self, site: Site | None) -> str:
        """The place in a notebook, which viewers show as JSON; empty for any other site."""
        cell = self._cells.by_name.get(site.path) if site else None
        return f"Cell {cell.number}, line {site.line}: " if cell and site else ""

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
        path = os.path.abspath(path)
        if path.startswith(self.root + os.sep):
            relative = path[len(self.root) + 1 :].replace(os.sep, "/")
            return {"uri": quote(relative), "uriBaseId": _ROOT}
        return {"uri": _file_uri(path)}

    def _line(self, site: Site) -> str:
        if site.path not in self._lines:
            self._lines[site.path] = self._read(site.path)
        return next(iter(self._lines[site.path][site.line - 1 : site.line]), "")

    def _fingerprint(self, diagnostic: Diagnostic, site: Site) -> str:
        """By it code scanning recognises a result in the next run: it depends on the text of the line and on the
        function, not on the number of the line."""
        code = (diagnostic.code or self._line(site)).strip()
        path = self._cells.file_of(site.path)
        key = (diagnostic.id, self._artifact(path)["uri"], diagnostic.function or "", code)
        self._same_line[key] += 1
        return hashlib.sha256("\0".join((*key, str(self._same_line[key]))).encode()).hexdigest()[:32]


def _rule(rule: Rule) -> dict[str, Any]:
    """What a viewer shows of a rule: its document is its help."""
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


def _checkout_root() -> str:
    """The folder that code scanning resolves paths against: the checkout in GitHub Actions, else the root of the git
    repository, else the working directory."""
    if workspace := os.environ.get("GITHUB_WORKSPACE"):
        return os.path.abspath(workspace)
    here = Path.cwd()
    return str(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


def _file_uri(path: str) -> str:
    path = path.replace(os.sep, "/")
    return f"file://{quote(path)}" if path.startswith("/") else f"file:///{quote(path, safe='/:')}"
