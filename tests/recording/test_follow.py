"""A run that is reported while it goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import Folder, environment

PROGRAM = """import pathlib, time, torch

@torch.compile(backend="eager")
def step(x):
    y = x + 1
    print("", end="")
    return y.sin()

step(torch.ones(3))
while not pathlib.Path("go on").exists():
    time.sleep(0.1)
step(torch.ones(4))
"""


@pytest.mark.torch
def test_what_happens_is_told_as_it_happens(folder: Folder) -> None:
    pytest.importorskip("torch")
    folder.write("script.py", PROGRAM)
    explain = [sys.executable, "-m", "breakscan", "explain", "--save", "kept", "script.py"]
    recording = subprocess.Popen(explain, cwd=folder.path, env=environment(), stderr=subprocess.DEVNULL)
    try:
        wait_for(folder.path / "kept" / "run.json")
        command = [sys.executable, "-m", "breakscan", "report", "--follow", "kept"]
        with subprocess.Popen(
            command, cwd=folder.path, env=environment(), stdout=subprocess.PIPE, text=True
        ) as following:
            assert following.stdout is not None
            told = [following.stdout.readline() for _ in range(3)]
            (folder.path / "go on").touch()
            rest = following.stdout.read()
    finally:
        recording.terminate()
        recording.wait()
    assert following.returncode == 0
    # A break is told before the compilation that meets it, if the recording is read between the two.
    assert {" ".join(line.split()[2:6]) for line in told if "compiled" in line} == {
        "compiled step at script.py:3",
        "compiled the rest of",
    }
    assert "splits the graph at script.py:6 in step: BRK401 print" in map(str.strip, told)
    news, _, report = rest.partition("───")
    assert "again: x.shape[0] was 3, then 4" in news
    assert "1 site breaks the graph" in report
    done = folder.python("-m", "breakscan", "report", "--follow", "--format", "json", "kept")
    assert json.loads(done.out)["summary"]["break_sites"] == 1
    assert b"compiled step at script.py:3" in done.err


def wait_for(path: Path) -> None:
    for _ in range(300):
        if path.exists():
            return
        time.sleep(0.1)
    raise TimeoutError(path)
