"""In which stage of compiling an exception was raised, by its type and by the code that raised it."""

from __future__ import annotations

import os
import traceback

from breakscan.prove.worker.protocol import Failure, Stage

LONGEST = 300
_FOLDERS = {
    "_inductor": Stage.INDUCTOR,
    "_functorch": Stage.AOT_AUTOGRAD,
}


def failure_of(error: BaseException) -> Failure:
    """The stage, and the exception in one line."""
    inner = getattr(error, "inner_exception", None)
    cause = inner if isinstance(inner, BaseException) else error
    return Failure(_stage(error, cause), one_line(cause), _is_out_of_memory(cause))


def one_line(error: BaseException) -> str:
    """``ValueError: its first line``."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__qualname__
    return (f"{name}: {first}" if first else name)[:LONGEST]


def _is_out_of_memory(error: BaseException) -> bool:
    import torch

    return isinstance(error, (MemoryError, torch.OutOfMemoryError))


def _stage(error: BaseException, cause: BaseException) -> Stage:
    bases = {base.__name__ for base in type(error).__mro__ if base.__module__.startswith("torch.")}
    if "InductorError" in bases:
        return Stage.INDUCTOR
    if "BackendCompilerFailed" in bases:
        return _owner(cause) or Stage.BACKEND
    if type(error).__module__ == "torch._dynamo.exc":
        return Stage.DYNAMO
    return Stage.RUN_TIME


def _owner(error: BaseException) -> Stage | None:
    """The stage whose code is innermost, below other code of torch; None where the innermost code is not torch's."""
    import torch

    root = os.path.dirname(torch.__file__) + os.sep
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(root):
            return None
        part = frame.filename.removeprefix(root).partition(os.sep)[0]
        if part in _FOLDERS:
            return _FOLDERS[part]
    return None
