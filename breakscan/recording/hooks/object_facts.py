"""Facts that hooks read out of torch's objects: code, stacks, compile ids and values, as strings and numbers."""

from __future__ import annotations

import dis
import itertools
import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from traceback import FrameSummary
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from breakscan.recording.parsers.guards import with_article
from breakscan.recording.records import Code, StackFrame

OURS = str(Path(__file__).parent.parent.parent) + os.sep
"""The folder of breakscan's own code."""

_COLUMNS = ("colno", "end_colno")
"""Attributes of a frame summary since Python 3.11."""
LONGEST = 80
"""Characters of a value that a report shows."""
PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MOST_ITEMS = 8
"""Items of a tuple that a report shows."""
_STORES = {"STORE_FAST": 1, "STORE_DEREF": 1, "STORE_GLOBAL": 1, "STORE_FAST_STORE_FAST": 2, "STORE_FAST_LOAD_FAST": 1}
"""Instructions that store in variables: in the first of those that they name (Python 3.13), or in both."""
_WITHOUT_NUMBER = (partial, FunctionType, MethodType, BuiltinFunctionType, ModuleType, CodeType, type)


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


def frame_above_dynamo() -> FrameType | None:
    """The frame that called the one that Dynamo was called for."""
    frame: FrameType | None = sys._getframe(1)
    above = frame
    while frame is not None:
        if frame.f_code.co_filename.endswith("convert_frame.py"):
            above = frame.f_back
        frame = frame.f_back
    return above


def stack_above_dynamo() -> tuple[StackFrame, ...]:
    """The stack above the frame that Dynamo was called for, outermost first."""
    return calling_stack(frame_above_dynamo())


def current_compile_id() -> str | None:
    """The id of the compile that runs in this thread, such as ``0/1``."""
    from torch._guards import CompileContext

    current = CompileContext.current_compile_id()
    return None if current is None else str(current)


def value_in_words(value: Any) -> str:
    """A value as a report can show it.  Calls no ``__repr__`` of the user's."""
    import torch

    if type(value) in PLAIN:
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
    if type(value) in (tuple, list) and 0 < len(value) <= _MOST_ITEMS and all(type(one) in PLAIN for one in value):
        return _cut(repr(value))
    if type(value) in (tuple, list, dict, set):
        items = f"{len(value)} item{'' if len(value) == 1 else 's'}" if value else "nothing"
        return f"a {type(value).__name__} of {items}"
    return with_article(_cut(type(value).__qualname__))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


class ObjectNumbers:
    """Numbers for objects that keep a state: modules, parameters, those of classes of the program.  None is kept
    alive."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = itertools.count()

    def of(self, names: Mapping[str, Any] | None) -> dict[str, int]:
        """The numbers of those among variables."""
        return {name: number for name, value in (names or {}).items() if (number := self._of(value)) is not None}

    def _of(self, value: Any) -> int | None:
        import torch

        if isinstance(value, _WITHOUT_NUMBER) or (isinstance(value, torch.Tensor) and type(value) is torch.Tensor):
            return None
        held = self._numbers.get(id(value))
        if held is None or held[0]() is not value:
            try:
                held = weakref.ref(value), next(self._next)
            except TypeError:
                return None
            self._numbers[id(value)] = held
        return held[1]


def names_stored_after_break(code: CodeType) -> tuple[str, ...]:
    """The variables that get the value of the call at which a graph broke, in the code for the rest of the function:
    several, where it is unpacked."""
    if "___stack0" not in code.co_varnames or "___stack1" in code.co_varnames:
        return ()
    instructions = iter(dis.get_instructions(code))
    target = next((one.argval for one in instructions if one.opname == "JUMP_FORWARD"), None)
    found = next((one for one in instructions if one.offset == target), None)
    parts = found.argval if found is not None and found.opname == "UNPACK_SEQUENCE" else 1
    names: list[str] = []
    for one in itertools.chain([] if found is None or parts > 1 else [found], instructions):
        stored = _STORES.get(one.opname)
        if stored is None or len(names) >= parts:
            break
        names += (one.argval if type(one.argval) is tuple else (one.argval,))[:stored]
    return tuple(names) if len(names) == parts else ()
