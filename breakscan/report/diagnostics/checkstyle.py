"""Checkstyle's XML, which Jenkins and other services read."""

from __future__ import annotations

from typing import TextIO
from xml.etree.ElementTree import Element, SubElement

from breakscan.report.diagnostics.diagnostic import DiagnosticReport
from breakscan.report.diagnostics.placed import placed
from breakscan.report.diagnostics.xml_text import write_xml

_VERSION = "4.3"
"""Of the format: what the tools that read it know."""


def write_checkstyle(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes an error for each diagnostic and each remark that has a site, by file."""
    root = Element("checkstyle", version=_VERSION)
    files: dict[str, Element] = {}
    for one in placed(report):
        if one.path is None or one.site is None:
            continue
        if one.path not in files:
            files[one.path] = SubElement(root, "file", name=one.path)
        error = SubElement(files[one.path], "error", line=str(one.site.line))
        if one.has_columns:
            error.set("column", str(one.site.column))
        error.set("severity", one.severity.value)
        error.set("message", one.text if one.not_checked else f"{one.title}: {one.text}")
        error.set("source", f"breakscan.{one.check}")
    write_xml(root, stream)
