"""The recordings of the last runs, which ``breakscan report --last`` reports."""

import os
import time
from pathlib import Path

import pytest
from programs import Folder

from breakscan.recording import session
from breakscan.recording.session import MOST_DAYS, keep_recent, last_run

PROGRAM = """import torch

@torch.compile(backend="eager")
def f(x):
    print("")
    return x + 1

f(torch.ones(3))
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BREAKSCAN_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def recording(tmp_path: Path, text: str = "") -> Path:
    folder = tmp_path / "recording"
    folder.mkdir()
    (folder / "run.json").write_text(text, encoding="utf-8")
    return folder


def test_old_ones_are_deleted(tmp_path: Path, runs: Path) -> None:
    keep_recent(recording(tmp_path))
    old = last_run()
    before = time.time() - (MOST_DAYS + 1) * 86_400
    os.utime(old, (before, before))
    keep_recent(recording(tmp_path))
    assert runs.stat().st_mode & 0o077 == 0
    assert list(runs.iterdir()) == [last_run()]
    assert not old.exists()


def test_together_they_have_a_limit(tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MOST_BYTES", 25)
    for number in range(4):
        keep_recent(recording(tmp_path, f"{number:010}"))
    assert len(list(runs.iterdir())) == 2
    keep_recent(recording(tmp_path, "x" * 26))
    assert (last_run() / "run.json").read_text(encoding="utf-8") == f"{3:010}"
    assert not (tmp_path / "recording").exists()


@pytest.mark.torch
def test_a_run_is_reported_again(folder: Folder, runs: Path) -> None:
    folder.write("script.py", PROGRAM)
    first = folder.explain("script.py")
    assert "BRK401" in first.report
    again = folder.python("-m", "breakscan", "report", "--last")
    assert again.status == 0
    assert again.out.decode() == first.report
    (folder.path / "script.py").write_text("changed\n", encoding="utf-8")
    changed = folder.python("-m", "breakscan", "report", "--last").out.decode()
    assert 'print("")' in changed
    folder.explain("--save", "kept", "script.py")
    assert len(list(runs.iterdir())) == 1
