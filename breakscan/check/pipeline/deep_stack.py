"""Reserves space for deep recursion.

From 3.11 on, CPython keeps the frames of Python functions in chunks of 16 KiB, and maps and unmaps one whenever calls
cross the end of the last (``push_chunk`` in ``Python/pystate.c``). An interpreter of expressions crosses it all the
time, which took a tenth of its time. A frame that asks for much space gets a chunk with space for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

SLOTS = 20_000
"""The space that the frame asks for, in pointers; the chunk is the next power of two: the rest is for the others."""

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def with_deep_stack(function: Callable[[_Given], _Made], argument: _Given) -> _Made:
    """Calls a function where calls may go deep."""
    return function(argument)


with_deep_stack.__code__ = with_deep_stack.__code__.replace(co_stacksize=SLOTS)
