"""The reports of surveys."""

from __future__ import annotations

import io

from breakscan.reports.survey.markdown import write_survey_markdown
from breakscan.reports.survey.terminal import write_survey_terminal
from breakscan.survey.overview import overview
from breakscan.survey.stage_results import StageResult
from breakscan.survey.store import Surveyed
from breakscan.survey.units import Environment, Unit

ENVIRONMENT = Environment("3.11.7", "", {"torch": "2.13.0"})
SITE = {
    "rule": "BRK101",
    "path": "a.py",
    "line": 3,
    "function": "f",
    "origin": "user",
    "reason": "…",
    "verdict": "splits",
}
FACTS = {"breaks": [SITE], "eager": [], "recompiles": [], "graphs": 2, "compile_seconds": 1.25, "files": ["a.py"]}


def surveyed(name: str, **results: StageResult) -> Surveyed:
    return Surveyed(Unit(name, build="z:b", mode="eval", backend="eager"), ENVIRONMENT, results)


def ok(stage: str, **facts: object) -> StageResult:
    return StageResult(stage, "ok", 2.0, 5 * 10**8, facts)


REPORT = overview(
    [
        surveyed(
            "a" * 50,
            explain=ok("explain", **FACTS),
            fix=ok("fix", outcomes={"applied": 1, "unsafe": 2, "declined": 4}, rewrites={}),
            verify=ok("verify", proofs=[{"verdict": "accepted"}, {"verdict": "rejected"}]),
            bench=ok("bench", ways=[{"ratio": {"median": 1.5}}, {"ratio": None}]),
        ),
        surveyed("b|c", explain=StageResult("explain", "timeout", 60.0, None, said="…")),
        surveyed("d"),
    ]
)


def test_what_is_counted() -> None:
    first, second, third = REPORT.rows
    assert (first.breaks, first.offered, first.proved, first.speed, first.is_whole) == (1, 3, 1, 1.5, False)
    assert (second.status, second.breaks, third.status) == ("timeout", None, "waiting")
    assert REPORT.statuses == {"ok": 1, "timeout": 1, "waiting": 1}
    (count,) = REPORT.counts
    assert (count.units, count.ran, count.broken) == (3, 1, 1)


def test_no_name_is_broken_in_a_file() -> None:
    stream = io.StringIO()
    write_survey_terminal(REPORT, stream)
    lines = stream.getvalue().splitlines()
    assert lines[1].split()[0] == "a" * 50
    assert lines[1].endswith("3, 1 proved  1.50×")
    assert lines[-1] == (
        "eval, eager, cpu, torch 2.13.0: 1 of 1 unit that ran break the graph or run eager (100%); 2 did not run"
    )


def test_names_are_no_markup_in_a_table() -> None:
    stream = io.StringIO()
    write_survey_markdown(REPORT, stream)
    row = next(line for line in stream.getvalue().splitlines() if "timeout" in line)
    assert row.startswith("| <code>b&#124;c</code> | eval eager cpu | 2.13.0 | timeout |")
