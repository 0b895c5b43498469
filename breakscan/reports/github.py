"""Workflow commands that make GitHub Actions show findings as annotations on the changed lines."""

from __future__ import annotations

import os
from typing import TextIO

from breakscan.findings import CheckResult, Severity
from breakscan.reports.wording import Run, one_line, summary_line
from breakscan.source.paths import display_path

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write_github(result: CheckResult, stream: TextIO, run: Run, workspace: str | None = None) -> None:
    """Writes one annotation a finding or unchecked file, then the counts as a plain line of the log.

    Paths are relative to ``workspace``, the checkout (``GITHUB_WORKSPACE``), where they lie below it: that is
    what GitHub resolves them against, whatever the step's working directory.
    """
    for finding in result.findings:
        site = finding.site
        properties: dict[str, object] = {"title": f"{finding.rule} {finding.name}", "file": _path(site.path, workspace)}
        properties["line"] = site.line
        if site.end_line == site.line:
            properties |= {"endLine": site.end_line, "col": site.column, "endColumn": site.end_column}
        else:
            properties["endLine"] = site.end_line  # GitHub takes columns within one line only
        where = f"{site.path}:{site.line}:{site.column}"
        said = f"{where}: {finding.rule} {one_line(finding)}"
        stream.write(_command(LEVELS[finding.severity], properties, said))
    for error in result.errors:
        properties = {"title": "not checked", "file": _path(error.path, workspace)}
        properties |= {"line": error.line, "col": error.column}
        where = f"{error.path}:{error.line}:{error.column}"
        stream.write(_command("error", properties, f"{where}: not checked: {error.message}"))
    stream.write(summary_line(result, run) + "\n")


def _path(path: str, workspace: str | None) -> str:
    if not workspace:
        return path
    return display_path(os.path.abspath(path), workspace)


def _command(level: str, properties: dict[str, object], message: str) -> str:
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{level} {listed}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
