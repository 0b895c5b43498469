"""The changelog has the form that tools and people expect, and a change asks for an entry."""

import re
from pathlib import Path

import pytest

from breakscan import __version__
from tools import release_notes
from tools.changelog_entry import has_new_entry, needs_entry
from tools.release_notes import GROUPS, entries_of, sections

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
EXAMPLE = """# Changelog

## [Unreleased]

### Added

- One
  thing.

### Fixed

- Another.

## [0.1.0] - 2026-01-02

### Added

- All.
"""


def test_it_keeps_the_form() -> None:
    assert TEXT.startswith("# Changelog\n")
    headings = re.findall(r"^## .*$", TEXT, re.MULTILINE)
    assert [release_notes.HEADING.fullmatch(heading) is not None for heading in headings] == [True] * len(headings)
    assert next(iter(sections(TEXT))) == "Unreleased"
    groups = re.findall(r"^### (.*)$", TEXT, re.MULTILINE)
    assert groups
    assert set(groups) <= set(GROUPS)
    for version in sections(TEXT):
        entries = entries_of(TEXT, version)
        assert len(entries) == len(set(entries))
        assert all(entry.endswith(".") for entry in entries)


def test_sections_and_entries_are_read() -> None:
    assert entries_of(EXAMPLE, "Unreleased") == ["One thing.", "Another."]
    assert entries_of(EXAMPLE, "0.1.0") == ["All."]
    assert entries_of(EXAMPLE, "0.2.0") == []
    assert entries_of("# Changelog\n\n## 0.1.0 (unreleased)\n- One.\n", "Unreleased") == []
    assert sections(EXAMPLE)["0.1.0"] == ("2026-01-02", "### Added\n\n- All.")


@pytest.mark.parametrize(
    ("changed", "needed"),
    [
        (["breakscan/cli/check.py"], True),
        (["tests/cli/test_check.py", "docs/check.md"], False),
        (["rules/BRK101-branch-on-tensor.md"], True),
        (["rules/ledger/2.13.json"], False),
        (["action.yml"], True),
        ([], False),
    ],
)
def test_what_users_see_needs_an_entry(changed: list[str], needed: bool) -> None:
    assert needs_entry(changed) is needed


def test_a_new_entry_is_one_under_unreleased() -> None:
    assert has_new_entry(EXAMPLE, EXAMPLE.replace("- Another.", "- Another.\n- New."))
    assert has_new_entry(EXAMPLE, EXAMPLE.replace("- Another.", "- Another, changed."))
    assert not has_new_entry(EXAMPLE, EXAMPLE.replace("- All.", "- All.\n- New."))
    assert not has_new_entry(EXAMPLE, EXAMPLE.replace("thing.", "thing.\n"))


def test_the_notes_of_a_release_need_its_date_and_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(EXAMPLE.replace("0.1.0", __version__), encoding="utf-8")
    monkeypatch.setattr(release_notes, "FILE", path)
    assert release_notes.main(f"v{__version__}") == 0
    assert capsys.readouterr().out == "### Added\n\n- All.\n"
    assert release_notes.main("v99.0") == 1
    path.write_text(EXAMPLE.replace("[0.1.0] - 2026-01-02", f"[{__version__}]"), encoding="utf-8")
    assert release_notes.main(f"v{__version__}") == 1
