"""The time of graphs, of the gaps after them and of the rest of calls on a CUDA device: measured on a few runs, by
events in its queue.

Nothing here waits for the device.  Events are read when they are done, and none is recorded while a CUDA graph is
being captured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from breakscan.recording.hooks.run_tallies import CallTally, GraphTally, Threads, ThreadState

SAMPLED = 32
"""Runs of a graph that are timed."""
_WARM_UP = 3
"""Runs of a graph, and calls, before those: CUDA graphs are captured in them."""


@dataclass(slots=True)
class TimedCall:
    """A call that is timed on ``device``: the event at its start, and those around the parts of it that are timed
    for themselves: graphs, and what lies after a graph that a break ended."""

    device: int
    began: Any
    parts: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pending:
    """Spans between two events each, and what gets their seconds once the device is done with all of them."""

    spans: list[tuple[Any, Any]]
    add: Callable[[list[float]], None]


class DeviceTime:
    """Takes the time of a device around runs of graphs, and around calls.  Graphs without an input on CUDA never come
    here.

    Where CUDA refuses, nothing more is timed on the device.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._works = True
        self._pending: list[_Pending] = []
        self._unusable: list[Any] = []

    def timed(self, run: Callable[..., Any], tally: GraphTally, device: Any) -> Callable[..., Any]:
        """Does what ``run`` does, and takes the time of the device around the first steady runs."""
        threads = self._threads
        left = SAMPLED

        def on_device(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            state = threads.state
            sampled = left and state.depth and state.steady and tally.runs >= _WARM_UP
            timed = sampled or state.device_call is not None
            began = self._now(device) if timed or state.device_gap is not None else None
            self._end_gap(state, state.last, began)
            try:
                result = run(*args, **kwargs)
            except BaseException as error:
                # The traceback of the user's program does not show this frame.
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            if timed and began is not None and state.steady:
                ended = self._now(device)
                if ended is not None:
                    if state.device_call is not None:
                        state.device_call.parts.append((began, ended))
                    if sampled:
                        left -= 1
                        self._pending.append(_Pending([(began, ended)], tally.add_on_device))
                    state.device_gap = (tally, device, ended, sampled)
            return result

        return on_device

    def begin_call(self, state: ThreadState, tally: CallTally) -> None:
        """An outermost call begins.  Where CUDA is not in use after the first calls, none of them is timed."""
        if tally.calls < _WARM_UP:
            return
        device = self._current_device()
        if device is None:
            tally.to_time = 0
            return
        began = self._now(device)
        if began is not None:
            state.device_call = TimedCall(device, began)

    def end_call(self, state: ThreadState, tally: CallTally) -> None:
        """The call is over, and nothing was compiled in it."""
        call, state.device_call = state.device_call, None
        ended = self._now(call.device)
        if ended is not None:
            tally.to_time -= 1
            self._pending.append(_Pending([(call.began, ended), *call.parts], tally.add_on_device))

    def close_gap(self, state: ThreadState, last: GraphTally | None) -> None:
        """The call is over, and with it the gap after its last graph."""
        # Another thread, in which something is compiled, may end the gap meanwhile.
        gap = state.device_gap
        if gap is not None:
            self._end_gap(state, last, self._now(gap[1]))

    def read(self) -> None:
        """Adds up what the device is done with."""
        if not self._pending or not self._may_ask():
            return
        pending, self._pending = self._pending, []
        try:
            for one in pending:
                if all(event.query() for span in one.spans for event in span):
                    one.add([began.elapsed_time(ended) / 1e3 for began, ended in one.spans])
                else:
                    self._pending.append(one)
        except Exception:
            self._works = False

    def forked(self) -> None:
        """A forked process cannot use CUDA: not even to give events back."""
        state = self._threads.state
        self._works = False
        self._unusable += [self._pending, state.device_gap, state.device_call]
        self._pending = []

    def _current_device(self) -> int | None:
        """The CUDA device in use; None where there is none."""
        import torch

        try:
            in_use = self._works and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
            return torch.cuda.current_device() if in_use else None
        except Exception:
            self._works = False
            return None

    def _now(self, device: Any) -> Any:
        """An event in the queue of the device; None where there can be none."""
        if not self._may_ask():
            return None
        import torch

        try:
            event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record(torch.cuda.current_stream(device))
        except Exception:
            self._works = False
            return None
        return event

    def _may_ask(self) -> bool:
        import torch

        try:
            return self._works and not torch.cuda.is_current_stream_capturing()
        except Exception:
            self._works = False
            return False

    def _end_gap(self, state: ThreadState, last: GraphTally | None, now: Any) -> None:
        gap, state.device_gap = state.device_gap, None
        if gap is None:
            return
        tally: GraphTally
        tally, _, ended, sampled = gap
        # Between them, a graph may have run on another device.
        if now is not None and last is tally:
            if tally.broke and state.device_call is not None:
                state.device_call.parts.append((ended, now))
            if sampled:
                self._pending.append(_Pending([(ended, now)], tally.device_gaps.extend))
