"""Annotations of a run in GitHub Actions."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import explain_results as made
import pytest

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.repro.reproduction import Reproduction
from breakscan.report.explain.report import ExplainReport
from breakscan.report.formats import EXPLAIN


@pytest.fixture(autouse=True)
def no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def written(told: Explanation, reproduction: Reproduction | None = None) -> list[str]:
    stream = io.StringIO()
    EXPLAIN.write("github", ExplainReport(told, reproduction=reproduction), stream)
    return stream.getvalue().splitlines()


def test_the_headline_comes_first_as_plain_lines() -> None:
    lines = written(made.explanation())
    assert lines[0].startswith("train.py finished with exit status 0")
    assert lines[1].startswith("1 function fails to compile.  3 sites break the graph 5 times")
    assert lines[-1] == "Note: this torch lacks what breakscan hooks into for memory: something is missing."


def test_the_program_that_reproduces_a_finding_is_named_in_a_line() -> None:
    (line,) = (line for line in written(made.explanation(), made.REPRODUCTION) if "repro_model_3.py" in line)
    assert line.startswith("Note: repro_model_3.py reproduces src/model.py:3: run alone, it ")


def test_a_break_is_an_annotation_on_its_span() -> None:
    assert written(made.explanation(frames=(), export_failures=(), breaks=(made.BREAK,)))[2] == (
        "::error title=BRK201 tensor-item,file=src/model.py,line=3,endLine=3,col=8,endColumn=15::src/model.py:3:8: "
        "BRK201 tensor-item: The graph breaks here 3 times. Why: the number exists only once the graph has run, so the "
        "graph ends here. Block.forward runs as plain Python, without a graph: the break is inside a loop. Instead: "
        "keep the 0-d tensor: y * y.sum() works as well; for a size, take a known bound and mask."
    )


def test_a_break_in_a_library_is_shown_on_the_line_that_leads_there() -> None:
    (line,) = (line for line in written(made.explanation()) if "lib/attention.py" in line)
    assert line.startswith("::warning title=Data-dependent branching,file=src/model.py,line=3,endLine=3::")


def test_what_github_would_drop_is_folded_in_the_log() -> None:
    splits = [replace(made.IN_LIBRARY, gb_type=f"type {n}") for n in range(13)]
    lines = written(made.explanation(breaks=splits, cudagraph_skips=()))
    assert sum(line.startswith("::warning ") for line in lines) == 10
    start = lines.index("::group::3 more than GitHub shows as annotations (10 of each level)")
    assert lines[start + 4] == "::endgroup::"
    assert all(line.startswith("warning: src/model.py:3: type 1") for line in lines[start + 1 : start + 4])


def test_a_run_without_graphs_is_a_warning() -> None:
    lines = written(Explanation(("x.py",), 0, 0.1, "", "", (), False, None, (), (), (), (), (), 0, 0.0, ()))
    assert lines[1] == "::warning title=Nothing was compiled::Nothing was compiled: the program did not import torch."


def test_paths_are_relative_to_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packages").mkdir()
    monkeypatch.chdir(tmp_path / "packages")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert ",file=packages/src/model.py," in written(made.explanation())[2]
