"""The reports of surveys, and the facts that they are made of."""

import io
import re
from collections.abc import Callable, Sequence
from typing import TextIO

import pytest

from breakscan.report.survey import write_survey_markdown, write_survey_terminal
from breakscan.survey.manifest import Environment, StageResult, Unit
from breakscan.survey.overview import SurveyOverview, Tuned, overview
from breakscan.survey.run_unit import explain_facts
from breakscan.survey.store import Surveyed

ENVIRONMENT = Environment("3.11.7", "", {"torch": "2.13.0"})
SITE = {"rule": "BRK101", "path": "a.py", "line": 3, "function": "f", "reason": "…", "seconds": 0.25}
FACTS = {"breaks": [SITE], "eager": [], "recompiles": [], "graphs": 2, "compile_seconds": 1.25, "files": ["a.py"]}

BEST = {
    "candidates": [{"kind": "setting"}, {"kind": "edit"}, {"kind": "setting"}],
    "ratio": {"median": 1.25},
    **{name: {"before": 2, "after": left} for left, name in enumerate(("breaks", "recompiles", "eager_functions"))},
}


def surveyed(name: str, **results: StageResult) -> Surveyed:
    return Surveyed(Unit(name, build="z:b", mode="eval", backend="eager"), ENVIRONMENT, results)


def ok(stage: str, **facts: object) -> StageResult:
    return StageResult(stage, "ok", 2.0, 5 * 10**8, facts)


REPORT = overview(
    [
        surveyed(
            "a" * 50,
            explain=ok("explain", **FACTS),
            verify=ok(
                "verify",
                proofs=[
                    {"rewrite": "where", "verdict": "accepted"},
                    {"rewrite": "masked-fill", "verdict": "rejected"},
                    {"rewrite": None, "verdict": "accepted"},
                ],
            ),
            bench=ok("bench", ways=[{"ratio": {"median": 1.5}}, {"ratio": None}]),
            tune=ok("tune", says="…", best=BEST),
        ),
        surveyed("b|c", explain=StageResult("explain", "timeout", 60.0, None, said="Traceback\nsaid <b>last\n")),
        surveyed("d"),
    ]
)


def test_what_is_counted() -> None:
    first, second, third = REPORT.rows
    assert (first.breaks, first.proved, first.speed, first.is_whole) == (1, 1, 1.5, False)
    assert (first.cost, first.costliest, first.causes, first.files) == (0.25, "BRK101", ("BRK101",), ("a.py",))
    assert (first.tuned, second.tuned) == (Tuned(("setting", "edit"), (2, 2, 2), (0, 1, 2), 1.25), None)
    assert (second.status, second.breaks, third.status) == ("timeout", None, "waiting")
    assert REPORT.statuses == {"ok": 1, "timeout": 1, "waiting": 1}
    (count,) = REPORT.counts
    assert (count.units, count.waiting, count.ran, count.broken) == (3, 1, 1, 1)
    assert [(one.status, one.said, one.units) for one in REPORT.endings] == [("timeout", "said <b>last", 1)]


def site(rule: str | None, path: str, line: int, **facts: object) -> dict[str, object]:
    return {"rule": rule, "path": path, "line": line, "function": "f", "reason": "why\nmore", "seconds": None, **facts}


def explained(
    *breaks: dict[str, object], eager: Sequence[dict[str, object]] = (), recompiles: Sequence[dict[str, object]] = ()
) -> StageResult:
    return ok("explain", **{**FACTS, "breaks": breaks, "eager": eager, "recompiles": recompiles})


LIBRARY = "/x/lib/python3.11/site-packages/lib/a.py"
SEVERAL = [
    surveyed(
        "one", explain=explained(site("BRK101", LIBRARY, 3, seconds=0.5), site("BRK401", "b.py", 1, seconds=0.25))
    ),
    surveyed(
        "two",
        explain=explained(
            site("BRK101", LIBRARY.replace("/x/", "/y/"), 3, seconds=0.1),
            site("BRK401", "b.py", 1, seconds=0.2),
            site("BRK401", "b.py", 9, seconds=0.2),
            eager=[
                site("BRK101", LIBRARY, 2, seconds=9.0, of_break=True),
                site(None, "c.py", 1, seconds=0.1, of_break=False),
            ],
            recompiles=[site("BRK701", "b.py", 4, seconds=3.0)],
        ),
    ),
    surveyed("not timed", explain=explained(site("BRK101", LIBRARY, 3), eager=[site(None, "c.py", 1)])),
]


def test_what_costs_most_is_found_unit_by_unit() -> None:
    found = {
        (one.cause.kind.value, one.cause.name): (one.units, one.places, one.costs_most, one.seconds)
        for one in overview(SEVERAL).causes
    }
    assert found == {
        ("break", "BRK101"): (3, 1, 1, 0.6),
        ("break", "BRK401"): (2, 2, 1, pytest.approx(0.65)),
        ("eager", "why"): (2, 1, 0, 0.1),
        ("recompile", "BRK701"): (1, 1, 1, 3.0),
    }
    assert [(row.cost, row.costliest) for row in overview(SEVERAL).rows] == [
        (0.75, "BRK101"),
        (pytest.approx(0.6), "BRK401"),
        (None, None),
    ]


def test_a_file_of_a_library_is_the_same_in_all_environments() -> None:
    assert overview(SEVERAL).places[0].path == "lib/a.py"


def test_causes_at_one_place_have_an_order() -> None:
    rules = [f"BRK{number}" for number in range(101, 121)]
    breaks = [{**SITE, "rule": rule} for rule in rules]
    found = overview([surveyed("m", explain=ok("explain", **{**FACTS, "breaks": breaks}))])
    assert [one.rule for one in found.places] == rules


@pytest.mark.parametrize("write", [write_survey_terminal, write_survey_markdown])
def test_all_that_units_have_in_common_is_told(write: Callable[[SurveyOverview, TextIO], None]) -> None:
    stream = io.StringIO()
    write(overview(SEVERAL), stream)
    text = re.sub(r" *(?: |\|) *", " ", stream.getvalue()).replace("`", "")
    for words in ("BRK101 breaks 3 1 1 600 ms", "BRK701 recompiles 1 1 1 3.0 s compiling", "cause of units places"):
        assert words in text, words


def test_a_function_in_which_nothing_was_found_to_compile_is_not_lost() -> None:
    place = {"site": {"path": "m.py", "line": 1}, "functions": ["f"], "rule": None, "reason": "why"}
    problem = {**place, "kind": "function", "cost": 1.5, "cause": None}
    summary = {"graphs": 1, "compile_seconds": 1.0}
    problems = [{**problem, "verdict": verdict} for verdict in ("eager", None)]
    facts = explain_facts({"recompiles": [], "summary": summary, "problems": problems})
    assert [(one["seconds"], one["of_break"]) for one in facts["eager"]] == [(1.5, False)]


def test_no_name_is_broken_in_a_file() -> None:
    stream = io.StringIO()
    write_survey_terminal(REPORT, stream)
    lines = stream.getvalue().splitlines()
    assert lines[1].split()[0] == "a" * 50
    assert "  1       1.50×  setting and edit: " in lines[1]
    assert lines[-1] == (
        "eval, eager, cpu, torch 2.13.0: 1 of 1 unit that ran break the graph or run eager (100%); "
        "1 did not run; 1 still to run"
    )


def test_names_are_no_markup_in_a_table() -> None:
    stream = io.StringIO()
    write_survey_markdown(REPORT, stream)
    row = next(line for line in stream.getvalue().splitlines() if line.startswith("| <code>b"))
    assert row.startswith("| <code>b&#124;c</code> | eval eager cpu | 2.13.0 | timeout |")
