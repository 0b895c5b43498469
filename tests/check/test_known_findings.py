"""The baseline: findings that are not allowed, for any two states of a program, and the file."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.check.baseline import (
    BaselineTarget,
    FindingsBaseline,
    KnownFinding,
    baseline_text,
    compare,
    known_findings,
    read_baseline,
)
from breakscan.model.findings import Confidence, Finding, Kind, Mode, Severity, Site
from breakscan.source.writing import CommittedFileError, write_committed

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


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KNOWN = st.builds(KnownFinding, path=TEXTS, function=st.none() | TEXTS, rule=TEXTS, code=TEXTS, count=st.integers(1, 9))


@given(st.lists(KNOWN, max_size=5, unique=True), st.sampled_from(Mode))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, known: list[KnownFinding], mode: Mode
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "baseline.toml"
    targets = (BaselineTarget("2.13", mode, "auto"), BaselineTarget("2.12", mode, "all"))
    write_committed(path, baseline_text(FindingsBaseline(targets, ("src", "a b"), tuple(known))))
    read = read_baseline(path)
    assert read is not None
    assert (read.targets, read.paths) == (targets, ("src", "a b"))
    assert sorted(map(repr, read.findings)) == sorted(map(repr, known))
    before = path.stat().st_mtime_ns
    write_committed(path, baseline_text(read))
    assert path.stat().st_mtime_ns == before


def test_no_file_is_no_baseline(tmp_path: Path) -> None:
    assert read_baseline(tmp_path / "gone.toml") is None


TARGET = BaselineTarget("2.13", Mode.DEFAULT, "auto")
GOOD = baseline_text(FindingsBaseline((TARGET,), (".",), (KnownFinding("a.py", "f", "BRK101", "x", 2),)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = 1\n", "is no baseline of breakscan's: name another file"),
        ("[project]\nname = 'x'\n", "is no baseline of breakscan's"),
        (GOOD.replace("version = 1", "version = 2"), "was written by a newer breakscan: update breakscan"),
        (GOOD.replace('"auto"', '"some"'), "is damaged at targets: 'regions' is wrong"),
        (GOOD.replace('["."]', "[1]"), "is damaged at the top: 'paths' is wrong"),
        (GOOD.replace('"default"', '"other"'), "is damaged at targets: 'mode' is wrong"),
        (GOOD.replace('torch = "2.13"', "torch = 2.13"), "is damaged at targets: 'torch' is wrong"),
        (GOOD.replace("count = 2", "count = 0"), "is damaged at a.py: x: 'count' is wrong"),
        (GOOD.replace("count = 2", "count = true"), "'count' is wrong"),
        (GOOD.replace('rule = "BRK101", ', ""), "is damaged at a.py: x: 'rule' is wrong"),
        (GOOD.replace('code = "x"', "code = 1"), "'code' is wrong"),
        (GOOD.replace('function = "f"', "function = 1"), "'function' is wrong"),
        (GOOD.replace('path = "a.py"', "path = 1"), "is damaged at a [[file]]: 'path' is wrong"),
        ("<<<<<<< ours\n" + GOOD, "is damaged: "),
        ("a = " + "[" * 3000, "is damaged: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "baseline.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CommittedFileError) as caught:
        read_baseline(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommittedFileError, match="cannot be read"):
        read_baseline(tmp_path)
