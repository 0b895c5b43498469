"""The folder of cached results: the configuration file, the environment, options."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.__main__ import main
from breakscan.rulebook.config import ConfigError, load_settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration that names ``kept``, and a folder below it to work in."""
    (tmp_path / "pyproject.toml").write_text("[tool.breakscan]\ncache-dir = 'kept'\n", encoding="utf-8")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    monkeypatch.delenv("BREAKSCAN_CACHE_DIR", raising=False)
    return tmp_path


def test_by_default_it_lies_beside_the_configuration(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.breakscan]\n", encoding="utf-8")
    assert load_settings(project / "src").cache_folder == project / ".breakscan_cache"


def test_without_a_configuration_it_lies_in_the_working_directory(project: Path) -> None:
    (project / "pyproject.toml").unlink()
    assert load_settings(project).cache_folder == project / "src" / ".breakscan_cache"


def test_the_configuration_names_it_relative_to_itself(project: Path) -> None:
    assert load_settings(project / "src").cache_folder == project / "kept"


def test_the_environment_goes_before_the_configuration(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKSCAN_CACHE_DIR", "here")
    assert load_settings(project / "src").cache_folder == project / "src" / "here"
    monkeypatch.setenv("BREAKSCAN_CACHE_DIR", "")
    assert load_settings(project / "src").cache_folder == project / "kept"


def test_an_option_goes_before_both(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKSCAN_CACHE_DIR", "here")
    assert load_settings(project, cache_dir=Path("../there")).cache_folder == project / "there"
    assert load_settings(project, no_cache=True).cache_folder is None


def test_the_home_folder_can_be_meant(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project / "home"))
    monkeypatch.setenv("USERPROFILE", str(project / "home"))
    (project / "pyproject.toml").write_text("[tool.breakscan]\ncache-dir = '~/kept'\n", encoding="utf-8")
    assert load_settings(project).cache_folder == project / "home" / "kept"


@pytest.mark.parametrize("value", ["3", "''", "true", "['kept']", '"a\\u0000b"'])
def test_what_is_no_path_is_an_error(project: Path, value: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.breakscan]\n\ncache-dir = {value}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pyproject.toml:3: cache-dir: must be the path of a folder"):
        load_settings(project)


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("kept", 'cache-dir = "{project}/kept"'),
        ("src/full", 'cache-dir = "full"  # not used: not writable, or it holds other files'),
    ],
)
def test_config_names_it(project: Path, capsys: pytest.CaptureFixture[str], folder: str, line: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.breakscan]\ncache-dir = {folder!r}\n", encoding="utf-8")
    (project / "src" / "full").mkdir()
    (project / "src" / "full" / "thesis.tex").touch()
    assert main(["config"]) == 0
    assert line.format(project=project) in capsys.readouterr().out.splitlines()
    assert not (project / "kept").exists()
