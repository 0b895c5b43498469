"""What has changed between surveys, by cause."""

import io
from collections.abc import Sequence
from dataclasses import replace

from breakscan.report.formats import SURVEY_DIFF
from breakscan.report.survey import survey_diff_page
from breakscan.survey.manifest import Environment, StageResult, Unit
from breakscan.survey.overview import SurveyComparison, compared
from breakscan.survey.store import Surveyed

Site = dict[str, object]


def site(rule: str, function: str = "f", line: int = 1) -> Site:
    path = "/e/site-packages/lib/a.py"
    return {"rule": rule, "path": path, "line": line, "function": function, "reason": "…", "seconds": None}


def survey(torch: str, units: dict[str, Sequence[Site] | str], eager: Sequence[Site] = ()) -> list[Surveyed]:
    environment = Environment("3.11.7", "", {"torch": torch})
    found = []
    for name, told in units.items():
        if isinstance(told, str):
            result = StageResult("explain", "failed", 1.0, None, said=told)
        else:
            result = StageResult(
                "explain", "ok", 1.0, None, {"breaks": list(told), "eager": list(eager), "recompiles": []}
            )
        found.append(Surveyed(Unit(name, build="z:b", mode="eval"), environment, {"explain": result}))
    return found


def lines(found: SurveyComparison) -> list[str]:
    page = survey_diff_page(found)
    return [page.headline, *(f"{label}{words}" for label, words in page.paragraphs)]


NAMES = [f"m{number}" for number in range(80)]
BEFORE = survey(
    "2.12.0", {**{name: [] for name in NAMES}, "gone": [], "moved": [site("BRK101")], "better": [site("BRK101")]}
)
AFTER = survey(
    "2.13.0",
    {
        **{name: [site("BRK401", f"{name}.forward")] for name in NAMES},
        "gone": "Traceback\nValueError: <no> | more",
        "moved": [site("BRK102")],
        "better": [],
    },
)


def test_many_units_that_changed_for_one_reason_are_one_line() -> None:
    assert lines(compared(BEFORE, AFTER)) == [
        "81 units worse, 2 changed otherwise, 0 as before, torch 2.12.0 → 2.13.0",
        "worse: BRK401: breaks 0 → 80 in 80 units: m0, m1, m10 and 77 more names: m0.forward (lib/a.py), m1.forward "
        "(lib/a.py) and 78 more functions",
        "worse: ok → failed in gone (eval cpu): ValueError: <no> | more",
        "changed: BRK102: breaks 0 → 1 in moved (eval cpu): f (lib/a.py)",
        "better: BRK101: breaks 2 → 0 in 2 units: better and moved: f (lib/a.py)",
    ]


def test_what_follows_from_a_break_counts_as_well() -> None:
    """The exit status follows the counts: a line must say what grew."""
    of_break = site("BRK101") | {"of_break": True}
    before, after = survey("2", {"a": [site("BRK101")]}), survey("2", {"a": [site("BRK101")]}, [of_break])
    found = compared(before, after)
    assert found.changes[0].is_regression
    assert lines(found)[1].startswith("worse: BRK101: eager functions 0 → 1 in a (eval cpu)")


def test_a_job_summary_has_what_a_program_says_as_text() -> None:
    stream = io.StringIO()
    SURVEY_DIFF.write("markdown", compared(BEFORE, AFTER), stream)
    assert "ValueError: &#60;no&#62; &#124; more" in stream.getvalue()
    assert lines(compared(BEFORE, BEFORE)) == ["0 units worse, 0 changed otherwise, 83 as before"]


def test_a_unit_that_has_not_run_yet_is_no_regression() -> None:
    waiting = [replace(one, results={}) if one.unit.name == "m0" else one for one in BEFORE]
    found = compared(BEFORE, waiting)
    assert (found.changes, found.unchanged) == ((), len(BEFORE) - 1)
    assert [row.name for row in found.only_before] == ["m0"]
    assert [row.name for row in compared(waiting, BEFORE).only_after] == ["m0"]
