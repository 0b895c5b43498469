"""JUnit's XML, which nearly every service shows as test results."""

from __future__ import annotations

from typing import TextIO
from xml.etree.ElementTree import Element, SubElement

from breakscan.report.diagnostics.diagnostic import DiagnosticReport
from breakscan.report.diagnostics.placed import placed
from breakscan.report.diagnostics.xml_text import write_xml


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
