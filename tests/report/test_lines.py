"""The reports of one line a finding: concise, github, statistics."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from report_results import BEHIND, EAGER, LIBRARY, SPLIT, UNPARSED, report, result

from breakscan.model.findings import CheckResult, Severity, Site
from breakscan.report.check import write_statistics
from breakscan.report.formats import CHECK

INSTEAD = LIBRARY.select("BRK101")[0].instead
END = "1 error, 1 warning in 41 files (0.4 s) · torch 2.13, default mode · 1 path not checked\n"


@pytest.fixture(autouse=True)
def no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def written(format_: str, found: CheckResult) -> str:
    stream = io.StringIO()
    CHECK.write(format_, report(found), stream)
    return stream.getvalue()


def github(found: CheckResult) -> str:
    return written("github", found)


def test_concise() -> None:
    assert written("concise", result(EAGER, SPLIT, errors=(UNPARSED,))) == (
        "src/model.py:3:8: error BRK101 a Python branch on a tensor's value\n"
        "src/model.py:5:4: warning BRK101 a Python branch on a tensor's value (only when `mask` is given)\n"
        "src/bad.py:2:7: not checked cannot be parsed: invalid syntax\n" + END
    )


def test_findings_behind_another_are_listed_and_say_so() -> None:
    found = result(EAGER, replace(BEHIND, conditions=SPLIT.conditions))
    said = "BRK101 a Python branch on a tensor's value (only when `mask` is given) (hidden by line 3)"
    assert written("concise", found).splitlines()[1:] == [
        f"src/model.py:4:9: error {said}",
        "1 error in 41 files (0.4 s) · torch 2.13, default mode · 1 hidden",
    ]
    message = "A Python branch on a tensor's value (only when `mask` is given) (hidden by line 3)"
    assert f"::src/model.py:4:9: BRK101 branch-on-tensor: {message}. " in github(found).splitlines()[1]


def test_concise_never_wraps_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert len(written("concise", result(replace(EAGER, message="word " * 100))).splitlines()) == 2


def test_github() -> None:
    assert github(result(EAGER, SPLIT, errors=(UNPARSED,))) == (
        "::error title=not checked,file=src/bad.py,line=2,endLine=2,col=7,endColumn=8"
        "::src/bad.py:2:7: not checked: cannot be parsed: invalid syntax\n"
        "::error title=BRK101 branch-on-tensor,file=src/model.py,line=3,endLine=3,col=8,endColumn=15"
        "::src/model.py:3:8: BRK101 branch-on-tensor: A Python branch on a tensor's value. The break is inside a loop: "
        "torch 2.13 runs the whole function eager (0 graphs), not just this line. In Block.forward, compiled from "
        f"train.py:41 via Model.forward. Instead: {INSTEAD}.\n"
        "::warning title=BRK101 branch-on-tensor,file=src/model.py,line=5,endLine=7"
        "::src/model.py:5:4: BRK101 branch-on-tensor: A Python branch on a tensor's value (only when `mask` is given). "
        f"Instead: {INSTEAD}.\n" + END
    )


def test_github_calls_a_hint_a_notice() -> None:
    assert github(result(replace(EAGER, severity=Severity.INFO))).startswith("::notice ")


def test_github_escapes_what_would_end_a_property_or_the_command() -> None:
    found = replace(EAGER, site=Site("a,b:c%d.py", 1, 1, 1, 2), message="100%\r\nfoo::bar, baz")
    line = github(result(found)).splitlines()[0]
    assert ",file=a%2Cb%3Ac%25d.py,line=1," in line
    assert "::a,b:c%25d.py:1:1: BRK101 branch-on-tensor: 100%25␍ foo::bar, baz. " in line


def test_github_paths_are_relative_to_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packages").mkdir()
    monkeypatch.chdir(tmp_path / "packages")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert ",file=packages/src/model.py," in github(result(EAGER))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "packages"))
    assert ",file=src/model.py," in github(result(EAGER))


def test_statistics_counts_the_most_frequent_first() -> None:
    other = replace(EAGER, rule="BRK201", name="item")
    stream = io.StringIO()
    write_statistics(report(result(other, EAGER, BEHIND, *[SPLIT] * 8)), stream)
    assert stream.getvalue().splitlines()[:2] == ["10  BRK101  branch-on-tensor", " 1  BRK201  item"]
