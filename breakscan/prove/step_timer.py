"""Runs steps for their time, their memory and what they launch.  A step is one call of each callable."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import operator
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from breakscan.prove.call_result import differentiable, projections
from breakscan.prove.call_runs import CompileClock, RunQueue, put_values_back, ready
from breakscan.prove.capture import Capture, CapturedCall, CapturedCallable
from breakscan.prove.protocol import BlockTime, StepKind, TimedStep
from breakscan.prove.torch_state import Modes, cuda_in_use, eager_stance, mark_step, torch, wait_for_device
from breakscan.prove.user_loop import UserLoop, loops_of

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
SETTLED = 0.5
"""Seconds of steps that are steady at once; after twice as many, others are as steady as they get."""
MOST_WARMUP = 30.0
"""Seconds."""


class StepTimer:
    """``stop_recording`` ends the recording of the process before anything is timed."""

    def __init__(self, capture: Capture, stop_recording: Callable[[], None]) -> None:
        self._callables = capture.captured
        self._capture = capture
        self._stop_recording = stop_recording
        self._loop: UserLoop | None = None
        self._steps: dict[StepKind, list[Callable[[], object]]] = {}
        """The steps of a cycle."""
        self._first: dict[StepKind, BlockTime] = {}
        """The block with which each kind was prepared, until it is warm."""

    def choose(self) -> TimedStep:
        """Chooses the innermost loop an iteration of which is a step: it makes each call, and runs a backward pass and
        the optimizer where the program does.  Where no loop can be repeated, a step is one call of each callable."""
        chosen: TimedStep | None = None
        for number, loop in enumerate(loops_of(self._capture.frames)):
            step = loop.try_out(self._callables, self._modes, number)
            if step is not None and (chosen is None or step.optimizer):
                chosen, self._loop = step, loop
            if chosen is not None and (chosen.optimizer or not chosen.backward):
                return chosen
        backward = any(one.backward for one in self._callables)
        return chosen or TimedStep(None, 0, len(self._callables), backward, False)

    def use(self, step: TimedStep) -> bool:
        """Takes the step that another process has chosen.  Returns whether this one has it."""
        loops = loops_of(self._capture.frames) if step.loop is not None else iter(())
        self._loop = next(itertools.islice(loops, step.number, None), None)
        if self._loop is None:
            return step.loop is None
        own = self._loop.try_out(self._callables, self._modes, step.number)
        return own is not None and replace(own, loop=step.loop) == step

    @property
    def _modes(self) -> Modes:
        """The modes around the loop, as far as they are known: an optimizer is stepped in them."""
        return self._capture.step_modes or self._callables[-1].calls[-1].modes

    def prepare(self, kind: StepKind, keep: bool = False) -> None:
        """Prepares for blocks of a kind.  What is compiled is compiled again, in one run of each step, unless ``keep``:
        it was recorded, which only short steps show."""
        self._stop_recording()
        self._capture.hook.remove_timers()
        if kind is StepKind.COMPILED and not keep:
            torch._dynamo.reset()
        gc.collect()
        # A collection before each block that looks at all objects again would take longer than the block.
        gc.freeze()
        if self._loop is not None:
            self._steps[kind] = [self._loop.run]
        else:
            modes = [call.modes for one in self._callables for call in one.calls]
            alike = all(one == modes[0] for one in modes)
            rows = [[_timed_call(one, call, kind, alike) for call in one.calls] for one in self._callables]
            longest = max(map(len, rows))
            calls = [[row[at % len(row)] for row in rows] for at in range(longest)]
            self._steps[kind] = [row[0] if len(row) == 1 else functools.partial(_run_all, row) for row in calls]
        self._first[kind] = self._block(len(self._steps[kind]), kind)

    def block(self, calls: int, kind: StepKind) -> BlockTime:
        """Times a block of about so many steps: whole cycles, as the calls of a cycle may differ."""
        with _on_fixed_cores() if cuda_in_use() else contextlib.nullcontext():
            return self._block(calls, kind)

    def _block(self, calls: int, kind: StepKind) -> BlockTime:
        cycle = self._steps[kind]
        for captured in self._callables:
            put_values_back(captured)
        gc.collect()
        with contextlib.ExitStack() as stack:
            modes = [call.modes for one in self._callables for call in one.calls]
            if self._loop is not None:
                modes = [self._modes]
                stack.enter_context(self._in_loop(kind))
            if all(one == modes[0] for one in modes):
                stack.enter_context(modes[0].set())
            if kind is StepKind.EAGER:
                stack.enter_context(eager_stance())
            compiles = stack.enter_context(CompileClock())

            def run_cycles(count: int) -> None:
                for _ in range(count):
                    for step in cycle:
                        step()

            cycles = -(-calls // len(cycle))
            seconds, disturbed = _timed(run_cycles, cycles)
        return BlockTime(seconds / len(cycle), compiles.count, disturbed)

    @contextlib.contextmanager
    def _in_loop(self, kind: StepKind) -> Iterator[None]:
        """The program's own calls run steps of a kind while the block runs.  Eager code is not called through the
        module around it."""
        with contextlib.ExitStack() as stack:
            for one in self._callables:
                one.instead = one.original if kind is StepKind.EAGER else one.compiled
                if one.module is not None:
                    one.module.forward = one.instead
            if kind is StepKind.EAGER:
                stack.enter_context(mock.patch.object(torch._dynamo.OptimizedModule, "__call__", _call_forward))
            try:
                yield
            finally:
                for one in self._callables:
                    one.instead = None

    def memory(self, kind: StepKind) -> int | None:
        """The most memory of a GPU that a few steps take, in bytes; None without one."""
        if not cuda_in_use():
            return None
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.block(2 * len(self._steps[kind]), kind)
        return int(torch.cuda.max_memory_allocated()) + _kept_by_graphs()

    def warm_up(self, kind: StepKind) -> float:
        """Runs steps of a kind that is prepared until two blocks in a row compile nothing and take about the same time,
        which slow ones need not.  Returns the seconds of a step."""
        began = time.monotonic()
        size = len(self._steps[kind])
        seconds = 0.0
        calm = 0
        while calm < 2 and time.monotonic() - began < MOST_WARMUP:
            # Threads that start in a block, such as those of the compiler, have all cores.
            block = self._first.pop(kind, None) or self._block(size, kind)
            if block.seconds > SETTLED and not block.compiles:
                return block.seconds
            near = abs(block.seconds - seconds) < 0.1 * seconds or time.monotonic() - began > 2 * SETTLED
            calm = calm + 1 if near and not block.compiles else 0
            seconds = block.seconds
            # Blocks of at least some milliseconds: shorter ones never agree.
            if seconds * size < 0.02:
                size = min(max(size + 1, round(0.02 / max(seconds, 1e-7))), size * 10)
        return seconds


@contextlib.contextmanager
def _on_fixed_cores() -> Iterator[None]:
    """This thread and that of backward passes, which start the work of a GPU, each stay on one core, the same in each
    process: on others two processes of one program were up to 1.47 times as fast as each other, on one core 1.01."""
    cores = sorted(os.sched_getaffinity(0))
    # Other measurements, which other jobs run, have other cores.
    first = 2 * os.getpgrp()
    threads = [0]
    for task in Path("/proc/self/task").iterdir():
        # Another thread may end meanwhile.
        with contextlib.suppress(OSError):
            threads += [int(task.name)] if (task / "comm").read_text().startswith("pt_autograd") else []
    try:
        for at, thread in enumerate(threads):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, {cores[(first + at) % len(cores)]})
        yield
    finally:
        for thread in threads:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, cores)


def _kept_by_graphs() -> int:
    """The bytes of a GPU that CUDA graphs keep for what is freed within them: nothing else can have them, and the
    allocator does not count them."""
    snapshot: Callable[[], list[dict[str, Any]]] = torch.cuda.memory_snapshot
    pools = [one for one in snapshot() if tuple(one.get("segment_pool_id", (0, 0))) != (0, 0)]
    return sum(one["total_size"] - one["allocated_size"] for one in pools)


def _timed(run_cycles: Callable[[int], None], cycles: int) -> tuple[float, bool]:
    """The seconds of a cycle, and whether they are disturbed.

    On a GPU, its own clock counts: it works while the next part is prepared.  If that shows less than the host's clock,
    the work is elsewhere, and the host's counts.  If hardly any part is free of waiting, as each is longer than the
    turn that the system gives a process, the time for which this thread waited is subtracted.  That does not help where
    several threads work on a step."""
    on_gpu = cuda_in_use()
    mark, between = (event_now, _event_seconds) if on_gpu else (time.perf_counter, operator.sub)
    size = -(-cycles // (PARTS_ON_DEVICE if on_gpu else PARTS))
    marks: list[tuple[Any, Any]] = []
    wait_for_device()
    with RunQueue() as queue:
        waits, began = [queue.waits()], time.perf_counter()
        while len(marks) * size < cycles:
            start = mark()
            run_cycles(size)
            marks.append((mark(), start))
            waits.append(queue.waits())
        wait_for_device()
        on_host = (time.perf_counter() - began) / (size * len(marks))
    seconds = [between(end, start) / size for end, start in marks]
    if on_gpu and on_host > NEAR * statistics.fmean(seconds):
        return on_host, False
    # The shares of each part for which this thread and others waited for a core.
    waited = [[now - then for then, now in zip(*pair, strict=True)] for pair in pairwise(waits)]
    shares = [[one / (size * each) for one in of] for of, each in zip(waited, seconds, strict=True)]
    own, others = [one[0] for one in shares], [sum(one[1:]) for one in shares]
    quiet = [each for each, one, other in zip(seconds, own, others, strict=True) if one + other <= QUIET]
    if len(quiet) >= FEWEST_QUIET * len(seconds):
        return statistics.median(quiet), False
    if on_gpu:
        return statistics.median(seconds), True
    left = [each * (1 - one) for each, one in zip(seconds, own, strict=True)]
    alone = [each for each, other in zip(left, others, strict=True) if other <= QUIET]
    return statistics.median(alone or left), len(alone) < FEWEST_QUIET * len(seconds)


def event_now() -> Any:
    """An event of CUDA that is recorded."""
    event: Callable[..., Any] = torch.cuda.Event
    made = event(enable_timing=True)
    made.record()
    return made


def _event_seconds(end: Any, start: Any) -> float:
    return float(start.elapsed_time(end)) / 1e3


def _call_forward(module: Any, /, *args: object, **kwargs: object) -> object:
    return module.forward(*args, **kwargs)


def _run_all(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def _timed_call(captured: CapturedCallable, call: CapturedCall, kind: StepKind, in_modes: bool) -> Callable[[], object]:
    """A call with its backward pass, where the program runs one.  ``in_modes`` says that its modes are set already."""
    # A step that is timed does not look for it.
    import torch

    run = captured.original if kind is StepKind.EAGER else captured.entry
    # The later calls are the steady ones: the state that only a first call finds is not timed.
    call = replace(call, state=None)
    with ready(captured, call), eager_stance():
        result = captured.original(*call.args, **call.kwargs)
        put_back = [undo for snapshot in captured.snapshots_of(call) for undo in snapshot.advanced()]
        directions = projections(result)[1] or None if captured.backward else None
    leaves = [leaf for snapshot in captured.snapshots_of(call) for leaf in snapshot.leaves().values()]
    casts = any(enabled for enabled, _ in call.modes.autocast.values())
    modes, args, kwargs = call.modes, call.args, call.kwargs

    def step() -> None:
        mark_step()
        result = run(*args, **kwargs)
        if directions is not None:
            if isinstance(result, torch.Tensor):
                torch.autograd.backward(result, directions[0])
            else:
                torch.autograd.backward(differentiable(result), directions)
            for leaf in leaves:
                leaf.grad = None
        if put_back:
            with torch.no_grad():
                for undo in put_back:
                    undo()
        if casts:
            torch.clear_autocast_cache()

    def step_in_modes() -> None:
        with modes.set():
            step()

    return step if in_modes else step_in_modes
