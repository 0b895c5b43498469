"""Runs steps for their time, their memory and what they launch.  A step is one call of each callable."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from breakscan.prove.call_result import differentiable, projections
from breakscan.prove.call_runs import compiles_counted, put_values_back, ready
from breakscan.prove.capture import CapturedCall, CapturedCallable
from breakscan.prove.protocol import BlockTime, StepKind
from breakscan.prove.torch_state import cuda_in_use, eager_stance, mark_step, wait_for_device

if TYPE_CHECKING:
    from torch import Tensor

CHUNKS = 40
"""Parts of a block, of which the median counts."""
MOST_WARMUP = 30.0
"""Seconds."""


@dataclass(slots=True)
class _TimedCall:
    """A call that is timed.

    ``directions`` are those of the backward pass, None where the program runs none.  ``refills`` says that the call
    changes containers that it is given: the program passes new ones each time, so they are put back each time.
    """

    run: Callable[..., object]
    call: CapturedCall
    directions: list[Tensor] | None
    leaves: list[Tensor]
    refills: bool


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
        """Times a block of steps.  A step is one call of each callable.  It is the median of a few parts, as the
        machine does other work now and then."""

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
            # A device works while the next call is prepared: waiting for it after each part would be timed, too.
            # Each part holds whole cycles: the calls of a cycle may differ.
            parts = 1 if cuda_in_use() else CHUNKS
            size = -(-calls // (parts * len(cycle))) * len(cycle)
            steps = [cycle[at % len(cycle)] for at in range(calls)]
            wait_for_device()
            seconds = []
            for first in range(0, calls, size):
                chunk = steps[first : first + size]
                began = time.perf_counter()
                for row in chunk:
                    for step in row:
                        run(step)
                wait_for_device()
                seconds.append((time.perf_counter() - began) / len(chunk))
        return BlockTime(statistics.median(seconds), compiles.count)

    def memory(self, kind: StepKind) -> int | None:
        """The peak memory of a few steps in bytes, on the device if one is in use.  None where the system cannot
        tell."""
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
            return int(torch.cuda.max_memory_allocated())
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.block(steps, kind)
            status = Path("/proc/self/status").read_text()
        except OSError:
            return None
        line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
        return int(line.split()[1]) * 1024 if line else None

    def launches(self, kind: StepKind) -> dict[str, int] | None:
        """What one step launches on the device: ``kernels`` and ``cuda_graphs``.  None without a device."""

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


def _timed_call(captured: CapturedCallable, call: CapturedCall, run: Callable[..., object]) -> _TimedCall:
    # The later calls are the steady ones: the state that only a first call finds is not timed.
    call = replace(call, state=None)
    with ready(captured, call), eager_stance():
        result = captured.original(*call.args, **call.kwargs)
        refills = call.inputs.plains_now() != call.inputs.plains
        directions = projections(result)[1] or None if captured.backward else None
    leaves = [leaf for snapshot in captured.snapshots_of(call) for leaf in snapshot.leaves().values()]
    return _TimedCall(run, call, directions, leaves, refills)


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
    if step.refills:
        step.call.inputs.refill()


def _run_in_modes(step: _TimedCall) -> None:
    with step.call.modes.set():
        _run(step)
