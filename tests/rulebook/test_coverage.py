"""``docs/coverage.md`` agrees with the rules and with torch's registry of graph breaks."""

import importlib.metadata
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from breakscan.rulebook.library import load_library

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
ROW = re.compile(r"^\| (GB\d{4}) \| (.+?) \| (.+?) \| (check, explain|explain|—) \| (.*?) ?\|$", re.MULTILINE)


def rows() -> dict[str, tuple[str, str, str]]:
    return {match[1]: (match[3], match[4], match[5]) for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_every_row_names_rules_that_there_are_or_a_reason() -> None:
    library = load_library(())
    found = rows()
    assert len(found) == PAGE.read_text(encoding="utf-8").count("\n| GB")
    for gb, (rules, seen_by, reason) in found.items():
        named = re.findall(r"BRK\d{3}", rules)
        assert [rule for rule in named if rule not in library] == [], gb
        assert bool(named) is (seen_by != "—"), gb
        assert reason or seen_by == "check, explain", gb


def test_an_id_that_a_rule_explains_is_not_said_to_have_none() -> None:
    explained = {gb for rule in load_library(()) for pattern in rule.recorded for gb in pattern.gb}
    without = {gb for gb, (_, seen_by, _) in rows().items() if seen_by == "—"}
    assert explained & without == set()


def test_every_id_of_a_rule_has_a_row() -> None:
    found = rows()
    for rule in load_library(()):
        for gb in rule.gb:
            assert gb in found, f"{rule.id} explains {gb}, which has no row"


def test_the_counts_of_the_page_are_those_of_its_first_table() -> None:
    first, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## Other breaks that a rule explains\n")
    seen_by = Counter(match[4] for match in ROW.finditer(first))
    assert f"\n{seen_by.total()} ids can be seen in source code" in first
    both, explain, none = seen_by["check, explain"], seen_by["explain"], seen_by["—"]
    assert f"\n{both} are seen by `check` and `explain`, {explain} only by `explain`, and {none} have no rule." in first


@pytest.mark.torch
def test_every_id_of_torchs_registry_is_on_the_page() -> None:
    """For the version of torch that the page names: other versions have other ids."""
    text = PAGE.read_text(encoding="utf-8")
    named = re.search(r"(\d+) of them in torch (\d+\.\d+)\)", text)
    assert named
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs torch")
    if not importlib.metadata.version("torch").startswith(f"{named[2]}."):
        pytest.skip(f"the page lists the ids of torch {named[2]}")
    registry = Path(found.submodule_search_locations[0], "_dynamo", "graph_break_registry.json")
    known = set(json.loads(registry.read_text(encoding="utf-8")))
    _, _, others = text.partition("\n## Other breaks\n")
    without_row = set(re.findall(r"GB\d{4}", others))
    assert len(known) == int(named[1])
    assert known - set(rows()) == without_row
    assert others.startswith(f"The other {len(without_row)} ids of torch {named[2]} ")
