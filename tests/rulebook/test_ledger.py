"""The verdict ledger: written, read back, asked."""

from pathlib import Path

import pytest

from breakscan.model.findings import Mode, Place, Verdict
from breakscan.model.torch_versions import PINNED, SUPPORTED, minor_version, version_key
from breakscan.rulebook import ledger
from breakscan.rulebook.document import RuleError
from breakscan.rulebook.ledger import (
    ExampleRulings,
    Ledger,
    Ruling,
    ledger_version_for,
    load_ledger,
    measured_versions,
    read_ledger,
    write_ledger,
)
from tools.stale_ledgers import stale_rules

PLAIN, LOOP = (Mode.DEFAULT, Place.PLAIN), (Mode.DEFAULT, Place.LOOP)
SPLITS, EAGER, COMPILES = Ruling(Verdict.SPLITS, ("GB0170",)), Ruling(Verdict.EAGER), Ruling(Verdict.COMPILES)
LEDGER = Ledger(
    "2.13",
    "3.11",
    {
        "BRK101": {
            "breaks/1": ExampleRulings("a" * 12, "if", {PLAIN: SPLITS, LOOP: EAGER}, {Place.LOOP: SPLITS}),
            "breaks/2": ExampleRulings("b" * 12, None, {PLAIN: EAGER}),
            "compiles/1": ExampleRulings("c" * 12, None, {PLAIN: COMPILES}),
        }
    },
)


def test_a_ledger_survives_its_file(tmp_path: Path) -> None:
    write_ledger(LEDGER, tmp_path / "ledger" / "2.13.json")
    assert read_ledger(tmp_path / "ledger" / "2.13.json") == LEDGER


@pytest.mark.parametrize(
    ("place", "form", "expected"),
    [
        (Place.PLAIN, "if", SPLITS),
        (Place.LOOP, "if", EAGER),
        (Place.TRY, "if", SPLITS),  # never replayed there: as in the plain place
        (Place.PLAIN, "while", EAGER),  # the example without a form speaks for the forms that have none
    ],
)
def test_the_example_of_the_form_decides(place: Place, form: str, expected: Ruling) -> None:
    assert LEDGER.ruling("BRK101", Mode.DEFAULT, place, form) == expected


def test_the_example_that_calls_the_same_function_goes_before() -> None:
    assert LEDGER.ruling("BRK101", Mode.DEFAULT, Place.PLAIN, "if", ["breaks/2"]) == EAGER
    assert LEDGER.ruling("BRK101", Mode.DEFAULT, Place.PLAIN, "if", ["breaks/9"]) == SPLITS


def test_the_ledger_of_the_pinned_version_holds_every_example() -> None:
    """Those of other versions are filled by ``nox -s measure``, for which these versions have to be installed."""
    assert stale_rules(minor_version(PINNED)) == []


def test_each_supported_version_has_a_ledger() -> None:
    assert measured_versions() == list(SUPPORTED)


def test_nested_graph_breaks_change_the_default_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ledger(LEDGER, tmp_path / "9.9.json")
    monkeypatch.setattr(ledger, "ledger_folder", lambda: tmp_path)
    loops = [load_ledger(version).ruling("BRK101", Mode.DEFAULT, Place.LOOP, "if") for version in ("9.9", "9.9+nested")]
    assert loops == [EAGER, SPLITS]


def test_a_rule_that_was_never_replayed_has_no_ruling() -> None:
    assert LEDGER.ruling("BRK199", Mode.DEFAULT, Place.PLAIN) is None


@pytest.mark.parametrize("text", ["", "{", '{"schema": 2}', '{"schema": 1, "torch": "2.13"}', "[]"])
def test_a_damaged_ledger_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "2.13.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        read_ledger(path)
    assert str(path) in str(caught.value)


def test_a_version_outside_the_range_is_judged_by_the_nearest() -> None:
    assert [ledger_version_for(version) for version in SUPPORTED] == list(SUPPORTED)
    assert ledger_version_for(PINNED) == minor_version(PINNED)
    assert ledger_version_for("2.99") == SUPPORTED[-1]
    assert ledger_version_for("2.0") == SUPPORTED[0]
    assert ledger_version_for("2.99+nested") == f"{SUPPORTED[-1]}+nested"


@pytest.mark.parametrize(("text", "key"), [("2.13.0+cpu", (2, 13)), ("2.9", (2, 9)), ("2.15.0a0+git", (2, 15))])
def test_versions(text: str, key: tuple[int, int]) -> None:
    assert version_key(text) == key


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not a torch version"):
        version_key("nightly")
