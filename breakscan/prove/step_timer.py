"""Runs steps for their time, their memory and what they launch.  A step is one call of each callable."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscan.prove.call_result import differentiable, projections
from breakscan.prove.call_runs import RunQueue, compiles_counted, put_values_back, ready
from breakscan.prove.capture import CapturedCall, CapturedCallable
from breakscan.prove.protocol import BlockTime, StepKind
from breakscan.prove.torch_state import cuda_in_use, eager_stance, mark_step, wait_for_device

if TYPE_CHECKING:
    from torch import Tensor

PARTS = 40
"""Parts of a block, of which the median counts."""
PARTS_ON_DEVICE = 8
"""The same on a GPU: the first part of a block fills its queue."""
QUIET = 0.02
"""The share of a part for which its threads may wait for a core."""
FEWEST_QUIET = 0.25
"""The share of the parts of a block that have to be quiet."""
NEAR = 1.1
"""The largest ratio of the host's time to the device's."""
MOST_WARMUP = 30.0
"""Seconds."""


@dataclass(slots=True)
class _TimedCall:
    """A call that is timed.

    ``directions`` are those of the backward pass, None where the program runs none.  ``put_back`` undoes what the call
    advances: a counter, a list that grows.
    """

    run: Callable[..., object]
    call: CapturedCall
    directions: list[Tensor] | None
    leaves: list[Tensor]
    put_back: list[Callable[[], object]]


class StepTimer:
    """``before_timing`` is called once before anything is timed: it removes what would be timed, too.  Eager steps run
    within the context that ``as_written`` makes."""

    def __init__(
        self,
        callables: Sequence[CapturedCallable],
        before_timing: Callable[[], None],
        as_written: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        self._callables = callables
        self._before_timing = before_timing
        self._as_written = as_written
        self._steps: dict[StepKind, list[list[_TimedCall]]] = {}

    def prepare(self, kind: StepKind) -> None:
        """Prepares for blocks of a kind.  What is compiled is compiled again, in one run of each step."""
        import torch

        self._before_timing()
        if kind is StepKind.COMPILED:
            torch._dynamo.reset()
        gc.collect()
        # A collection before each block that looks at all objects again would take longer than the block.
        gc.freeze()
        rows = [
            [_timed_call(one, call, one.original if kind is StepKind.EAGER else one.entry) for call in one.calls]
            for one in self._callables
        ]
        longest = max(map(len, rows))
        self._steps[kind] = [[row[at % len(row)] for row in rows] for at in range(longest)]
        self.block(longest, kind)

    def block(self, calls: int, kind: StepKind) -> BlockTime:
        """Times a block of about so many steps: whole cycles, as the calls of a cycle may differ."""
        cycle = self._steps[kind]
        for captured in self._callables:
            put_values_back(captured)
        gc.collect()
        modes = [call.modes for one in self._callables for call in one.calls]
        same_modes = all(one == modes[0] for one in modes)
        with contextlib.ExitStack() as stack:
            if same_modes:
                stack.enter_context(modes[0].set())
            if kind is StepKind.EAGER:
                stack.enter_context(self._as_written())
                stack.enter_context(eager_stance())
            compiles = stack.enter_context(compiles_counted())
            run = _run if same_modes else _run_in_modes

            def run_cycles(count: int) -> None:
                for _ in range(count):
                    for row in cycle:
                        for step in row:
                            run(step)

            cycles = -(-calls // len(cycle))
            timed = _timed_on_device if cuda_in_use() else _timed
            seconds, disturbed = timed(run_cycles, cycles)
        return BlockTime(seconds / len(cycle), len(compiles), disturbed)

    def memory(self, kind: StepKind) -> int | None:
        """The peak memory of a few steps in bytes, on the device if one is in use.  None where the system cannot
        report it."""
        import torch

        if kind is StepKind.EAGER and self._steps.pop(StepKind.COMPILED, None) is not None:
            # What is compiled holds memory: constants, and the pools of CUDA graphs.
            torch._dynamo.reset()
            gc.collect()
        steps = 2 * len(self._steps[kind])
        if cuda_in_use():
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self.block(steps, kind)
            return int(torch.cuda.max_memory_allocated()) + _kept_by_graphs()
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.block(steps, kind)
            status = Path("/proc/self/status").read_text()
        except OSError:
            return None
        line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
        return int(line.split()[1]) * 1024 if line else None

    def launches(self, kind: StepKind) -> dict[str, int] | None:
        """The launches of one step on the device: ``kernels`` and ``cuda_graphs``.  None without a device."""

        if not cuda_in_use():
            return None
        from torch.profiler import ProfilerActivity, profile

        steps = len(self._steps[kind])
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            self.block(steps, kind)
        counts = {"kernels": 0, "cuda_graphs": 0}
        for event in profiled.events() or ():
            if event.name.startswith(("cudaLaunchKernel", "cuLaunchKernel")):
                counts["kernels"] += 1
            elif event.name.startswith("cudaGraphLaunch"):
                counts["cuda_graphs"] += 1
        return {name: round(count / steps) for name, count in counts.items()}

    def warm_up(self, kind: StepKind) -> float:
        """Runs steps of a kind that is prepared until their time is steady.  Returns the seconds of a step.  Runs until
        two blocks in a row compile nothing and take about the same time.  Returns the seconds of a step."""
        began = time.monotonic()
        size = len(self._steps[kind])
        seconds = 0.0
        calm = 0
        while calm < 2 and time.monotonic() - began < MOST_WARMUP:
            block = self.block(size, kind)
            near = seconds and abs(block.seconds - seconds) < 0.1 * seconds
            calm = calm + 1 if near and not block.compiles else 0
            seconds = block.seconds
            # Blocks of at least some milliseconds: shorter ones never agree.
            if seconds * size < 0.02:
                size = min(max(size + 1, round(0.02 / max(seconds, 1e-7))), size * 10)
        return seconds


def _kept_by_graphs() -> int:
    """The bytes of a GPU that CUDA graphs keep for what is freed within them: nothing else can have them, and the
    allocator does not count them."""
    import torch

    snapshot: Callable[[], list[dict[str, Any]]] = torch.cuda.memory_snapshot
    pools = [one for one in snapshot() if tuple(one.get("segment_pool_id", (0, 0))) != (0, 0)]
    return sum(one["total_size"] - one["allocated_size"] for one in pools)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a block: the seconds of a cycle, and the shares of it for which this thread and others waited for a
    core."""

    seconds: float
    own_wait: float
    other_waits: float


def _timed(run_cycles: Callable[[int], None], cycles: int) -> tuple[float, bool]:
    """The seconds of a cycle, and whether they are disturbed.  If hardly any part is free of waiting, as each is longer
    than the turn that the system gives a process, the time for which this thread waited is subtracted.  That does not
    help where several threads work on a step."""
    size = -(-cycles // PARTS)
    parts: list[_Part] = []
    with RunQueue() as queue:
        while len(parts) * size < cycles:
            before = queue.waits()
            began = time.perf_counter()
            run_cycles(size)
            seconds = time.perf_counter() - began
            own, *others = (now - then for now, then in zip(queue.waits(), before, strict=True))
            parts.append(_Part(seconds / size, own / seconds, sum(others) / seconds))
    alone = [one for one in parts if one.other_waits <= QUIET]
    return _median_of_quiet(parts) or (
        statistics.median(one.seconds * (1 - one.own_wait) for one in alone or parts),
        len(alone) < FEWEST_QUIET * len(parts),
    )


def _timed_on_device(run_cycles: Callable[[int], None], cycles: int) -> tuple[float, bool]:
    """The same on a GPU, by its own clock: it works while the next part is prepared.  If that shows less than the
    host's clock, the work is elsewhere, and the host's counts."""
    import torch

    event: Callable[..., Any] = torch.cuda.Event
    size = -(-cycles // PARTS_ON_DEVICE)
    marks = [event(enable_timing=True)]
    wait_for_device()
    with RunQueue() as queue:
        waits = [queue.waits()]
        began = time.perf_counter()
        marks[0].record()
        while len(waits) <= -(-cycles // size):
            run_cycles(size)
            marks.append(event(enable_timing=True))
            marks[-1].record()
            waits.append(queue.waits())
        wait_for_device()
        on_host = (time.perf_counter() - began) / (size * (len(waits) - 1))
    parts = [
        _Part(seconds / size, (own[0] - was[0]) / seconds, (sum(own[1:]) - sum(was[1:])) / seconds)
        for seconds, (was, own) in zip(
            (one.elapsed_time(other) / 1e3 for one, other in pairwise(marks)), pairwise(waits), strict=True
        )
    ]
    on_device = statistics.fmean(one.seconds for one in parts)
    if on_host > NEAR * on_device:
        return on_host, False
    return _median_of_quiet(parts) or (statistics.median(one.seconds for one in parts), True)


def _median_of_quiet(parts: Sequence[_Part]) -> tuple[float, bool] | None:
    """The median of the parts in which no thread waited for a core, None if there are hardly any."""
    quiet = [one.seconds for one in parts if one.own_wait + one.other_waits <= QUIET]
    return (statistics.median(quiet), False) if len(quiet) >= FEWEST_QUIET * len(parts) else None


def _timed_call(captured: CapturedCallable, call: CapturedCall, run: Callable[..., object]) -> _TimedCall:
    # The later calls are the steady ones: the state that only a first call finds is not timed.
    call = replace(call, state=None)
    with ready(captured, call), eager_stance():
        result = captured.original(*call.args, **call.kwargs)
        put_back = [undo for snapshot in captured.snapshots_of(call) for undo in snapshot.advanced()]
        directions = projections(result)[1] or None if captured.backward else None
    leaves = [leaf for snapshot in captured.snapshots_of(call) for leaf in snapshot.leaves().values()]
    return _TimedCall(run, call, directions, leaves, put_back)


def _run(step: _TimedCall) -> None:
    import torch

    mark_step()
    result = step.run(*step.call.args, **step.call.kwargs)
    if step.directions is not None:
        if isinstance(result, torch.Tensor):
            torch.autograd.backward(result, step.directions[0])
        else:
            torch.autograd.backward(differentiable(result), step.directions)
        for leaf in step.leaves:
            leaf.grad = None
    if step.put_back:
        with torch.no_grad():
            for undo in step.put_back:
                undo()


def _run_in_modes(step: _TimedCall) -> None:
    with step.call.modes.set():
        _run(step)
