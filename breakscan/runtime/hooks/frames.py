"""What became of each frame that Dynamo was asked to compile.

Wraps ``torch._dynamo.convert_frame.ConvertFrameAssert.__call__`` (torch 2.11 to 2.15): the only place that
sees generators, the recompile limit and a failing backend, which leave no line in logs or trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

FrameSink = Callable[[CodeType, BaseException | None, str | None], None]
"""Receives a frame's code, the exception by which it fell to eager, and the reason of a silent skip."""


@contextmanager
def frame_outcomes(sink: FrameSink) -> Iterator[bool]:
    """Records while the block runs.  Yields False where this torch has no such hook: nothing is recorded then."""
    try:
        from torch._dynamo import convert_frame

        frames: Any = convert_frame.ConvertFrameAssert
    except (ImportError, AttributeError):
        yield False
        return
    original = frames.__call__

    def call(self: Any, frame: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
        try:
            # One more Python frame now stands between Dynamo and the user's.
            result = original(self, frame, *args, skip=skip + 1, **kwargs)
        except Exception as error:
            sink(frame.f_code, error, None)
            raise
        if getattr(result, "guarded_code", None) is None:
            sink(frame.f_code, None, getattr(result, "skip_reason", None))
        return result

    frames.__call__ = call
    try:
        yield True
    finally:
        frames.__call__ = original
