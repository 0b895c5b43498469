"""``docs/torch-versions.md`` says what the verdict ledgers say."""

from itertools import pairwise

from breakscan.model.torch_versions import SUPPORTED
from tools.generate_versions_page import PAGE, page


def test_the_page_is_what_the_tool_makes() -> None:
    """If it fails: ``python -m tools.generate_versions_page``."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == page()
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    expected = [*pairwise(SUPPORTED), (SUPPORTED[-1], f"{SUPPORTED[-1]}+nested")]
    assert heads == [f"## torch {before} → {after}" for before, after in expected]
