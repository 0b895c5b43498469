"""The reports of one line a finding: concise, github, statistics."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from report_results import BEHIND, EAGER, SPLIT, UNPARSED, result

from breakscan.findings import CheckResult, Severity, Site
from breakscan.reports.check.concise import write_concise
from breakscan.reports.check.github import write_github
from breakscan.reports.check.statistics import write_statistics
from breakscan.reports.shared.wording import CheckRun

RUN = CheckRun(0.4, "2.13")
END = "1 error, 1 warning in 41 files (0.4 s) · torch 2.13, default mode · 1 path not checked\n"


def github(found: CheckResult, workspace: str | None = None) -> str:
    stream = io.StringIO()
    write_github(found, stream, RUN, workspace)
    return stream.getvalue()


def test_concise() -> None:
    stream = io.StringIO()
    write_concise(result(EAGER, SPLIT, errors=(UNPARSED,)), stream, RUN)
    assert stream.getvalue() == (
        "src/model.py:3:8: error BRK101 a Python branch on a tensor's value\n"
        "src/model.py:5:4: warning BRK101 a Python branch on a tensor's value (only when mask is given)\n"
        "src/bad.py:2:7: not checked cannot be parsed: invalid syntax\n" + END
    )


def test_findings_behind_another_are_listed_and_say_so() -> None:
    stream = io.StringIO()
    found = result(EAGER, replace(BEHIND, condition="mask is given"))
    write_concise(found, stream, RUN)
    said = "BRK101 a Python branch on a tensor's value (only when mask is given) (behind line 3)"
    assert stream.getvalue().splitlines()[1:] == [
        f"src/model.py:4:9: error {said}",
        "1 error in 41 files (0.4 s) · torch 2.13, default mode · 1 behind others",
    ]
    assert github(found).splitlines()[1].endswith(f"::src/model.py:4:9: {said}")


def test_concise_never_wraps_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    write_concise(result(replace(EAGER, message="word " * 100)), stream, RUN)
    assert len(stream.getvalue().splitlines()) == 2


def test_github() -> None:
    assert github(result(EAGER, SPLIT, errors=(UNPARSED,))) == (
        "::error title=BRK101 branch-on-tensor,file=src/model.py,line=3,endLine=3,col=8,endColumn=15"
        "::src/model.py:3:8: BRK101 a Python branch on a tensor's value\n"
        "::warning title=BRK101 branch-on-tensor,file=src/model.py,line=5,endLine=7"
        "::src/model.py:5:4: BRK101 a Python branch on a tensor's value (only when mask is given)\n"
        "::error title=not checked,file=src/bad.py,line=2,col=7"
        "::src/bad.py:2:7: not checked: cannot be parsed: invalid syntax\n" + END
    )


def test_github_calls_a_hint_a_notice() -> None:
    assert github(result(replace(EAGER, severity=Severity.INFO))).startswith("::notice ")


def test_github_escapes_what_would_end_a_property_or_the_command() -> None:
    found = replace(EAGER, site=Site("a,b:c%d.py", 1, 1, 1, 2), message="100%\r\nfoo::bar, baz")
    line = github(result(found)).splitlines()[0]
    assert ",file=a%2Cb%3Ac%25d.py,line=1," in line
    assert line.endswith("::a,b:c%25d.py:1:1: BRK101 100%25␍ foo::bar, baz")


def test_github_paths_are_relative_to_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packages").mkdir()
    monkeypatch.chdir(tmp_path / "packages")
    assert ",file=packages/src/model.py," in github(result(EAGER), str(tmp_path))
    assert ",file=src/model.py," in github(result(EAGER), str(tmp_path / "packages"))


def test_statistics_counts_the_most_frequent_first() -> None:
    other = replace(EAGER, rule="BRK201", name="item")
    stream = io.StringIO()
    write_statistics(result(other, EAGER, BEHIND, *[SPLIT] * 8), stream, RUN)
    assert stream.getvalue().splitlines()[:2] == ["10  BRK101  branch-on-tensor", " 1  BRK201  item"]
