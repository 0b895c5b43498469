"""``breakscan rule`` and ``breakscan rules``."""

from pathlib import Path

import pytest
from own_rule import OWN_RULE

from breakscan.model.findings import Mode, Place
from breakscan.rulebook.ledger import measured_versions
from breakscan.rulebook.library import load_library
from tests.cli.conftest import Run


@pytest.mark.parametrize("word", ["BRK101", "brk101", "branch-on-tensor"])
def test_a_rule_is_explained(breakscan: Run, word: str) -> None:
    done = breakscan("rule", word)
    rule = load_library().select("BRK101")[0]
    assert done.status == 0
    assert done.out.startswith(f"BRK101 branch-on-tensor: {rule.summary}\n")
    for heading in ("Why", "Instead", "Breaks", "Compiles"):
        assert f"\n{heading}\n" in done.out
    assert "+++" not in done.out, "the front matter is for the machine"
    assert "\x1b[" not in done.out
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_its_verdicts_are_those_of_the_ledgers(breakscan: Run) -> None:
    lines = breakscan("rule", "BRK101").out.splitlines()
    start = lines.index("What torch does with the examples that break")
    assert lines[start + 1].split("  ") != []
    table = [line.split() for line in lines[start + 2 :]]
    assert ["2.13", "default", "mode", "splits", "eager", "eager", "eager"] in table
    assert ["2.13", "fullgraph=True", "raises", "raises", "raises", "raises"] in table


def test_a_rule_as_json(breakscan: Run) -> None:
    data = breakscan("rule", "BRK101", "--format", "json").json
    assert (data["rule"], data["name"], data["kind"]) == ("BRK101", "branch-on-tensor", "graph-break")
    assert {(v["mode"], v["place"]) for v in data["verdicts"]} == {
        *((m.value, p.value) for m in (Mode.DEFAULT, Mode.FULLGRAPH) for p in Place),
        *((m.value, Place.PLAIN.value) for m in (Mode.EXPORT, Mode.EXPORT_STRICT)),
    }
    assert {v["torch"] for v in data["verdicts"]} == set(measured_versions())


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("BRK1010", "no rule is called 'BRK1010': did you mean BRK101?"),
        ("branch-on-tensr", "no rule is called 'branch-on-tensr': did you mean branch-on-tensor?"),
    ],
)
def test_a_rule_that_is_not_known(breakscan: Run, word: str, said: str) -> None:
    done = breakscan("rule", word)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_the_table_lists_every_rule_with_its_verdicts(breakscan: Run) -> None:
    done = breakscan("rules")
    assert done.status == 0
    for rule in load_library():
        assert f"\n{rule.id}  {rule.name} " in done.out
    row = next(line.split() for line in done.out.splitlines() if line.startswith("BRK101 "))
    assert row[-2:] == ["splits", "eager"]


def test_a_version_that_was_not_measured_says_by_which_it_is_judged(breakscan: Run, folder: Path) -> None:
    (folder / "breakscan.toml").write_text('target-torch = "9.9"\n', encoding="utf-8")
    assert f"torch 9.9 (by {measured_versions()[-1]})" in breakscan("rules").out


def test_the_users_own_rules_are_listed(breakscan: Run, folder: Path) -> None:
    (folder / "lint").mkdir()
    (folder / "lint" / "BRK001-our-own-rule.md").write_text(OWN_RULE, encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.breakscan]\nrules = ['lint']\n", encoding="utf-8")
    row = next(line for line in breakscan("rules").out.splitlines() if line.startswith("BRK001"))
    assert row.split()[:3] == ["BRK001", "our-own-rule", "a"]
    assert "No verdicts are recorded" in breakscan("rule", "BRK001").out


def test_the_start_of_an_id_lists_the_rules(breakscan: Run) -> None:
    done = breakscan("rule", "BRK9")
    assert done.status == 0
    assert [line.split()[0] for line in done.out.splitlines()][:3] == ["rule", "9xx", "BRK901"]
    listed = breakscan("rule", "BRK9", "--format", "json").json
    assert {one["rule"][:4] for one in listed} == {"BRK9"}
