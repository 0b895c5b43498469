"""What services other than GitHub read: GitLab's Code Quality, reviewdog, JUnit, Checkstyle."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import explain_results as made
import pytest
from hostile import NASTY, STRINGS, poisoned
from hypothesis import example, given, settings
from report_results import BEHIND, EAGER, SOURCE, SPLIT, UNPARSED, report, result

from breakscan.model.findings import CheckResult, Severity, Site
from breakscan.report.explain.report import ExplainReport
from breakscan.report.formats import CHECK, EXPLAIN

INFO = replace(EAGER, severity=Severity.INFO)
FORMATS = ("gitlab", "rdjson", "junit", "checkstyle")


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository, whose folder ``src`` is the working directory."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(format_: str, found: CheckResult, source: str = SOURCE) -> Any:
    stream = io.StringIO()
    CHECK.write(format_, report(found, {"src/model.py": source}), stream)
    return parsed(format_, stream.getvalue())


def parsed(format_: str, text: str) -> Any:
    assert text.isascii()
    assert text.endswith("\n")
    return json.loads(text) if format_ in ("gitlab", "rdjson") else ElementTree.fromstring(text)


def test_gitlab() -> None:
    first, second, third, unread = checked("gitlab", result(EAGER, SPLIT, INFO, errors=(UNPARSED,)))
    assert first["description"].startswith("BRK101 branch-on-tensor: A Python branch on a tensor's value. The break is")
    assert first["check_name"] == "BRK101"
    assert first["location"] == {"path": "src/model.py", "lines": {"begin": 3, "end": 3}}
    assert second["location"]["lines"] == {"begin": 5, "end": 7}
    assert [one["severity"] for one in (first, second, third, unread)] == ["major", "minor", "info", "critical"]
    assert unread["check_name"] == "not-checked"
    assert len({one["fingerprint"] for one in (first, second, third, unread)}) == 4


def test_a_fingerprint_survives_lines_above() -> None:
    (before,) = checked("gitlab", result(EAGER))
    lower = replace(EAGER, site=Site("src/model.py", 5, 8, 5, 15))
    (after,) = checked("gitlab", result(lower), "\n\n" + SOURCE)
    (other,) = checked("gitlab", result(lower))
    assert before["fingerprint"] == after["fingerprint"] != other["fingerprint"]


def test_paths_are_relative_to_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("src")
    here = result(replace(EAGER, site=replace(EAGER.site, path="model.py")))
    (one,) = checked("gitlab", here)
    assert one["location"]["path"] == "src/model.py"
    monkeypatch.setenv("CI_PROJECT_DIR", str(checkout / "src"))
    (one,) = checked("gitlab", here)
    assert one["location"]["path"] == "model.py"


def test_reviewdog_counts_columns_in_bytes() -> None:
    """As its format says: ``𐐀`` is one character of four bytes, ``ä`` one of two."""
    source = "import torch\n\n𐐀ä = 1 if x else 2\n"
    report_ = checked("rdjson", result(replace(EAGER, site=Site("src/model.py", 3, 11, 3, 12))), source)
    (one,) = report_["diagnostics"]
    assert one["location"] == {
        "path": "src/model.py",
        "range": {"start": {"line": 3, "column": 15}, "end": {"line": 3, "column": 16}},
    }
    assert report_["source"] == {"name": "breakscan"}
    assert one["severity"] == "ERROR"
    assert one["code"] == {"value": "BRK101 branch-on-tensor"}


def test_junit_counts_what_fails() -> None:
    root = checked("junit", result(EAGER, SPLIT, errors=(UNPARSED,)))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "2", "1")
    suites = {suite.get("name"): suite for suite in root}
    assert suites.keys() == {"src/model.py", UNPARSED.path}
    first = suites["src/model.py"][0]
    assert first.attrib == {
        "name": "BRK101 branch-on-tensor",
        "classname": "src/model.py",
        "file": "src/model.py",
        "line": "3",
    }
    (failure,) = first
    assert failure.get("type") == "error"
    assert failure.text.startswith("src/model.py:3:8: A Python branch on a tensor's value.")


def test_junit_of_nothing_is_a_test_that_passes() -> None:
    """GitLab and Jenkins take a report without test cases for one that is missing."""
    root = checked("junit", result())
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "0")


def test_checkstyle() -> None:
    root = checked("checkstyle", result(EAGER, SPLIT))
    (file,) = root
    assert file.get("name") == "src/model.py"
    assert [(one.get("line"), one.get("column"), one.get("severity"), one.get("source")) for one in file] == [
        ("3", "8", "error", "breakscan.BRK101"),
        ("5", "4", "warning", "breakscan.BRK101"),
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_run_is_reported_too(format_: str) -> None:
    stream = io.StringIO()
    EXPLAIN.write(format_, ExplainReport(made.explanation()), stream)
    parsed(format_, stream.getvalue())
    assert made.BREAK.site.path in stream.getvalue()


@settings(max_examples=25, deadline=None)
@given(STRINGS)
@example([*NASTY, "\ufffe\uffff"])
def test_whatever_the_strings_are_readers_can_read_it(strings: list[str]) -> None:
    found = poisoned(result(EAGER, SPLIT, BEHIND, errors=(UNPARSED,)), strings)
    told = poisoned(made.explanation(), strings)
    for format_ in FORMATS:
        checked(format_, found)
        stream = io.StringIO()
        EXPLAIN.write(format_, ExplainReport(told), stream)
        parsed(format_, stream.getvalue())
