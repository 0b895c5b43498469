"""Compares further devices with the first one: whether what is timed on both can be compared, and timed at once.

Devices of one kind need not be equally fast, and those of one host share its cores. Each variant is timed in turns with
eager steps of its own process, so its ratio is one of its own device. Ratios of devices that are far from equally fast
are not compared.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from breakscan.prove import faster as measure
from breakscan.prove.bench_result import DeviceComparison, DeviceUse
from breakscan.prove.devices import Placement
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import NothingToMeasure, require_one_device
from breakscan.prove.original import Baseline
from breakscan.prove.protocol import BlockTime, StepKind
from breakscan.prove.worker import ProgramChange, UserProgram, Worker, WorkerError
from breakscan.source.cores import CORES_TO_COMPILE, usable_cores

LONGEST = 4.0
"""Seconds of timing for each further device."""
ALIKE = 1.1
"""How many times as long an eager step may take on one device as on another, for both to be used."""
BESIDE = 1.05
"""How many times as long an eager step may take beside another device that works, for both to be timed at once."""
ALONE, THERE, TOGETHER = "alone", "there", "together"


@dataclass(frozen=True, slots=True)
class UsedDevices:
    """The devices on which ways are compiled and timed, the first one first; ``together`` says that they are timed at
    once. ``compared`` are all further ones.
    """

    placements: tuple[Placement | None, ...]
    together: bool = False
    compared: tuple[DeviceComparison, ...] = ()


class FurtherDevices:
    """The program run eager on ``further`` devices, as far as the cores of the machine are enough.

    The processes start at once, so that they are ready when the first device is measured.
    """

    def __init__(
        self, program: UserProgram, further: Sequence[Placement], folder: Path, server: ForkServerProcess
    ) -> None:
        most = max(0, usable_cores() // CORES_TO_COMPILE - 1)
        self._too_many = further[most:]
        self._workers = {
            one: Worker(program.on(one), ProgramChange(), folder / f"device{one.index}", server=server)
            for one in further[:most]
        }

    def wait(self) -> None:
        """Waits until nothing runs there."""
        for worker in self._workers.values():
            with contextlib.suppress(WorkerError):
                worker.ready()

    def compared(self, first: Worker, baseline: Baseline) -> UsedDevices:
        """Compares each of them with the device of the first worker, whose results are the baseline."""
        found = {one: _compared(first, worker, baseline, one) for one, worker in self._workers.items()}
        found |= {one: DeviceComparison(one.label, DeviceUse.TOO_FEW_CORES) for one in self._too_many}
        used = [one for one, comparison in found.items() if comparison.use.is_used]
        return UsedDevices(
            (first.program.placement, *used),
            bool(used) and all(found[one].use is DeviceUse.TIMED_AT_ONCE for one in used),
            tuple(found.values()),
        )

    def __enter__(self) -> FurtherDevices:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for worker in self._workers.values():
            worker.__exit__(kind)


def _compared(first: Worker, other: Worker, baseline: Baseline, placement: Placement) -> DeviceComparison:
    label = placement.label
    try:
        require_one_device(other.ready(), placement)
        if other_results := baseline.unrepeatable(other):
            return DeviceComparison(label, DeviceUse.NONE, difference=other_results.first)
        times = _times(first, other)
    except (WorkerError, NothingToMeasure) as error:
        return DeviceComparison(label, DeviceUse.NONE, error=str(error))
    slower = measure.ratio([times[THERE]], times[ALONE])
    beside = measure.ratio([times[TOGETHER]], times[ALONE])
    return DeviceComparison(label, _use(slower.median, beside.median), slower, beside)


def _use(slower: float, beside: float) -> DeviceUse:
    if not 1 / ALIKE <= slower <= ALIKE:
        return DeviceUse.NONE
    return DeviceUse.TIMED_AT_ONCE if beside <= BESIDE else DeviceUse.TIMED_IN_TURNS


def _times(first: Worker, other: Worker) -> dict[str, list[float]]:
    seconds = [one.prepare(StepKind.EAGER) for one in (first, other)]
    blocks = {name: functools.partial(one.block, kind=StepKind.EAGER) for name, one in ((ALONE, first), (THERE, other))}
    with ThreadPoolExecutor(1) as pool:

        def together(calls: int) -> BlockTime:
            # The other one works for longer than the block that counts.
            beside = pool.submit(blocks[THERE], 2 * calls)
            time = blocks[ALONE](calls)
            beside.result()
            return time

        return measure.interleave({**blocks, TOGETHER: together}, seconds, LONGEST)
