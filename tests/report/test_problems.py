"""What reads a run reads the same problems: gates, locks, pytest and agents."""

from dataclasses import replace

import explain_results as made
import pytest

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.gates import Gates, known_breaks, selectors, unmet
from breakscan.model.findings import Origin
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.remedy import RemedyKind
from breakscan.report.diff import compare
from breakscan.report.explain.assertion_message import objections
from breakscan.report.explain.json import explain_object
from breakscan.rulebook.library import load_library
from breakscan.serve.agents.answers import answer

FUNCTIONS = (made.FRAME, made.BEHIND_BREAK, made.OVER_LIMIT, made.PASSED_OVER, made.FAILED)
"""One that runs eager, one because of a break, one past the limit of recompiles, one that loses nothing, a failure."""
LOST = {made.FRAME.function, made.OVER_LIMIT.function, made.FAILED.function}


def told(**changes: object) -> Explanation:
    return made.explanation(**{"breaks": (), "export_problems": (), "around": (), "frames": FUNCTIONS, **changes})


def test_a_lost_function_is_the_same_for_all() -> None:
    run = told()
    assert {"".join(one.functions) for one in run.problems if one.is_lost} == LOST
    (gate,) = unmet(Gates(max_breaks=0), run)
    assert len({made.FRAME.site, made.OVER_LIMIT.site, made.FAILED.site}) == 1
    assert " is not met: 1 break site at " in gate
    assert {one.function for one in known_breaks(run, "/")} == LOST
    text = "\n".join(objections(run, breaks=0, recompiles=None))
    for name in LOST:
        assert f"{name} " in text


def test_all_names_what_no_rule_explains() -> None:
    run = told(breaks=(replace(made.BREAK, rule=None, gb_id=None),), frames=())
    assert unmet(Gates(fail_on=selectors(["all"], load_library())), run)


def test_torchs_own_functions_do_not_count() -> None:
    run = told(frames=tuple(replace(one, origin=Origin.FRAMEWORK) for one in FUNCTIONS))
    assert not unmet(Gates(max_breaks=0), run)
    assert not known_breaks(run, "/")
    assert not objections(run, breaks=0, recompiles=None)


def test_agents_read_them_in_the_order_of_a_report() -> None:
    run = made.explanation()
    report = explain_object(run)
    shown = [one for one in run.problems if one.cause is None and (one.verdict or one.kind is not ProblemKind.FUNCTION)]
    places = [f"{one.site.path}:{one.site.line}:{one.site.column}" for one in shown]
    assert [one["site"] for one in answer("explain", report, 0, 99)["problems"]] == places
    assert [one["kind"] for one in report["problems"]] == [one.kind.value for one in run.problems]


@pytest.mark.parametrize("at", range(2))
def test_a_known_problem_is_found_again_wherever_it_moved(at: int) -> None:
    def moved(problem: Problem) -> Problem:
        site = replace(problem.site, line=problem.site.line + 7, end_line=problem.site.end_line + 7)
        return replace(problem, site=site, count=9)

    problem = told(breaks=(made.BREAK,)).problems[at]
    assert moved(problem).identity() == problem.identity()
    assert replace(problem, code="another()").identity() != problem.identity()


def test_remedies_say_what_they_change() -> None:
    problems = told(breaks=(made.BREAK,)).problems
    kinds = {one.kind: [remedy.kind for remedy in one.remedies] for one in problems if one.cause is None}
    assert kinds[ProblemKind.BREAK] == [RemedyKind.EDIT, RemedyKind.SETTING]


def test_what_another_problem_explains_has_its_remedies_there() -> None:
    explained = [one for one in told(breaks=(made.BREAK,)).problems if one.cause is ProblemKind.BREAK]
    assert [(one.rule, one.remedies) for one in explained] == [("BRK201", ())]


def test_what_the_compiler_does_not_report_is_counted_where_it_is_asked_for() -> None:
    run = told(around=(made.PLAIN_CALLS,), frames=())
    assert not unmet(Gates(max_breaks=0, max_recompiles=0, max_eager_calls=0), replace(run, recompiles=()))
    (gate,) = unmet(Gates(fail_on=selectors(["plain-calls"], load_library())), run)
    assert gate.endswith(
        f" at {made.PLAIN_CALLS.site.path}:{made.PLAIN_CALLS.site.line}:{made.PLAIN_CALLS.site.column}"
    )
    assert [(one.type, one.count) for one in known_breaks(run, "/")] == [("plain-calls", 1)]
    assert explain_object(run)["summary"]["around"] == 1
    changed = compare(explain_object(told(frames=())), explain_object(run))
    assert [one.type for one in changed.new] == ["plain-calls"]
