"""The supported versions of torch are named in one place."""

import re
from pathlib import Path

import pytest

from breakscan.model.torch_versions import PINNED, SUPPORTED, is_too_new, is_too_old, minor_version, supported_range
from tools.sync_torch_versions import RANGE, outdated

ROOT = Path(__file__).parents[1]


def test_every_file_that_names_them_agrees() -> None:
    assert outdated() == []


def test_the_readme_and_the_project_file_name_them() -> None:
    assert RANGE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"torch>={SUPPORTED[0]},<' in project
    assert f'"torch=={PINNED}"' in project


def test_the_pinned_version_is_supported() -> None:
    assert minor_version(PINNED) in SUPPORTED


def test_no_other_file_of_the_package_names_the_range() -> None:
    """A docstring that names it would have to be changed for each new torch."""
    named = re.compile(rf"{re.escape(SUPPORTED[0])}\s+to\s+{re.escape(SUPPORTED[-1])}")
    package = ROOT / "breakscan"
    files = [path for path in package.rglob("*.py") if path.name != "torch_versions.py"]
    assert [path.name for path in files if named.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        ("2.10.1", True, False),
        (f"{SUPPORTED[0]}.0+cpu", False, False),
        (SUPPORTED[-1], False, False),
        ("3.0", False, True),
    ],
)
def test_versions_outside_the_range(version: str, old: bool, new: bool) -> None:
    assert (is_too_old(version), is_too_new(version)) == (old, new)
    assert supported_range() == f"{SUPPORTED[0]} to {SUPPORTED[-1]}"
