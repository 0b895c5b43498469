"""A working directory, and breakscan run in it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from breakscan.__main__ import main

BREAKS = """import torch


class Block(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if x.any():
            x = x + 1
        return x
"""
CLEAN = BREAKS.replace("x.any()", "x.shape[0] > 1")


@dataclass
class Done:
    """How a run of the command line ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "model.py").write_text(BREAKS, encoding="utf-8")
    (tmp_path / "clean.py").write_text(CLEAN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def breakscan(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        status = main(arguments)
        return Done(status, *capfd.readouterr())

    return run


@pytest.fixture
def process(folder: Path) -> Run:
    """Runs ``python -m breakscan`` in a separate process."""

    def run(*arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "breakscan", *arguments],
            input=stdin,
            capture_output=True,
            cwd=folder,
            env=os.environ | (env or {}),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
