"""Facts that hooks read out of torch's objects: code, stacks, compile ids and values, as strings and numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from traceback import FrameSummary
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from breakscan.recording.parsers.guards import with_article
from breakscan.recording.records import Code, StackFrame

OURS = str(Path(__file__).parent.parent.parent) + os.sep
"""The folder of breakscan's own code."""

_COLUMNS = ("colno", "end_colno")
"""Attributes of a frame summary since Python 3.11."""
LONGEST = 80
"""Characters of a value that a report shows."""


def code_of(code: CodeType) -> Code:
    return Code(code.co_filename, code.co_firstlineno, code.co_name)


def stack_of(frames: Iterable[FrameSummary] | None) -> tuple[StackFrame, ...]:
    """The frames of a stack summary, outermost first."""
    return tuple(
        StackFrame(frame.filename, frame.lineno or 1, frame.name, *(getattr(frame, key, None) for key in _COLUMNS))
        for frame in frames or ()
    )


def calling_stack(frame: FrameType | None) -> tuple[StackFrame, ...]:
    """The stack that ends in ``frame``, outermost first, without frames of ours."""
    frames: list[StackFrame] = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(OURS):
            frames.append(StackFrame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(frames))


def stack_above_dynamo() -> tuple[StackFrame, ...]:
    """The stack above the frame that Dynamo was called for, outermost first."""
    frame: FrameType | None = sys._getframe(1)
    above = frame
    while frame is not None:
        if frame.f_code.co_filename.endswith("convert_frame.py"):
            above = frame.f_back
        frame = frame.f_back
    return calling_stack(above)


def current_compile_id() -> str | None:
    """The id of the compile that runs in this thread, such as ``0/1``."""
    from torch._guards import CompileContext

    current = CompileContext.current_compile_id()
    return None if current is None else str(current)


def value_in_words(value: Any) -> str:
    """A value as a report can show it.  Calls no ``__repr__`` of the user's."""
    import torch

    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return _cut(repr(value))
    if isinstance(value, Enum):
        return _cut(f"{type(value).__qualname__}.{value.name}")
    if isinstance(value, torch.dtype | torch.device | torch.Size | torch.memory_format):
        return _cut(str(value))
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, type):
        return f"the class {_cut(value.__qualname__)}"
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        return f"the function {_cut(value.__qualname__)}"
    if isinstance(value, CodeType):
        return f"the code of {_cut(value.co_name)} at line {value.co_firstlineno}"
    if type(value) in (tuple, list, dict, set):
        items = f"{len(value)} item{'' if len(value) == 1 else 's'}" if value else "nothing"
        return f"a {type(value).__name__} of {items}"
    return with_article(_cut(type(value).__qualname__))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
