"""What is counted of the runs of graphs and of calls, and where each thread is."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from breakscan.runtime.records.record import Record
from breakscan.runtime.records.runs import CallsRan, EagerCallsRan, GapRan, GraphRan
from breakscan.runtime.records.source import StackFrame


class GraphTally:
    """What one graph did until now, and the gaps after it.  ``broke`` says that a break ended it."""

    __slots__ = (
        "broke",
        "device_seconds",
        "gap_device_seconds",
        "gap_seconds",
        "gaps_on_device",
        "number",
        "passes",
        "runs",
        "runs_on_device",
        "seconds",
        "written",
    )

    def __init__(self, number: int, broke: bool) -> None:
        self.number = number
        self.broke = broke
        self.clear()

    def clear(self) -> None:
        self.runs = self.passes = self.runs_on_device = self.gaps_on_device = 0
        self.seconds = self.gap_seconds = self.device_seconds = self.gap_device_seconds = 0.0
        self.written = (0, 0, 0, 0)

    def records(self) -> Iterator[Record]:
        """What is new since the last time."""
        state = (self.runs, self.runs_on_device, self.passes, self.gaps_on_device)
        if state[:2] != self.written[:2]:
            yield GraphRan(self.number, self.runs, self.seconds, self.runs_on_device, self.device_seconds)
        if state[2:] != self.written[2:]:
            yield GapRan(self.number, self.passes, self.gap_seconds, self.gaps_on_device, self.gap_device_seconds)
        self.written = state


class CallTally:
    """The steady calls of one compiled thing until now.  ``eager`` counts those in which no graph ran, by the stance of
    torch, and ``first_eager`` holds the stack of the first one."""

    __slots__ = (
        "calls",
        "eager",
        "eager_written",
        "first_eager",
        "gap_seconds",
        "graph_seconds",
        "key",
        "seconds",
        "written",
    )

    def __init__(self, key: int) -> None:
        self.key = key
        self.first_eager: dict[str, tuple[StackFrame, ...]] = {}
        self.clear()

    def clear(self) -> None:
        self.calls = self.written = 0
        self.seconds = self.graph_seconds = self.gap_seconds = 0.0
        self.eager: dict[str, int] = {}
        self.eager_written: dict[str, int] = {}

    def records(self) -> Iterator[Record]:
        """What is new since the last time."""
        if self.calls != self.written:
            yield CallsRan(self.key, self.calls, self.seconds, self.graph_seconds, self.gap_seconds)
        for stance, calls in self.eager.items():
            if calls != self.eager_written.get(stance):
                yield EagerCallsRan(self.key, stance, calls, self.first_eager[stance])
        self.written, self.eager_written = self.calls, dict(self.eager)


class ThreadState:
    """The outermost call that a thread is in.

    ``steady`` says that nothing was compiled in it.  ``last`` is the graph that ran last in it, and ``ended`` when that
    was; None while a graph runs, and where something was compiled since.  ``device_gap`` is the device's time of the
    same moment, where it is taken.
    """

    __slots__ = (
        "__weakref__",
        "began",
        "depth",
        "device_gap",
        "ended",
        "gap_seconds",
        "graph_seconds",
        "last",
        "steady",
    )

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.depth = 0
        self.steady = False
        self.began = self.ended = self.graph_seconds = self.gap_seconds = 0.0
        self.last: GraphTally | None = None
        self.device_gap: Any = None


class Threads(threading.local):
    """The state of the thread that asks.  ``states`` holds those of all threads that live."""

    def __init__(self, states: list[weakref.ref[ThreadState]]) -> None:
        self.state = ThreadState()
        states.append(weakref.ref(self.state, states.remove))
