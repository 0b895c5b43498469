"""Programs that break the graph at a test, for tests of what the captured calls do not show."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from briefly import BRIEFLY

PROGRAM = """\
import time

import torch


def costly(graph, inputs):
    def run(*values):
        time.sleep(0.005)
        return graph(*values)

    return run


def f(x: torch.Tensor):
    y = x + 1
    if y.mean() > 2:
        y = SIDE
    else:
        y = y * 3
    return y


g = torch.compile(f, backend=costly)
for step in range(5):
    g(torch.full((8,), VALUE, requires_grad=True).clone()).sum().backward()
"""
TEST = "    if y.mean() > 2:\n"
"""Line 16."""


def program(value: str, side: str = "y * 2") -> str:
    """A program that calls with ``value``, which may depend on ``step``; ``side`` is what one side computes."""
    return PROGRAM.replace("VALUE", value).replace("SIDE", side)


def verified(folder: Path, text: str, valid: Callable[..., Any], *words: str) -> dict[str, Any]:
    """The JSON of ``verify`` for a program, which is written to ``program.py``."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    command = [*BRIEFLY, "verify", "--format", "json", *words, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.stdout, done.stderr
    told: dict[str, Any] = valid(done.stdout, "verify")
    return told


def write_patch(folder: Path, before: str, after: str) -> str:
    """Writes the change of a program as a patch, and returns its name."""
    names = "a/program.py", "b/program.py"
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), *names)
    (folder / "it.patch").write_text("".join(lines), encoding="utf-8")
    return "it.patch"


def text_of(folder: Path) -> str:
    """What the program's file holds now."""
    return (folder / "program.py").read_text(encoding="utf-8")
