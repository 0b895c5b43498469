"""Workflow commands that make GitHub Actions show findings as annotations on the changed lines."""

from __future__ import annotations

from typing import TextIO

from breakscan.findings import CheckResult
from breakscan.reports.shared.github_commands import LEVELS, annotation, checkout_path, command, inert
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.wording import CheckRun, one_line, summary_line


def write_github(result: CheckResult, stream: TextIO, run: CheckRun, workspace: str | None = None) -> None:
    """Writes one annotation a finding or unchecked file, then the counts as a plain line of the log.

    ``workspace`` is the checkout (``GITHUB_WORKSPACE``), which paths are made relative to.
    """
    result = printable(result)
    for finding in result.findings:
        site = finding.site
        said = f"{site.path}:{site.line}:{site.column}: {finding.rule} {one_line(finding)}"
        path = checkout_path(site.path, workspace)
        stream.write(annotation(LEVELS[finding.severity], f"{finding.rule} {finding.name}", path, site, said))
    for error in result.errors:
        properties = {"title": "not checked", "file": checkout_path(error.path, workspace)}
        properties |= {"line": str(error.line), "col": str(error.column)}
        said = f"{error.path}:{error.line}:{error.column}: not checked: {error.message}"
        stream.write(command("error", properties, said))
    stream.write(inert(summary_line(result, run)) + "\n")
