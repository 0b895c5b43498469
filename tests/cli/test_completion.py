"""``breakscan completion``, in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

BASH = """
eval "$(breakscan completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_breakscan_completion breakscan
echo "${COMPREPLY[@]}"
"""
CASES = [
    (("che",), ["check"]),
    (("check", "--fail-o"), ["--fail-on"]),
    (("check", "--format", "rd"), ["rdjson"]),
    (("rule", "branch-on-te"), ["branch-on-tensor"]),
    (("rule", "brk10"), [f"BRK10{number}" for number in range(1, 10)]),
]


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``breakscan`` is this one."""
    script = tmp_path / "breakscan"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m breakscan "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.process
@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash(path: dict[str, str], typed: tuple[str, ...], offered: list[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    done = subprocess.run(["bash", "-c", BASH, "bash", "breakscan", *typed], env=path, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.process
@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_fish(path: dict[str, str], typed: tuple[str, ...], offered: list[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    script = f'breakscan completion fish | source; complete -C "breakscan {" ".join(typed)}"'
    done = subprocess.run(["fish", "-c", script], env=path, capture_output=True, text=True)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == offered


def test_the_shell_of_the_environment(breakscan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert breakscan("completion").out == breakscan("completion", "zsh").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert (breakscan("completion").status, breakscan("completion", "tcsh").status) == (2, 2)
