"""The file of a baseline."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.check.baseline.baseline_file import (
    BaselineTarget,
    FindingsBaseline,
    baseline_text,
    read_baseline,
)
from breakscan.check.baseline.known_findings import KnownFinding
from breakscan.model.findings import Mode
from breakscan.source.writing import CommittedFileError, write_committed

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KNOWN = st.builds(
    KnownFinding,
    path=TEXTS,
    function=st.none() | TEXTS,
    rule=TEXTS,
    code=TEXTS,
    count=st.integers(1, 9),
)


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
