"""What became of each frame that Dynamo was asked to compile and did not.

Wraps ``torch._dynamo.convert_frame.ConvertFrameAssert.__call__``: the only place that
sees generators, the recompile limit and a failing backend, which leave no line in logs or trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

from breakscan.record.hooks.object_facts import code_of, stack_of
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.parsers.frames import exceeds_limit
from breakscan.record.records import FrameEnded


@dataclass(frozen=True, slots=True)
class FrameOutcome:
    """A frame's code, the exception by which it fell to eager, the reason of a silent skip, and what converted it."""

    code: CodeType
    error: Exception | None
    skip_reason: str | None
    converter: Any

    @property
    def raised(self) -> bool:
        """Whether the exception goes on to the user's code, as ``ConvertFrame.__call__`` and ``fullgraph=True`` decide
        it."""
        from torch._dynamo import config

        if self.error is None:
            return False
        if getattr(self.converter, "_one_graph", False):
            return True
        if getattr(getattr(self.converter, "_box", None), "error_on_graph_break", False):
            return True
        return not (is_break(self.error) or config.suppress_errors)


FrameSink = Callable[[FrameOutcome], None]


@contextmanager
def frame_outcomes(sink: FrameSink) -> Iterator[bool]:
    """Records while the block runs.  Yields False where this torch has no such hook: nothing is recorded then."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, frame: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
            try:
                # There is now one more Python frame between Dynamo and the user's.
                result = original(self, frame, *args, skip=skip + 1, **kwargs)
            except Exception as error:
                sink(FrameOutcome(frame.f_code, error, None, self))
                leave_no_trace(error)
                raise
            if getattr(result, "guarded_code", None) is None:
                sink(FrameOutcome(frame.f_code, None, getattr(result, "skip_reason", None), self))
            return result

        return call

    with wrapped(["torch._dynamo.convert_frame:ConvertFrameAssert"], "__call__", wrap) as available:
        yield available


def frame_record(outcome: FrameOutcome) -> FrameEnded:
    """The outcome as the recording keeps it."""
    error = outcome.error
    return FrameEnded(
        frame=code_of(outcome.code),
        error=None if error is None else type(error).__name__,
        text=(outcome.skip_reason or "") if error is None else str(error),
        stack=stack_of(getattr(error, "real_stack", None)),
        raised=outcome.raised,
        limit=is_recompile_limit(error),
    )


def is_recompile_limit(error: Exception | None) -> bool:
    """Whether the exception says that the frame was compiled too often."""
    return error is not None and (exceeds_limit(str(error)) or exceeds_limit(str(error.__cause__)))


def is_break(error: Exception | None) -> bool:
    """Whether the exception is a graph break: what Dynamo cannot trace, rather than what fails."""
    from torch._dynamo.exc import Unsupported

    return isinstance(error, Unsupported)
