"""Prints what a manifest in Python says: ``python -m breakscan.survey.evaluate_manifest FILE``.

The file runs as the module that it is, so that its callables can be named.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

VARIABLE = "manifest"


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


def main(path: Path) -> None:
    sys.path[0] = str(path.parent)
    answer: dict[str, Any]
    # What the file prints is not for whoever reads the answer.
    with redirect_stdout(sys.stderr):
        try:
            answer = {"manifest": evaluated(path)}
        except (Exception, SystemExit) as error:
            said = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            answer = {"problem": said, "line": _line(error, path)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
