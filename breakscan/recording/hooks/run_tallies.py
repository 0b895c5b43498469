"""Counts of runs of graphs and of calls, and the state of each thread."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from breakscan.recording.records import (
    CallsOnDevice,
    CallsRan,
    EagerCallsRan,
    GapRan,
    GraphRan,
    Record,
    StackFrame,
    Usual,
)

KEPT = 64
"""Durations of which the last are kept, a power of two: what is usual is read from them."""
CALLS_ON_DEVICE = 32
"""Calls that are timed on a device."""
_QUARTERS = (1, 3)


def ring() -> array[float]:
    """Room for the last durations: the one of number ``n`` is at ``n & (KEPT - 1)``."""
    return array("d", bytes(8 * KEPT))


def usual(durations: Sequence[float], count: int) -> Usual:
    """Median and quartiles of the last of ``count`` durations.  Of two, the smaller is the median: one may have been
    disturbed."""
    kept = sorted(durations[: min(count, KEPT)])
    if not kept:
        return Usual(0.0, 0.0, 0.0)
    low, high = (kept[(len(kept) - 1) * quarter // 4] for quarter in _QUARTERS)
    return Usual(median_low(kept), low, high)


@dataclass(slots=True, eq=False)
class GraphTally:
    """The runs of one graph until now, and the gaps after it.  ``broke`` says that a break ended it; ``compile_id`` is
    that of its function.

    ``gaps`` holds the last gaps, ``device_gaps`` those on the device.
    """

    number: int
    broke: bool
    compile_id: str | None = None
    runs: int = 0
    passes: int = 0
    runs_on_device: int = 0
    seconds: float = 0.0
    gap_seconds: float = 0.0
    device_seconds: float = 0.0
    gaps: array[float] = field(default_factory=ring)
    device_gaps: list[float] = field(default_factory=list)
    written: tuple[int, ...] = (0, 0, 0, 0)

    def clear(self) -> None:
        self.__init__(self.number, self.broke, self.compile_id)  # type: ignore[misc]

    def add_on_device(self, seconds: Sequence[float]) -> None:
        """Runs took so long on the device."""
        self.runs_on_device += len(seconds)
        self.device_seconds += sum(seconds)

    def records(self) -> Iterator[Record]:
        """The records that are new since the last time."""
        state = (self.runs, self.runs_on_device, self.passes, len(self.device_gaps))
        if state[:2] != self.written[:2]:
            yield GraphRan(self.number, self.runs, self.seconds, self.runs_on_device, self.device_seconds)
        if state[2:] != self.written[2:]:
            yield GapRan(
                follows=self.number,
                passes=self.passes,
                seconds=self.gap_seconds,
                usual=usual(self.gaps, self.passes),
                timed_on_device=len(self.device_gaps),
                usual_on_device=usual(self.device_gaps, len(self.device_gaps)),
            )
        self.written = state


@dataclass(slots=True, eq=False)
class CallTally:
    """The steady calls of one compiled thing until now.

    ``last_seconds`` are those of the last calls; ``last_graphs`` and ``last_gaps`` the parts of them in graphs, and
    after graphs that a break ended.  ``eager`` counts those in which no graph ran, by the stance of torch, and
    ``first_eager`` holds the stack of the first one; ``eager_values`` counts those past the limit of recompiles by the
    value of ``eager_about`` that no version is for.  ``outside_on_device`` is what calls spent on the device outside
    these parts, and ``to_time`` how many calls are still to be timed there.
    """

    key: int
    first_eager: dict[str, tuple[StackFrame, ...]] = field(default_factory=dict)
    calls: int = 0
    written: int = 0
    seconds: float = 0.0
    last_seconds: array[float] = field(default_factory=ring)
    last_graphs: array[float] = field(default_factory=ring)
    last_gaps: array[float] = field(default_factory=ring)
    eager: dict[str, int] = field(default_factory=dict)
    eager_values: dict[str, int] = field(default_factory=dict)
    eager_about: str = ""
    eager_written: dict[str, int] = field(default_factory=dict)
    to_time: int = CALLS_ON_DEVICE
    outside_on_device: list[float] = field(default_factory=list)
    outside_written: int = 0

    def clear(self) -> None:
        self.__init__(self.key, self.first_eager)  # type: ignore[misc]

    def add_on_device(self, seconds: Sequence[float]) -> None:
        """A call took so long on the device, and so long in each of its parts."""
        whole, *parts = seconds
        self.outside_on_device.append(max(0.0, whole - sum(parts)))

    def records(self) -> Iterator[Record]:
        """The records that are new since the last time."""
        if self.calls != self.written:
            each = (usual(kept, self.calls) for kept in (self.last_seconds, self.last_graphs, self.last_gaps))
            yield CallsRan(self.key, self.calls, self.seconds, *each)
        for stance, calls in self.eager.items():
            if calls != self.eager_written.get(stance):
                yield EagerCallsRan(
                    self.key, stance, calls, self.first_eager[stance], dict(self.eager_values), self.eager_about
                )
        if (timed := len(self.outside_on_device)) != self.outside_written:
            yield CallsOnDevice(self.key, timed, usual(self.outside_on_device, timed))
        self.written, self.eager_written, self.outside_written = self.calls, dict(self.eager), timed


class ThreadState:
    """The outermost call that a thread is in.

    ``steady`` says that nothing was compiled in it.  ``last`` is the graph that ran last in it, and ``ended`` when that
    was; None while a graph runs, and where something was compiled since.  ``device_gap`` is the device's time of the
    same moment, and ``device_call`` that of the call, where it is taken; ``past_limit`` is the expression over which
    the function is past the limit, and its value.
    """

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
