"""``docs/coverage.md`` says of every break id what the rules say."""

from __future__ import annotations

import re
from pathlib import Path

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
