"""Runs the captured calls with other values than the program's own, and records the outcomes of tests."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from breakscan.prove.call_result import CallResult, one_line, save_results
from breakscan.prove.call_runs import put_back, ready, run_call
from breakscan.prove.capture import CapturedCall, CapturedCallable
from breakscan.prove.overlay import OutcomeRecorder, RecordedOutcome
from breakscan.prove.protocol import SeenOutcomes, Stress, StressedCall, StressedRun
from breakscan.prove.state import StateSnapshot, digest, digests
from breakscan.prove.torch_state import eager_stance

if TYPE_CHECKING:
    from torch import Tensor


class TimeLimitReached(BaseException):
    """The time is up. No ``except Exception`` of the program catches it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitReached in the block after some seconds, as soon as Python code runs. Only in the main thread."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimitReached

    handler = signal.signal(signal.SIGALRM, stop)
    # A program may have set a timer of its own.
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


SEED = 20_000
"""Of the permutation, which is the same in all processes."""


def stressed_values(inputs: StateSnapshot, stress: Stress) -> dict[str, Tensor]:
    """The values that change, by path; none where this stress changes nothing."""
    found: dict[str, Tensor] = {}
    for path, value in inputs.data.items():
        # Classes of inputs hold values, too.
        is_input = path.startswith(("args[", "kwargs["))
        other = stressed(value, stress) if is_input and value.numel() else None
        if other is not None and digest(other) != digest(value):
            found[path] = other
    return found


def stressed(value: Tensor, stress: Stress) -> Tensor | None:
    """Another value for a tensor; None where there is none for its dtype.

    Integers and bools may be indices and masks: with most kinds of stress they stay as they are, so that floating-point
    values reach all of the code.
    """
    import torch

    if stress is Stress.PERMUTED:
        order = torch.randperm(value.numel(), generator=torch.Generator().manual_seed(SEED), device="cpu")
        return value.flatten()[order].view(value.shape)
    if value.dtype is torch.bool:
        return None
    if value.dtype.is_complex:
        parts = _of_floats(torch.view_as_real(value), stress)
        return None if parts is None else torch.view_as_complex(parts)
    return _of_floats(value, stress) if value.dtype.is_floating_point else _of_integers(value, stress)


def _of_floats(value: Tensor, stress: Stress) -> Tensor | None:
    import torch

    # Not every operator knows the narrow types.
    wide = value.to(torch.float64, copy=True)
    if stress is Stress.NEGATED:
        return (-wide).to(value.dtype)
    if stress is Stress.ZERO:
        return torch.zeros_like(wide).to(value.dtype)
    limits = torch.finfo(value.dtype)
    if stress is Stress.EXTREME:
        return _in_turn(wide, (limits.max, limits.min)).to(value.dtype)
    found = wide.flatten()
    if stress is Stress.NAN:
        found[0] = math.nan
    elif stress is Stress.INFINITE:
        found[-1], found[0] = -math.inf, math.inf
    else:
        return None
    return found.view(value.shape).to(value.dtype)


def _of_integers(value: Tensor, stress: Stress) -> Tensor | None:
    import torch

    limits, lowest, highest = torch.iinfo(value.dtype), int(value.min()), int(value.max())
    if stress is Stress.ZERO:
        return torch.zeros_like(value).clamp(lowest, highest)
    if stress is Stress.BELOW:
        return _in_turn(value, (max(min(lowest - 1, -1), limits.min), None))
    if stress is Stress.ABOVE:
        # Far enough for an index, and not so far that a size takes all of the memory.
        return _in_turn(value, (min(max(2 * highest, highest) + 2, limits.max), None))
    return None


def _in_turn(value: Tensor, cycle: Sequence[float | None]) -> Tensor:
    """The elements replaced by these numbers in turn, over and over; with None, an element stays."""
    import torch

    position = torch.arange(value.numel(), device="cpu").view(value.shape) % len(cycle)
    found = value.clone()
    for turn, number in enumerate(cycle):
        if number is not None:
            found[position == turn] = number
    return found


LONGEST_CALL = {False: 5.0, True: 30.0}
"""Seconds of one call with other inputs, eager and compiled. With NaN, a loop may never end."""
MOST_INTEGERS = 4
"""Inputs of integers that are tried out of their range."""
MOST_GRADIENTS = 256 << 20
"""Bytes of the gradients of a call with other inputs; where there are more, it has no backward pass."""


class ProbeRuns:
    """Runs calls eager. ``recorder`` knows the outcomes of the tests that they run."""

    def __init__(self, callables: Sequence[CapturedCallable], recorder: OutcomeRecorder) -> None:
        self._callables = callables
        self._recorder = recorder

    def outcomes(self) -> dict[str, tuple[SeenOutcomes, ...]]:
        """Runs each call eager.  Returns the outcomes of all tested expressions, by the real paths of the files in
        which they are recorded."""
        seen: set[RecordedOutcome] = set()
        for captured in self._callables:
            for call in captured.calls:
                with ready(captured, call), eager_stance(), self._recorder.recording() as found:
                    run_call(captured, call, captured.original, backward=True, compare_state=False)
                seen |= found
        return self._recorder.outcomes(seen)

    def stressed(self, path: str, stress: Stress, compiled: bool, seconds: float) -> StressedRun:
        """Runs the first call of each callable with other inputs, eager or ``compiled``, and writes the results.  All
        of them take at most some ``seconds``."""
        until = time.monotonic() + seconds
        ended: dict[StressedCall, CallResult] = {}
        outcomes: list[dict[str, tuple[SeenOutcomes, ...]]] = []
        stopped = None
        try:
            for number, captured in enumerate(self._callables):
                for name, values in _stressed_inputs(captured.calls[0], stress).items():
                    left = min(LONGEST_CALL[compiled], until - time.monotonic())
                    with self._recorder.recording() as seen:
                        result = _stressed_result(captured, values, compiled, left)
                    if result is not None:
                        ended[StressedCall(number, stress, name)] = result
                        outcomes.append(self._recorder.outcomes(seen))
        except Exception as error:
            # What the calls raise is a result.  This was raised between them.
            stopped = one_line(error)
        save_results(list(ended.values()), path)
        return StressedRun(tuple(ended), tuple(outcomes), stopped)


def _stressed_inputs(call: CapturedCall, stress: Stress) -> dict[str, dict[str, Tensor]]:
    """The values that change together. An integer out of range often ends the call, so that each input has its own."""
    values = stressed_values(call.inputs, stress)
    if stress in (Stress.BELOW, Stress.ABOVE):
        return {path: {path: value} for path, value in list(values.items())[:MOST_INTEGERS]}
    return {"": values} if values else {}


def _stressed_result(
    captured: CapturedCallable, values: dict[str, Tensor], compiled: bool, seconds: float
) -> CallResult | None:
    """The result of the first call with other inputs; None if it takes too long."""
    call = captured.calls[0]
    if seconds <= 0:
        return None
    leaves = [leaf for snapshot in captured.snapshots_of(call) for leaf in snapshot.leaves().values()]
    backward = sum(leaf.numel() * leaf.element_size() for leaf in leaves) <= MOST_GRADIENTS
    stance = contextlib.nullcontext() if compiled else eager_stance()
    run = captured.compiled if compiled else captured.original
    try:
        with call.inputs.holding(values), ready(captured, call), stance, time_limit(seconds):
            return run_call(captured, call, run, backward and (captured.backward or not compiled)).result
    except TimeLimitReached:
        return None
    finally:
        put_back(captured, call)


TURNS = 4
"""Runs with other values."""


class OverwrittenValues:
    """Runs the first call of each callable eager with other values in place of some."""

    def __init__(self, callables: Sequence[CapturedCallable]) -> None:
        self._callables = callables

    def find(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Runs the first calls eager with other values for these names.  Returns those that change nothing."""
        found: set[str] = set()
        read: set[str] = set()
        for captured in self._callables:
            here = _paths(captured).intersection(names)
            if here:
                (found if _is_overwritten(captured, here) else read).update(here)
        return tuple(sorted(found - read))


def _paths(captured: CapturedCallable) -> set[str]:
    """The tensors and arrays that its first call can reach, without parameters."""
    return {path for snapshot in captured.snapshots_of(captured.calls[0]) for path in snapshot.data}


def _is_overwritten(captured: CapturedCallable, names: Collection[str]) -> bool:
    """Whether the first call computes the same, and leaves the same, whatever these values are."""
    held = [snapshot.data for snapshot in captured.snapshots_of(captured.calls[0])]
    own = [{path: value for path, value in data.items() if path in names} for data in held]
    try:
        with time_limit(LONGEST_CALL[False]):
            first = _effects(captured, own)
            return all(
                _effects(captured, [{path: _filled(value, turn) for path, value in data.items()} for data in own])
                == first
                for turn in range(TURNS)
            )
    except TimeLimitReached:
        return False
    finally:
        put_back(captured, captured.calls[0])


def _effects(captured: CapturedCallable, values: Sequence[Mapping[str, Tensor]]) -> tuple[object, ...]:
    """What the first call does with these values in its state and its inputs, as digests."""
    call = captured.calls[0]
    snapshots = captured.snapshots_of(call)
    with contextlib.ExitStack() as stack:
        for snapshot, others in zip(snapshots, values, strict=True):
            stack.enter_context(snapshot.holding(others))
        stack.enter_context(ready(captured, call))
        stack.enter_context(eager_stance())
        found = run_call(captured, call, captured.original, backward=True).result
        left = [digests(snapshot.now().values) for snapshot in snapshots]
    results = digests(found.outputs), digests(found.gradients)
    texts = found.error, found.error_text, found.no_backward, found.others, found.aliases, found.changes, found.rng
    return *left, *results, *texts


def _filled(value: Tensor, turn: int) -> Tensor:
    """The tensor with one number in place of its values, by which a test or an index differs from turn to turn."""
    import torch

    if value.dtype.is_floating_point or value.dtype.is_complex:
        numbers: tuple[float, ...] = 0.0, -math.inf, math.inf, math.nan
    elif value.dtype is torch.bool:
        numbers = False, True
    else:
        numbers = 0, torch.iinfo(value.dtype).min, torch.iinfo(value.dtype).max
    return torch.full_like(value, numbers[turn % len(numbers)])
