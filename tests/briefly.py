"""``breakscan`` as a process, which times for at most two seconds where a test does not check times."""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from breakscan.__main__ import main
from breakscan.prove import faster as measure

BRIEFLY = (sys.executable, __file__)
LONGEST = 2.0
_interleave = measure.interleave


def interleave(
    blocks: Mapping[str, measure.Block],
    seconds: Mapping[str, float],
    longest: float = LONGEST,
    decided: Callable[[measure.Rounds], bool] = lambda _: False,
) -> measure.Rounds:
    return _interleave(blocks, seconds, min(longest, LONGEST), decided)


def ran(folder: Path, *words: str, status: int = 0, brief: bool = False) -> subprocess.CompletedProcess[str]:
    """The command in a folder, which ends with this status."""
    command = [*(BRIEFLY if brief else (sys.executable, "-m", "breakscan")), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def verified(folder: Path, text: str, valid: Callable[..., Any], *words: str, status: int | None = None) -> Any:
    """The JSON of ``verify`` for a program, which is written to ``program.py``."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    command = [*BRIEFLY, "verify", "--format", "json", *words, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.stdout, done.stderr
    assert status in (None, done.returncode), done.stdout + done.stderr
    return valid(done.stdout, "verify")


def write_patch(folder: Path, before: str, after: str) -> str:
    """Writes the change of ``program.py`` as a patch, and returns its name."""
    names = "a/program.py", "b/program.py"
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), *names)
    (folder / "it.patch").write_text("".join(lines), encoding="utf-8")
    return "it.patch"


if __name__ == "__main__":
    measure.interleave = interleave
    sys.exit(main(sys.argv[1:]))
