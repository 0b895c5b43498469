"""What GitHub Actions makes of lines of a log: workflow commands, and lines that are none."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from breakscan.model.findings import Severity, Site
from breakscan.source.paths import display_path

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
MOST_SHOWN = 10
"""Annotations of one level that GitHub shows of one step; it drops the rest without a word."""

_STARTS_COMMAND = re.compile(r"^(\s*:)(?=:)", re.MULTILINE)
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
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name}{' ' if listed else ''}{listed}::{_data(message)}\n"


def inert(text: str) -> str:
    """The text with a blank of no width in what the runner would take for a command: a line that begins with ``::``,
    and ``##[`` anywhere."""
    return _STARTS_COMMAND.sub("\\1\u200b", text).replace("##[", "##\u200b[")


def checkout_path(path: str, workspace: str | None) -> str:
    """A path of a report relative to the checkout (``GITHUB_WORKSPACE``) where it lies below it: that is what GitHub
    resolves it against, whatever the working directory of the step."""
    if not workspace:
        return path
    return display_path(os.path.abspath(path), workspace)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
