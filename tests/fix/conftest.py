"""Files to repair, and their settings."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from breakscan.rulebook.config import Settings, load_settings

Written = Callable[[Mapping[str, str]], tuple[list[Path], Settings]]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes files, by their names, into the working directory; gives their paths and settings."""

    def write(files: Mapping[str, str]) -> tuple[list[Path], Settings]:
        monkeypatch.chdir(tmp_path)
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return [tmp_path / name for name in files], load_settings(tmp_path, None, target_torch="2.13", no_cache=True)

    return write
