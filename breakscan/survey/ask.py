"""Questions to the code of users, each answered in a process of its own.

``python -m breakscan.survey.ask QUESTION [ARGUMENT]`` prints the answer as JSON, in the last line.  Questions are
``manifest FILE`` (of Python), ``names MODULE:CALLABLE`` and ``packages``.
"""

from __future__ import annotations

import json
import os
import platform
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from breakscan.survey.model_program import load

VARIABLE = "manifest"
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


def evaluated(path: Path) -> dict[str, Any]:
    """The dictionary ``manifest`` of a file, with its callables as ``MODULE:CALLABLE``.

    Raises whatever the file raises, and ValueError where there is no such dictionary or a value means nothing.
    """
    if not path.stem.isidentifier():
        raise ValueError("give the file a name that can be imported, such as survey.py")
    value = runpy.run_path(str(path), run_name=path.stem).get(VARIABLE)
    if not isinstance(value, dict):
        raise ValueError(f"must assign a dictionary to {VARIABLE}")
    plain: dict[str, Any] = _plain(value, VARIABLE)
    elsewhere = os.path.abspath(path.parent / str(plain.get("folder", "."))) != os.path.abspath(path.parent)
    if elsewhere and f'"{path.stem}:' in json.dumps(plain):
        raise ValueError(f"its callables cannot be imported from folder = {plain['folder']!r}: move them there")
    return plain


def _plain(value: object, place: str) -> Any:
    """A value as JSON can hold it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one, f"{place}[{str(name)!r}]") for name, one in value.items()}
    if callable(value):
        return _named(value, place)
    if isinstance(value, Iterable):
        return [_plain(one, place) for one in value]
    raise ValueError(f"{place} cannot hold a value of type {type(value).__name__}")


def _named(value: object, place: str) -> str:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module is None or not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{place} must be a function or class of a module, which can be imported by its name")
    return f"{module}:{name}"


def _line(error: BaseException, path: Path) -> int | None:
    """The line of a file in which an error came up."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _manifest(path: Path) -> dict[str, Any]:
    sys.path[0] = str(path.parent)
    # What the file prints is not for whoever reads the answer.
    with redirect_stdout(sys.stderr):
        try:
            return {"manifest": evaluated(path)}
        except (Exception, SystemExit) as error:
            said = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            return {"problem": said, "line": _line(error, path)}


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
    if question == "manifest":
        answer = _manifest(Path(arguments[0]))
    elif question == "names":
        answer = [str(name) for name in load(arguments[0])()]
    else:
        answer = [platform.python_version(), _packages()]
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
