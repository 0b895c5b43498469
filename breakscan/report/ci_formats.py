"""Formats of services that show messages at lines: GitHub Actions, GitLab, and SARIF 2.1.0 for code scanning."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
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
    location_words,
)
from breakscan.report.printable import inert, write_json
from breakscan.report.sources import NotebookCells
from breakscan.rulebook.document import Rule
from breakscan.source.paths import display_path, relative_to

_GITHUB_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
MOST_SHOWN = 10  # annotations of one level that GitHub shows of one step; it drops the rest without a word
_LONGEST_TITLE = 255


def annotation(level: str, title: str, path: str | None, site: Site | None, message: str) -> str:
    """The command that shows a message at a site, as a line of the log.  ``path`` is relative to the checkout."""
    properties: dict[str, object] = {"title": title[:_LONGEST_TITLE]}
    if path is not None:
        properties["file"] = path
    if site is not None:
        properties["line"] = site.line
        properties["endLine"] = site.end_line
        # GitHub takes columns within one line only.
        if site.end_line == site.line and site.end_column > site.column:
            properties |= {"col": site.column, "endColumn": site.end_column}
    return command(level, properties, message)


def command(name: str, properties: Mapping[str, object], message: str) -> str:
    """A workflow command as a line of the log, with what would end it or a property escaped."""
    listed = ",".join(
        f"{key}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items()
    )
    return f"::{name}{' ' if listed else ''}{listed}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_github(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes the head as plain lines, then one annotation for each problem and diagnostic, then notes and the end.
    GitHub shows ten annotations of each level: the others go to a folded group of the log.  Paths are relative to the
    checkout (``GITHUB_WORKSPACE``) where they are inside it."""
    # The first line is a plain one where there is a head: a program may have left an unfinished line on this stream.
    stream.writelines(inert(line) + "\n" for line in report.head)
    annotations = _Annotations(stream, report.cells)
    notes = []
    for remark in report.remarks:
        if remark.severity is Severity.INFO and remark.site is None:
            notes.append(remark.message)
        else:
            annotations.add(remark.severity, remark.title, remark.site, remark.message)
    for diagnostic in report.diagnostics:
        message = f"{diagnostic.title}: {diagnostic.text}"
        annotations.add(diagnostic.severity, diagnostic.title, diagnostic.site, message)
    annotations.write_rest()
    stream.writelines(inert(f"Note: {sentence(note)}") + "\n" for note in notes)
    stream.writelines(inert(line) + "\n" for line in report.end)


class _Annotations:
    """Writes annotations, and keeps those that GitHub would drop for a group of the log."""

    def __init__(self, stream: TextIO, cells: NotebookCells) -> None:
        self._stream = stream
        self._cells = cells
        self._workspace = os.environ.get("GITHUB_WORKSPACE")
        self._shown: Counter[Severity] = Counter()
        self._rest: list[str] = []

    def add(self, severity: Severity, title: str, site: Site | None, message: str) -> None:
        level = _GITHUB_LEVELS[severity]
        where = location_words(site)
        text = f"{where}: {message}" if where else message
        self._shown[severity] += 1
        if self._shown[severity] > MOST_SHOWN:
            self._rest.append(f"{level}: {text}")
            return
        site = site and self._cells.in_file(site)
        path = site.path if site else None
        if path and self._workspace:
            # GitHub resolves it against the checkout, whatever the working directory of the step is.
            path = display_path(os.path.abspath(path), self._workspace)
        self._stream.write(annotation(level, title, path, site, text))

    def write_rest(self) -> None:
        if not self._rest:
            return
        # GitHub shows the title of a folded group.
        title = f"{len(self._rest)} more than GitHub shows as annotations ({MOST_SHOWN} of each level)"
        self._stream.write(command("group", {}, title))
        self._stream.writelines(inert(line) + "\n" for line in self._rest)
        self._stream.write(command("endgroup", {}, ""))


_GITLAB_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}
_NOT_CHECKED = "critical"


def write_gitlab(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes a list with one object for each diagnostic and each remark that has a site: GitLab shows no others."""
    write_json(list(_gitlab_entries(report)), stream)


def _gitlab_entries(report: DiagnosticReport) -> Iterator[dict[str, Any]]:
    root = checkout_root()
    fingerprints = Fingerprints(report)

    def entry(check: str, severity: str, site: Site, path: str, fingerprint: str, text: str) -> dict[str, Any]:
        lines = report.cells.in_file(site)
        return {
            "description": text,
            "check_name": check,
            "fingerprint": fingerprint,
            "severity": severity,
            "location": {"path": path, "lines": {"begin": lines.line, "end": lines.end_line}},
        }

    for one in report.diagnostics:
        if one.site is not None:
            path = _path_in(root, one.site, report)
            text = f"{one.title}: {cell_words(report.cells, one.site)}{one.text}"
            digest = fingerprints.of(one, path)
            yield entry(one.id, _GITLAB_SEVERITIES[one.severity], one.site, path, digest, text)
    for remark in report.remarks:
        if remark.site is not None:
            path = _path_in(root, remark.site, report)
            title = remark.title or report.command
            text = f"{cell_words(report.cells, remark.site)}{remark.message}"
            is_unread = remark.severity is Severity.ERROR
            severity = _NOT_CHECKED if is_unread else _GITLAB_SEVERITIES[remark.severity]
            digest = fingerprints.of_remark(remark, path)
            described = text if is_unread else f"{title}: {text}"
            yield entry(title.replace(" ", "-"), severity, remark.site, path, digest, described)


def _path_in(root: str, site: Site, report: DiagnosticReport) -> str:
    """The path of a site's file, relative to the checkout where it is inside it."""
    shown = report.cells.file_of(site.path)
    path = report.originals.get(shown, shown)
    try:
        path.encode()
    except UnicodeEncodeError:
        path = shown  # GitLab looks for the file, by a name that is text
    return relative_to(os.path.abspath(path), root) or path


_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"


def write_sarif(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes one result for each diagnostic that has a site, and a notification for each remark."""
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
    write_json({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, stream)


class _Results:
    """The results of one run and the rules that they refer to.  Paths inside ``root`` are relative to it."""

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
        uri = self._artifact(self._cells.file_of(site.path))["uri"]
        result: dict[str, Any] = {
            "ruleId": id_,
            "ruleIndex": list(self.rules).index(id_),
            "level": _SARIF_LEVELS[diagnostic.severity],
            "message": {"text": f"{cell_words(self._cells, site)}{diagnostic.text}"},
            "locations": [location],
            # By it code scanning recognises a result in the next run.
            "partialFingerprints": {"breakscanSite/v1": self._fingerprints.of(diagnostic, uri)},
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
        notification: dict[str, Any] = {"level": _SARIF_LEVELS[remark.severity]}
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


def _rule(rule: Rule) -> dict[str, Any]:
    """A rule for viewers: its document is its help."""
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": sentence(rule.why)},
        "help": {"text": f"Why: {sentence(rule.why)}\nInstead: {sentence(rule.instead)}", "markdown": rule.body},
        "defaultConfiguration": {"level": _SARIF_LEVELS[rule.severity]},
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
