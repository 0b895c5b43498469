"""Which lines of certain files run while a block does."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def executed_lines(paths: Collection[str]) -> Iterator[dict[str, set[int]]]:
    """Yields the numbers of the lines, by path as given, that this thread executes until the block ends."""
    wanted = {os.path.realpath(path): path for path in paths}
    names: dict[str, str | None] = {}
    found: dict[str, set[int]] = {path: set() for path in paths}

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in names:
            names[name] = wanted.get(os.path.realpath(name))
        path = names[name]
        if path is None:
            return None
        lines = found[path]

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            lines.add(frame.f_lineno)
            return on_line

        lines.add(frame.f_lineno)
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield found
    finally:
        sys.settrace(before)
