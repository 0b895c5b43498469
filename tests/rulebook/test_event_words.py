"""The documentation of rules lists every word that a pattern may use."""

from pathlib import Path

import pytest

from breakscan.rulebook.events import FORMS, OPERANDS, EventKind

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
WORDS = {kind.value for kind in EventKind} | OPERANDS | {form for forms in FORMS.values() for form in forms}


@pytest.mark.parametrize("word", sorted(WORDS))
def test_the_page_explains(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_every_kind_has_its_forms() -> None:
    assert set(FORMS) == set(EventKind)
