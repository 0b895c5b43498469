"""A Python that runs no breakscan: it answers a survey at once, so that what a survey costs by itself shows."""

from __future__ import annotations

import json
from pathlib import Path

_SCRIPT = """#!/bin/sh
case "$*" in
*list_packages*) echo '["3.11.0", {{"torch": "2.13.0", "breakscan": "stand-in"}}]'; exit 0;;
esac
{pause}
while [ $# -gt 0 ]; do
    if [ "$1" = --output ]; then cp {report} "$2"; fi
    shift
done
"""
_SUMMARY = {"graphs": 2, "entries": 1, "ops": 9, "compile_seconds": 0.5}


def stand_in(folder: Path, *, seconds: float = 0.0) -> Path:
    """The path of such a Python; it takes ``seconds`` to answer."""
    report = folder / "report.json"
    told = {"summary": _SUMMARY, "breaks": [], "frames": [], "recompiles": [], "script": {"seconds": 0.1}}
    report.write_text(json.dumps({**told, "traced": {}, "filler": "x" * 1000}), encoding="utf-8")
    python = folder / "python"
    pause = f"sleep {seconds}" if seconds else ""
    python.write_text(_SCRIPT.format(report=report, pause=pause), encoding="utf-8")
    python.chmod(0o755)
    return python


def manifest(folder: Path, units: int, python: Path) -> Path:
    """A manifest of as many programs."""
    programs = "".join(
        f'[[program]]\nname = "unit {number}"\ncommand = ["a.py", "{number}"]\n' for number in range(units)
    )
    path = folder / "survey.toml"
    path.write_text(f'pythons = ["{python}"]\nsources = ["none"]\nseconds = 60\n{programs}', encoding="utf-8")
    return path
