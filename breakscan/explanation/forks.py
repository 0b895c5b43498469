"""Facts that a forked process has from its parent: graphs, compiled functions, its clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from breakscan.recording.records import ProcessForked, ProcessStarted, Record

T = TypeVar("T")


class Inherited(Generic[T]):
    """The values that numbers have in a process: its own records count, else those of its parent.  They are records of
    ``kind`` by their ``number``, or are added."""

    def __init__(
        self,
        processes: Sequence[Sequence[Record]],
        kind: type[T] | tuple[()] = (),
        number: Callable[[T], int] = lambda _: 0,
    ) -> None:
        pids: dict[int, int] = {}
        self._parents: dict[int, int | None] = {}
        self._own: list[dict[int, T]] = [{} for _ in processes]
        for process, records in enumerate(processes):
            own = next((r for r in records if isinstance(r, ProcessStarted | ProcessForked)), None)
            if isinstance(own, ProcessForked):
                self._parents[process] = pids.get(own.parent_pid)
            if own:
                pids[own.pid] = process
            for record in records:
                if isinstance(record, kind):
                    self.add(process, number(record), record)

    def add(self, process: int, number: int, value: T) -> None:
        """The first value of a number counts."""
        self._own[process].setdefault(number, value)

    def get(self, process: int | None, number: int) -> T | None:
        while process is not None and number not in self._own[process]:
            process = self._parents.get(process)
        return None if process is None else self._own[process][number]


def began_at(processes: Sequence[Sequence[Record]]) -> float | None:
    """When the recording began, in seconds since the epoch; None for one without a process."""
    return min((r.time for records in processes for r in records if isinstance(r, ProcessStarted)), default=None)


def clock_shifts(processes: Sequence[Sequence[Record]]) -> list[float]:
    """For each process the seconds that turn a time of it into seconds since the recording began."""
    clocks = Inherited(processes, ProcessStarted)
    began = began_at(processes) or 0.0
    known = [clocks.get(process, 0) for process in range(len(processes))]
    return [clock.time - clock.clock - began if clock else 0.0 for clock in known]
