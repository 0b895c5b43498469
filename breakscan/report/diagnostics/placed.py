"""Diagnostics by file, as services that show files in reviews want them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakscan.model.findings import Severity, Site
from breakscan.report.diagnostics.checkout import checkout_root, path_in_checkout
from breakscan.report.diagnostics.diagnostic import DiagnosticReport, cell_words
from breakscan.report.diagnostics.fingerprint import Fingerprints


@dataclass(frozen=True, slots=True)
class Placed:
    """A diagnostic or a remark.  ``path`` is relative to the checkout, and ``site`` is in that file; both are None for
    what is about the whole program.  In a notebook, lines are those of the file, and ``has_columns`` is False.
    ``not_checked`` is about a file that could not be read."""

    check: str
    title: str
    severity: Severity
    text: str
    path: str | None
    site: Site | None
    has_columns: bool
    fingerprint: str
    not_checked: bool = False

    @property
    def location(self) -> str:
        """``model.py:41:9``, as far as it is known."""
        if self.path is None or self.site is None:
            return ""
        return f"{self.path}:{self.site.line}{f':{self.site.column}' if self.has_columns else ''}"


def placed(report: DiagnosticReport) -> Iterator[Placed]:
    """All diagnostics, then all remarks but those that only inform."""
    root = checkout_root()
    fingerprints = Fingerprints(report)
    for one in report.diagnostics:
        site, path, has_columns = _place(report, one.site, root)
        text = f"{cell_words(report.cells, one.site)}{one.text}"
        digest = fingerprints.of(one, path or "")
        yield Placed(one.id, one.title, one.severity, text, path, site, has_columns, digest)
    for remark in report.remarks:
        if remark.severity is Severity.INFO and remark.site is None:
            continue
        site, path, has_columns = _place(report, remark.site, root)
        text = f"{cell_words(report.cells, remark.site)}{remark.message}"
        title = remark.title or report.command
        digest = fingerprints.of_remark(remark, path or "")
        unread = remark.severity is Severity.ERROR
        check = title.replace(" ", "-")
        yield Placed(check, title, remark.severity, text, path, site, has_columns, digest, unread)


def _place(report: DiagnosticReport, site: Site | None, root: str) -> tuple[Site | None, str | None, bool]:
    if site is None:
        return None, None, False
    in_file = report.cells.in_file(site)
    has_columns = (site.end_line, site.end_column) != (site.line, site.column) and site.path not in report.cells.by_name
    return in_file, path_in_checkout(_name_of(report, in_file.path), root), has_columns


def _name_of(report: DiagnosticReport, shown: str) -> str:
    """The path of a file as it is called, if that is a text: services look for the file."""
    name = report.originals.get(shown, shown)
    try:
        name.encode()
    except UnicodeEncodeError:
        return shown
    return name
