"""The folder of cached results: the configuration file, the environment, options."""

from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    ("configuration", "environment", "options", "folder"),
    [
        ("", None, {}, ".breakscan_cache"),
        (None, None, {}, "src/.breakscan_cache"),
        ("cache-dir = 'kept'", None, {}, "kept"),
        ("cache-dir = '~/kept'", None, {}, "home/kept"),
        ("cache-dir = 'kept'", "here", {}, "src/here"),
        ("cache-dir = 'kept'", "", {}, "kept"),
        ("cache-dir = 'kept'", "here", {"cache_dir": Path("../there")}, "there"),
        ("cache-dir = 'kept'", "here", {"no_cache": True}, None),
    ],
)
def test_options_go_before_the_environment_and_that_before_the_configuration(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    configuration: str | None,
    environment: str | None,
    options: dict[str, Any],
    folder: str | None,
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(project / "home"))
    (project / "pyproject.toml").write_text(f"[tool.breakscan]\n{configuration}\n", encoding="utf-8")
    if configuration is None:
        (project / "pyproject.toml").unlink()
    if environment is not None:
        monkeypatch.setenv("BREAKSCAN_CACHE_DIR", environment)
    assert load_settings(project / "src", **options).cache_folder == (project / folder if folder else None)


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
