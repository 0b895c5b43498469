"""What ``check`` finds beside what is allowed, for any two states of a program."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.check.baseline.known_findings import KnownFinding, compare, known_findings
from breakscan.model.findings import Confidence, Finding, Kind, Severity, Site

Place = tuple[str, str | None, str, str]
PATHS = ("a.py", "b.py")
FUNCTIONS = (None, "f", "Block.forward")
RULES = ("BRK101", "BRK401")
CODES = ("if x.sum() > 0:", "if x.mean() > 0:", "print(x)")
PLACES = st.tuples(*map(st.sampled_from, (PATHS, FUNCTIONS, RULES, CODES)))
STATES = st.lists(PLACES, max_size=12)


def finding(path: str, line: int, function: str | None, rule: str) -> Finding:
    return Finding(
        rule, "name", Kind.GRAPH_BREAK, Severity.WARNING, Confidence.CERTAIN, "message",
        Site(path, line, 1, line, 2), function, None, (), "2.13",
    )  # fmt: skip


def state(places: list[Place]) -> list[KnownFinding]:
    """Findings on lines of their own."""
    texts = {path: [code for where, _, _, code in places if where == path] for path in PATHS}
    lines: Counter[str] = Counter()
    found = []
    for path, function, rule, _ in places:
        lines[path] += 1
        found.append(finding(path, lines[path], function, rule))
    return known_findings(found, "/here", "/here", lambda path: texts[path])


def total(known: list[KnownFinding] | tuple[KnownFinding, ...]) -> int:
    return sum(one.count for one in known)


@given(STATES, STATES)
def test_a_ratchet_only_goes_down(before: list[Place], after: list[Place]) -> None:
    allowed, found = state(before), state(after)
    told = compare(allowed, found)
    assert total(told.follows) == told.known <= len(before)
    assert told.known + len(told.new) == len(after)
    assert told.known + told.gone == len(before)
    again = compare(told.follows, found)
    assert again.follows == told.follows
    assert len(again.new) == len(told.new)
    assert not again.gone


@given(STATES, STATES)
def test_what_is_added_is_allowed(before: list[Place], after: list[Place]) -> None:
    found = state(after)
    follows = compare(state(before), found, add=True).follows
    assert Counter(follows) == Counter(found)
    assert not compare(follows, found).new


@given(STATES)
def test_the_same_code_is_known(places: list[Place]) -> None:
    told = compare(state(places), state(places[::-1]))
    assert (told.new, told.known, told.gone) == ((), len(places), 0)


@given(STATES, STATES)
def test_what_was_not_checked_stays(before: list[Place], after: list[Place]) -> None:
    allowed = state(before)
    kept = [one for one in allowed if one.path == "b.py"]
    found = [one for one in state(after) if one.path == "a.py"]
    follows = compare(allowed, found, lambda one: one.path == "a.py").follows
    assert [one for one in follows if one.path == "b.py"] == kept


@pytest.mark.parametrize(
    "moved",
    [
        ("a.py", "f", "BRK101", "if x.mean() > 0:"),  # edited
        ("b.py", "f", "BRK101", "if x.sum() > 0:"),  # moved to another file
        ("a.py", "g", "BRK101", "if x.sum() > 0:"),  # renamed
    ],
)
def test_code_that_changed_in_one_way_is_known(moved: tuple[str, str, str, str]) -> None:
    assert not compare(state([("a.py", "f", "BRK101", "if x.sum() > 0:")]), state([moved])).new


def test_code_that_changed_in_two_ways_is_new() -> None:
    other = ("b.py", "g", "BRK101", "if x.sum() > 0:")
    assert len(compare(state([("a.py", "f", "BRK101", "if x.sum() > 0:")]), state([other])).new) == 1


def test_of_equal_lines_the_last_are_new() -> None:
    line = ("a.py", "f", "BRK401", "print(x)")
    (new,) = compare(state([line]), state([line, line])).new
    assert new.site.line == 2
