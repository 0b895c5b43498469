"""``breakscan --bug-report``: what an issue needs, and nothing of the user's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breakscan import __version__

pytestmark = pytest.mark.process


def test_it_has_versions_and_settings_and_is_markdown(breakscan: Callable[..., Any], folder: Path) -> None:
    (folder / "breakscan.toml").write_text('select = ["BRK1"]\nexclude = ["generated"]\n', encoding="utf-8")
    done = breakscan("--bug-report")
    assert done.status == 0
    assert f"| breakscan | {__version__} |" in done.out
    assert f"| Python | {sys.version.split()[0]} " in done.out
    assert "| libcst | " in done.out
    assert "| torch | " in done.out
    assert done.out.count("````") == 2
    assert 'select = ["BRK1"]  # breakscan.toml' in done.out
    assert 'exclude = ["generated"]' in done.out


def test_it_has_no_source_no_values_of_the_environment_and_no_names_of_folders(
    breakscan: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder / "jane"
    project = home / "project"
    project.mkdir(parents=True)
    (project / "model.py").write_text("SOURCE = 1\n", encoding="utf-8")
    (project / "breakscan.toml").write_text(f'extend = "{home}/missing.toml"\n', encoding="utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TORCH_TOKEN", "a-secret-value")
    monkeypatch.setenv("PASSWORD", "another-secret")
    out = breakscan("--bug-report").out
    assert "TORCH_TOKEN" in out
    assert "missing.toml" in out  # what is wrong with the configuration
    for word in ("secret", "PASSWORD", "SOURCE", "jane", str(folder)):
        assert word not in out, word


def test_an_error_of_breakscan_asks_for_it(breakscan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("breakscan.cli.check.discover", fails)
    done = breakscan("check")
    assert done.status == 2
    assert "'breakscan --bug-report'" in done.err
