"""The devices on which changes are proved at the same time. A change is compared with two processes of the unchanged
program on the same device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from breakscan.prove.verify.original import Original
from breakscan.prove.verify.step_race import StepRace
from breakscan.prove.verify.turns import TimingTurns
from breakscan.prove.worker.baseline import Baseline
from breakscan.prove.worker.captured_program import NothingToMeasure, other_calls, require_one_device
from breakscan.prove.worker.devices import Placement
from breakscan.prove.worker.observation import Observation, ObservationKind
from breakscan.prove.worker.worker import ProgramChange, WorkerError
from breakscan.source.cores import CORES_TO_COMPILE, usable_cores


@dataclass(frozen=True, slots=True)
class Lane:
    """A device, with the two processes of the unchanged program there and their race."""

    original: Original
    race: StepRace


class Lanes:
    """The lanes, of which the first one is there from the beginning. Others are opened when they are needed.

    ``notes`` says which devices are not used, and why.
    """

    def __init__(self, original: Original, baseline: Baseline) -> None:
        self.turns = TimingTurns()
        self.first = Lane(original, StepRace(original, self.turns))
        self.notes: list[Observation] = []
        self._baseline = baseline
        self._opened = [self.first]
        self._unopened = list(original.further)

    @property
    def used(self) -> tuple[str, ...]:
        """The devices that were used, if several were named."""
        placements = [lane.original.first.program.placement for lane in self._opened]
        return tuple(one.label for one in placements if one is not None)

    def open(self, count: int) -> list[Lane]:
        """Returns lanes for so many changes, where the cores are enough to compile as many at the same time."""
        enough = max(1, usable_cores() // CORES_TO_COMPILE)
        if enough < count:
            while self._unopened and len(self._opened) + len(self._unopened) > enough:
                names = (self._unopened.pop().label,)
                self.notes.append(
                    Observation(ObservationKind.DEVICE_LACKS_CORES, names=names, numbers=(CORES_TO_COMPILE,))
                )
        most = min(count, enough)
        while len(self._opened) < most and self._unopened:
            placement = self._unopened.pop(0)
            try:
                lane = self._lane(placement)
            except (WorkerError, NothingToMeasure) as error:
                self.notes.append(Observation(ObservationKind.DEVICE_FAILS, str(error), (placement.label,)))
                continue
            if lane is not None:
                self._opened.append(lane)
        return self._opened[:most]

    def _lane(self, placement: Placement) -> Lane | None:
        """Returns the lane of a device, None if the program does something else there."""
        original = self.first.original
        workers = original.workers.on(placement)
        first, second = (original.keep_open(workers.start(ProgramChange(), original.first)) for _ in range(2))
        there = replace(original, workers=workers, first=first, second=second)
        for one in (first, second):
            about = one.ready()
            require_one_device(about, placement)
            if other := other_calls(about, original.about):
                self.notes.append(
                    Observation(ObservationKind.DEVICE_MAKES_OTHER_CALLS, names=(placement.label,), calls=other)
                )
                return None
            if differs := self._baseline.unrepeatable(one):
                kind = ObservationKind.DEVICE_DIFFERS
                self.notes.append(Observation(kind, names=(placement.label,), details=(differs.first,)))
                return None
            start = there.other_start(one)
            if names := sorted(start.values | start.generators):
                self.notes.append(
                    Observation(ObservationKind.DEVICE_STARTS_OTHERWISE, ", ".join(names), (placement.label,))
                )
                return None
        return Lane(there, StepRace(there, self.turns))
