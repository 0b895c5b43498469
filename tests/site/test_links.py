"""Links that leave ``docs/`` lead to pages of the site, or to the repository."""

import pytest

from tools.site.links import redirected

PAGES = {"README.md": "index.md", "docs/fix.md": "fix.md", "rules/BRK101-a.md": "rules/BRK101-a.md"}


@pytest.mark.parametrize(
    ("source", "page", "text", "expected"),
    [
        ("docs/fix.md", "fix.md", "[a](../rules/BRK101-a.md#why)", "[a](rules/BRK101-a.md#why)"),
        ("docs/tutorials/b.md", "tutorials/b.md", "[a](../fix.md)", "[a](../fix.md)"),
        ("README.md", "index.md", "[`fix`](docs/fix.md)", "[`fix`](fix.md)"),
        ("benchmarks/README.md", "benchmarks/index.md", "[a](../docs/fix.md#x)", "[a](../fix.md#x)"),
        ("docs/fix.md", "fix.md", "[a](#x), [b](https://c.d)", "[a](#x), [b](https://c.d)"),
        ("docs/fix.md", "fix.md", "```\n[a](../README.md)\n```", "```\n[a](../README.md)\n```"),
        ("docs/fix.md", "fix.md", "[a](../templates/b.yml)", "a"),
    ],
)
def test_links_are_redirected(source: str, page: str, text: str, expected: str) -> None:
    assert redirected(text, source, page, PAGES, None) == expected


def test_a_file_that_is_no_page_is_shown_in_the_repository() -> None:
    text = redirected("[a](../templates/b.yml)", "docs/fix.md", "fix.md", PAGES, "https://host/owner/name/")
    assert text == "[a](https://host/owner/name/blob/HEAD/templates/b.yml)"
