"""Formats of services that show messages at lines: GitHub Actions and GitLab."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from breakscan.model.findings import Severity, Site
from breakscan.model.words import sentence
from breakscan.report.diagnostics import DiagnosticReport, Fingerprints, cell_words, checkout_root, location_words
from breakscan.report.printable import inert
from breakscan.report.sources import NotebookCells
from breakscan.source.paths import display_path, relative_to

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
MOST_SHOWN = 10
"""Annotations of one level that GitHub shows of one step; it drops the rest without a word."""

_LONGEST_TITLE = 255


def annotation(level: str, title: str, path: str | None, site: Site | None, message: str) -> str:
    """The command that shows a message at a site, as a line of the log.  ``path`` is that of :func:`checkout_path`."""
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


def checkout_path(path: str, workspace: str | None) -> str:
    """A path of a report relative to the checkout (``GITHUB_WORKSPACE``) where it lies below it: that is what GitHub
    resolves it against, whatever the working directory of the step."""
    if not workspace:
        return path
    return display_path(os.path.abspath(path), workspace)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_github(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes the head as plain lines, then one annotation for each problem and diagnostic, then notes and the end.

    GitHub shows ten annotations of each level: the others go to a folded group of the log.  Paths are relative to the
    checkout (``GITHUB_WORKSPACE``) where they are inside it.
    """
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
        level = LEVELS[severity]
        where = location_words(site)
        text = f"{where}: {message}" if where else message
        self._shown[severity] += 1
        if self._shown[severity] > MOST_SHOWN:
            self._rest.append(f"{level}: {text}")
            return
        site = site and self._cells.in_file(site)
        path = None if site is None else checkout_path(site.path, self._workspace)
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
    """Writes a list with one object for each diagnostic and each remark that has a site: GitLab shows nothing without a
    line.  ASCII only, and a line end."""
    json.dump(list(_gitlab_entries(report)), stream, indent=2)
    stream.write("\n")


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
