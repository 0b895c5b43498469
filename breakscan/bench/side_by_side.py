"""Compiles several variants at the same time, each in its process, where cores and memory allow. Nothing is timed
meanwhile but compiling itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from breakscan.bench.eager_baseline import EagerBaseline
from breakscan.bench.trial import Trial
from breakscan.worker.cores import usable_cores

CORES = 4
"""Cores for each process that compiles. Dynamo uses one, Inductor compiles kernels on several."""
MOST = 4
"""Processes at the same time: more cores would not be used, as the longest ones have to be waited for anyway."""
DEVICE_MEMORY = 4
"""How many times the memory of an eager step there has to be on the device for each process."""
HOST_MEMORY = 2
"""Likewise for the memory of the machine."""


def at_once(baseline: EagerBaseline) -> int:
    """Returns how many variants of a program can be compiled at the same time. One means one after another."""
    limits = [MOST, usable_cores() // CORES]
    if baseline.memory_bytes and baseline.free_device_bytes is not None:
        limits.append(baseline.free_device_bytes // (DEVICE_MEMORY * baseline.memory_bytes))
    free = _free_host_bytes()
    if free is None or not baseline.host_bytes:
        return 1
    return max(1, min(*limits, free // (HOST_MEMORY * baseline.host_bytes)))


def compile_all(trials: Sequence[Trial], count: int) -> None:
    """Compiles variants, ``count`` at a time. Their processes go on."""
    pool = ThreadPoolExecutor(count)
    futures = [pool.submit(trial.compile) for trial in trials]
    try:
        for future in futures:
            future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for trial in trials:
            trial.interrupt()
        raise
    finally:
        pool.shutdown()


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
