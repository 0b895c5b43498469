"""How long graphs, and the gaps after them, take on a CUDA device: measured on a few runs, by events in its queue.

Nothing here waits for the device.  Events are read when they are done, and none is recorded while a CUDA graph is
being captured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from breakscan.runtime.hooks.run_tallies import GraphTally, Threads, ThreadState

SAMPLED = 32
"""Runs of a graph that are timed."""
_WARM_UP = 3
"""Runs of a graph before those: CUDA graphs are captured in them."""


class DeviceTime:
    """Takes the time of a device around runs of graphs.  Graphs without an input on CUDA never come here.

    Where CUDA refuses, nothing more is timed on the device.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._works = True
        self._pending: list[tuple[GraphTally, bool, Any, Any]] = []
        self._unusable: list[Any] = []

    def timed(self, run: Callable[..., Any], tally: GraphTally, device: Any) -> Callable[..., Any]:
        """Does what ``run`` does, and takes the time of the device around the first steady runs."""
        threads = self._threads
        left = SAMPLED

        def on_device(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            state = threads.state
            timed = left and state.depth and state.steady and tally.runs >= _WARM_UP
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
                    left -= 1
                    self._pending.append((tally, False, began, ended))
                    state.device_gap = (tally, device, ended)
            return result

        return on_device

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
            for tally, is_gap, began, ended in pending:
                if not (began.query() and ended.query()):
                    self._pending.append((tally, is_gap, began, ended))
                    continue
                seconds = began.elapsed_time(ended) / 1e3
                if is_gap:
                    tally.device_gaps.append(seconds)
                else:
                    tally.runs_on_device += 1
                    tally.device_seconds += seconds
        except Exception:
            self._works = False

    def forked(self) -> None:
        """A forked process cannot use CUDA: not even to give events back."""
        self._works = False
        self._unusable.extend(self._pending)
        self._pending = []

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
        tally, _, ended = gap
        # Between them, a graph may have run on another device.
        if now is not None and last is tally:
            self._pending.append((tally, True, ended, now))
