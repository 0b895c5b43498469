"""In which stage of compiling an exception came up: by its type, and by whose code raised it."""

from __future__ import annotations

import os
import traceback

RUN_TIME = "run time"
LONGEST = 300
_FOLDERS = {
    "_inductor": "Inductor",
    "_functorch": "AOTAutograd",
}


def failure_of(error: BaseException) -> tuple[str, str]:
    """``Dynamo``, ``AOTAutograd``, ``Inductor``, ``the backend`` or ``run time``; and the exception in one line."""
    inner = getattr(error, "inner_exception", None)
    cause = inner if isinstance(inner, BaseException) else error
    return _stage(error, cause), one_line(cause)


def one_line(error: BaseException) -> str:
    """``ValueError: its first line``."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__qualname__
    return (f"{name}: {first}" if first else name)[:LONGEST]


def _stage(error: BaseException, cause: BaseException) -> str:
    bases = {base.__name__ for base in type(error).__mro__ if base.__module__.startswith("torch.")}
    if "InductorError" in bases:
        return "Inductor"
    if "BackendCompilerFailed" in bases:
        return _owner(cause) or "the backend"
    if type(error).__module__ == "torch._dynamo.exc":
        return "Dynamo"
    return RUN_TIME


def _owner(error: BaseException) -> str | None:
    """Whose code is innermost, below whatever else of torch it calls; None where that is no part of torch."""
    import torch

    root = os.path.dirname(torch.__file__) + os.sep
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(root):
            return None
        part = frame.filename.removeprefix(root).partition(os.sep)[0]
        if part in _FOLDERS:
            return _FOLDERS[part]
    return None
