"""Formats of services that show a list of diagnostics: GitLab, JUnit and reviewdog."""

from __future__ import annotations

import json
import re
from typing import Any, TextIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from breakscan.model.findings import Severity, Site
from breakscan.report.diagnostics import DiagnosticReport, placed

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_xml(root: ElementTree.Element, stream: TextIO) -> None:
    """Writes a document, ASCII only, and a line end.  Characters that XML cannot hold become U+FFFD."""
    for element in root.iter():
        element.attrib = {key: _NO_XML.sub("\ufffd", value) for key, value in element.attrib.items()}
        element.text = element.text and _NO_XML.sub("\ufffd", element.text)
    ElementTree.indent(root)
    stream.write(ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii") + "\n")


_GITLAB_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}
_NOT_CHECKED = "critical"


def write_gitlab(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes a list with one object for each diagnostic and each remark that has a site: GitLab shows nothing without a
    line.  ASCII only, and a line end."""
    entries = [
        {
            "description": one.text if one.not_checked else f"{one.title}: {one.text}",
            "check_name": one.check,
            "fingerprint": one.fingerprint,
            "severity": _NOT_CHECKED if one.not_checked else _GITLAB_SEVERITIES[one.severity],
            "location": {"path": one.path, "lines": {"begin": one.site.line, "end": one.site.end_line}},
        }
        for one in placed(report)
        if one.site
    ]
    json.dump(entries, stream, indent=2)
    stream.write("\n")


def write_junit(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes a test suite for each file, with a test case that fails for each diagnostic, and one in error for each
    file that could not be read.  What has no site is in a suite named after the command.  Where nothing was found, one
    test case passes: services take an empty report for a mistake."""
    suites = _Suites(f"breakscan {report.command}")
    for one in placed(report):
        case = suites.case(one.title, one.path, one.site.line if one.site else None)
        kind = "error" if one.not_checked else "failure"
        found = SubElement(case, kind, type=one.severity.value, message=one.text)
        found.text = ": ".join(filter(None, (one.location, one.text)))
    if not len(suites.root):
        suites.case("nothing found", None, None)
    write_xml(suites.counted(), stream)


class _Suites:
    """The suites of a report, by the file that they are about; what is about none is in the suite ``without_file``."""

    def __init__(self, without_file: str) -> None:
        self.root = Element("testsuites", name="breakscan")
        self._without_file = without_file
        self._suites: dict[str, Element] = {}

    def case(self, name: str, path: str | None, line: int | None) -> Element:
        suite = path or self._without_file
        if suite not in self._suites:
            self._suites[suite] = SubElement(self.root, "testsuite", name=suite)
        case = SubElement(self._suites[suite], "testcase", name=name, classname=suite)
        if path and line:
            case.set("file", path)
            case.set("line", str(line))
        return case

    def counted(self) -> Element:
        """The root, with the numbers of tests, failures and errors of everything in it."""
        for element in (self.root, *self._suites.values()):
            for name, what in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
                element.set(name, str(sum(1 for _ in element.iter(what))))
        return self.root


_RDJSON_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def write_rdjson(report: DiagnosticReport, stream: TextIO) -> None:
    """Writes one object with a diagnostic for each diagnostic and each remark that has a site, ASCII only, and a line
    end."""
    found = [
        {
            "message": one.text,
            "location": {"path": one.path, "range": _range(one.site, report if one.has_columns else None)},
            "severity": _RDJSON_SEVERITIES[one.severity],
            "code": {"value": one.title},
        }
        for one in placed(report)
        if one.site
    ]
    json.dump({"source": {"name": "breakscan"}, "diagnostics": found}, stream, indent=2)
    stream.write("\n")


def _range(site: Site, lines: DiagnosticReport | None) -> dict[str, Any]:
    """A site as the format has it: columns count the bytes of UTF-8 from 1, and the end is exclusive."""
    start: dict[str, int] = {"line": site.line}
    end: dict[str, int] = {"line": site.end_line}
    if lines is not None:
        start["column"] = _bytes_before(lines.line(site.path, site.line), site.column) + 1
        end["column"] = _bytes_before(lines.line(site.path, site.end_line), site.end_column) + 1
    return {"start": start, "end": end}


def _bytes_before(line: str, column: int) -> int:
    before = line[: column - 1]
    # A column past the end of the line stays as far behind it.
    return len(before.encode("utf-8", "surrogatepass")) + column - 1 - len(before)
