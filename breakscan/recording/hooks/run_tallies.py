"""Counts and times of runs of graphs and of calls, on the host and on a CUDA device, and the state of each thread.  A
device is timed on a few runs, by events in its queue.  Nothing here waits for it: events are read when they are done,
and none is recorded while a CUDA graph is being captured."""

import threading
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, TypeVar

from breakscan.recording.records import NO_TIME, CallsRan, EagerCallsRan, GraphRan, Record, StackFrame, Usual

KEPT = 64  # durations of which the last are kept, a power of two: what is usual is read from them
CALLS_ON_DEVICE = 32  # calls that are timed on a device
_QUARTERS = (1, 3)


def ring() -> "array[float]":
    """Room for the last durations: the one of number ``n`` is at ``n & (KEPT - 1)``."""
    return array("d", bytes(8 * KEPT))


def usual(durations: Sequence[float], count: int) -> Usual:
    """Median and quartiles of the last ``count`` durations; of two, the smaller: one may have been disturbed."""
    kept = sorted(durations[: min(count, KEPT)])
    if not kept:
        return NO_TIME
    low, high = (kept[(len(kept) - 1) * quarter // 4] for quarter in _QUARTERS)
    return Usual(median_low(kept), low, high)


@dataclass(slots=True, eq=False)
class GraphTally:
    """The runs of one graph until now, and the gaps after it.  ``broke`` says that a break ended it; ``compile_id`` is
    that of its function.  ``gaps`` holds the last gaps, ``device_gaps`` those on the device."""

    number: int
    broke: bool
    compile_id: str | None = None
    runs: int = 0
    passes: int = 0
    runs_on_device: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0
    gaps: "array[float]" = field(default_factory=ring)
    device_gaps: list[float] = field(default_factory=list)
    written: tuple[int, ...] = (0, 0, 0, 0)

    def clear(self) -> None:
        self.__init__(self.number, self.broke, self.compile_id)  # type: ignore[misc]

    def add_on_device(self, seconds: Sequence[float]) -> None:
        """Runs took so long on the device."""
        self.runs_on_device += len(seconds)
        self.device_seconds += sum(seconds)

    def records(self) -> Iterator[Record]:
        state = (self.runs, self.runs_on_device, self.passes, len(self.device_gaps))
        if state != self.written:
            times = (self.number, self.runs, self.seconds, self.runs_on_device, self.device_seconds)
            on_device = (len(self.device_gaps), usual(self.device_gaps, len(self.device_gaps)))
            yield GraphRan(*times, self.passes, usual(self.gaps, self.passes), *on_device)
        self.written = state


@dataclass(slots=True, eq=False)
class CallTally:
    """The steady calls of one compiled thing until now, and the number of those that have ``begun``, which everything
    compiled of the same function or module shares.

    ``last_seconds`` are those of the last calls; ``last_graphs`` and ``last_gaps`` the parts of them in graphs, and
    after graphs that a break ended.  ``eager`` counts those in which no graph ran, by the stance of torch, and
    ``first_eager`` holds the stack of the first one; ``eager_values`` counts those past the limit of recompiles by the
    value of ``eager_about`` that no version is for.  ``outside_on_device`` is what calls spent on the device outside
    these parts, and ``to_time`` how many calls are still to be timed there."""

    key: int
    begun: list[int]
    first_eager: dict[str, tuple[StackFrame, ...]] = field(default_factory=dict)
    calls: int = 0
    written: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    last_seconds: "array[float]" = field(default_factory=ring)
    last_graphs: "array[float]" = field(default_factory=ring)
    last_gaps: "array[float]" = field(default_factory=ring)
    eager: dict[str, int] = field(default_factory=dict)
    eager_values: dict[str, int] = field(default_factory=dict)
    eager_about: str = ""
    eager_written: dict[str, int] = field(default_factory=dict)
    to_time: int = CALLS_ON_DEVICE
    outside_on_device: list[float] = field(default_factory=list)

    def clear(self) -> None:
        self.begun[0] = 0
        self.__init__(self.key, self.begun, self.first_eager)  # type: ignore[misc]

    def add_on_device(self, seconds: Sequence[float]) -> None:
        """A call took so long on the device, and so long in each of its parts."""
        whole, *parts = seconds
        self.outside_on_device.append(max(0.0, whole - sum(parts)))

    def records(self) -> Iterator[Record]:
        state = (self.calls, timed := len(self.outside_on_device))
        if state != self.written:
            last = (self.last_seconds, self.last_graphs, self.last_gaps)
            whole, in_graphs, in_gaps = (usual(kept, self.calls) for kept in last)
            on_device = (timed, usual(self.outside_on_device, timed))
            yield CallsRan(self.key, self.calls, self.seconds, whole, in_graphs, in_gaps, *on_device)
        for stance, calls in self.eager.items():
            if calls != self.eager_written.get(stance):
                yield EagerCallsRan(
                    self.key, stance, calls, self.first_eager[stance], dict(self.eager_values), self.eager_about
                )
        self.written, self.eager_written = state, dict(self.eager)


class ThreadState:
    """The outermost call that a thread is in.  ``steady`` says that nothing was compiled in it.  ``last`` is the graph
    that ran last in it, and ``ended`` when that was; None while a graph runs, and where something was compiled since.
    ``device_gap`` is the device's time of the same moment, and ``device_call`` that of the call, where it is taken;
    ``past_limit`` is the expression over which the function is past the limit, and its value."""

    __slots__ = (
        "__weakref__", "began", "depth", "device_call", "device_gap", "ended", "gap_seconds", "graph_seconds", "last",
        "past_limit", "steady",
    )  # fmt: skip

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.depth = 0
        self.steady = False
        self.began = self.ended = self.graph_seconds = self.gap_seconds = 0.0
        self.last: GraphTally | None = None
        self.past_limit: tuple[str, str] | None = None
        self.device_gap: Any = None
        self.device_call: Any = None


class Threads(threading.local):
    """The state of the thread that asks.  ``states`` holds those of all threads that live."""

    def __init__(self, states: list[weakref.ref[ThreadState]]) -> None:
        self.state = ThreadState()
        states.append(weakref.ref(self.state, states.remove))


SAMPLED = 32  # runs of a graph that are timed
_WARM_UP = 3  # runs of a graph, and calls, before those: CUDA graphs are captured in them


T = TypeVar("T")
Span = tuple[Any, Any]  # the time between two events


@dataclass(slots=True)
class TimedCall:
    """A call that is timed on ``device``: the event at its start, and those around the parts of it that are timed
    for themselves: graphs, and what lies after a graph that a break ended."""

    device: int
    began: Any
    parts: list[Span] = field(default_factory=list)


class DeviceTime:
    """Takes the time of a device around runs of graphs, and around calls.  Graphs without an input on CUDA never come
    here.  Where CUDA refuses, nothing more is timed on the device."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._works = True
        self._pending: list[tuple[list[Span], Callable[[list[float]], None]]] = []
        """Spans, and what gets their seconds once the device is done with all of them."""
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
                        self._pending.append(([(began, ended)], tally.add_on_device))
                    state.device_gap = (tally, device, ended, sampled)
            return result

        return on_device

    def begin_call(self, state: ThreadState, tally: CallTally) -> None:
        """An outermost call begins.  Where CUDA is not in use after the first calls, none of them is timed."""
        if tally.calls < _WARM_UP:
            return
        device = self._asked(lambda cuda: cuda.current_device() if cuda.is_initialized() else None)
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
            self._pending.append(([(call.began, ended), *call.parts], tally.add_on_device))

    def close_gap(self, state: ThreadState, last: GraphTally | None) -> None:
        """The call is over, and with it the gap after its last graph."""
        # Another thread, in which something is compiled, may end the gap meanwhile.
        gap = state.device_gap
        if gap is not None:
            self._end_gap(state, last, self._now(gap[1]))

    def read(self) -> None:
        """Adds up what the device is done with."""

        def add_up(cuda: Any) -> None:
            if not cuda.is_current_stream_capturing():
                pending, self._pending = self._pending, []
                for spans, add in pending:
                    if all(event.query() for span in spans for event in span):
                        add([began.elapsed_time(ended) / 1e3 for began, ended in spans])
                    else:
                        self._pending.append((spans, add))

        if self._pending:
            self._asked(add_up)

    def forked(self) -> None:
        """A forked process cannot use CUDA: not even to give events back."""
        state = self._threads.state
        self._works = False
        self._unusable += [self._pending, state.device_gap, state.device_call]
        self._pending = []

    def _now(self, device: Any) -> Any:
        """An event in the queue of the device; None where there can be none."""

        def record(cuda: Any) -> Any:
            event = None if cuda.is_current_stream_capturing() else cuda.Event(enable_timing=True)
            if event is not None:
                event.record(cuda.current_stream(device))
            return event

        return self._asked(record)

    def _asked(self, ask: Callable[[Any], T]) -> T | None:
        """The answer of ``torch.cuda``; None where it refuses, and from then on."""
        import torch

        try:
            return ask(torch.cuda) if self._works else None
        except Exception:
            self._works = False
            return None

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
                self._pending.append(([(ended, now)], tally.device_gaps.extend))
