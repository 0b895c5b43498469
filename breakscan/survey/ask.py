"""Questions to the code of users, each answered in a process of its own.

``python -m breakscan.survey.ask QUESTION [ARGUMENT]`` prints the answer as JSON, in the last line.  Questions are
``names MODULE:CALLABLE`` and ``packages``.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from breakscan.survey.model_program import load

PATIENCE = 600.0
"""Seconds that an answer may take."""


class Unanswered(Exception):
    """A question has no answer: the last line on standard error, or the reason.  ``status`` is the exit status, None
    where the Python did not run."""

    def __init__(self, status: int | None, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def ask(python: str, *question: str, folder: Path | None = None) -> Any:
    """Return the answer of a Python.  Raises Unanswered."""
    command = [python, "-m", "breakscan.survey.ask", *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unanswered(None, str(error)) from error
    if done.returncode:
        raise Unanswered(done.returncode, done.stderr.strip().rpartition("\n")[2])
    try:
        return json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError as error:
        raise Unanswered(0, str(error)) from error


def _packages() -> dict[str, str]:
    """The versions of the installed packages, by their names in small letters; of one that is there twice, the first,
    which is imported."""
    versions: dict[str, str] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            versions.setdefault(name.lower(), distribution.version)
    return versions


def main(question: str, *arguments: str) -> None:
    answer: Any
    if question == "names":
        answer = [str(name) for name in load(arguments[0])()]
    else:
        answer = [platform.python_version(), _packages()]
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
