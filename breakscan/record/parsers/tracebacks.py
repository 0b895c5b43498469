"""Reads tracebacks that torch keeps as text."""

from __future__ import annotations

import re

from breakscan.record.records.source import StackFrame

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.M)


def frames_of(text: str) -> list[StackFrame]:
    """The frames of a traceback, outermost first."""
    return [StackFrame(path, int(line), name) for path, line, name in _FRAME.findall(text)]


def innermost_frame(text: str) -> StackFrame | None:
    """The frame that a traceback ends in."""
    frames = frames_of(text)
    return frames[-1] if frames else None
