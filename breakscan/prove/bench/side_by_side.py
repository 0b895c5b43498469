"""Compiles several variants at the same time, each in its process, where cores and memory allow. Nothing is timed
meanwhile but compiling itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from breakscan.prove.bench.eager_baseline import EagerBaseline
from breakscan.prove.bench.trial import Trial
from breakscan.prove.worker.devices import Placement
from breakscan.prove.worker.threads import run_all
from breakscan.prove.worker.worker import Worker
from breakscan.source.cores import CORES_TO_COMPILE, usable_cores

MOST = 4
"""Processes at the same time for each device: more cores would not be used, as the longest ones have to be waited for
anyway."""
DEVICE_MEMORY = 4
"""How many times the memory of an eager step there has to be on the device for each process."""
HOST_MEMORY = 2
"""Likewise for the memory of the machine."""


def at_once(baseline: EagerBaseline) -> int:
    """Returns how many variants of a program can be compiled at the same time. One means one after another."""
    devices = len(baseline.devices.placements)
    limits = [MOST * devices, usable_cores() // CORES_TO_COMPILE]
    if baseline.memory_bytes and baseline.free_device_bytes is not None:
        limits.append(devices * (baseline.free_device_bytes // (DEVICE_MEMORY * baseline.memory_bytes)))
    free = _free_host_bytes()
    if free is None or not baseline.host_bytes:
        return 1
    return max(1, min(*limits, free // (HOST_MEMORY * baseline.host_bytes)))


def compile_all(
    trials: Sequence[Trial], count: int, also: Sequence[Callable[[], None]], workers: Sequence[Worker]
) -> None:
    """Compiles variants, ``count`` at a time, and does then what else can be done meanwhile, by these ``workers``. The
    processes of the variants go on.
    """
    run_all([*(trial.compile for trial in trials), *also], count, lambda: _interrupt([*trials, *workers]))


def time_all(trials: Sequence[Trial]) -> None:
    """Times compiled variants: those of a device one after another, those of different ones at the same time."""
    rows: dict[Placement | None, list[Trial]] = {}
    for trial in trials:
        rows.setdefault(trial.placement, []).append(trial)
    run_all([functools.partial(_time, row) for row in rows.values()], len(rows), lambda: _interrupt(trials))


def _time(trials: Sequence[Trial]) -> None:
    for trial in trials:
        trial.time()


def _interrupt(running: Sequence[Trial | Worker]) -> None:
    for one in running:
        one.interrupt()


def end_all(trials: Sequence[Trial]) -> None:
    """Ends their processes, which takes a second or two for each: at the same time."""
    if trials:
        with ThreadPoolExecutor(len(trials)) as pool:
            list(pool.map(Trial.end, trials))


def _free_host_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    line = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return int(line.split()[1]) * 1024 if line else None
