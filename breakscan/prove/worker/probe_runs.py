"""Eager runs of the captured calls that show what the results on the program's own values do not: which outcomes tests
had, and what the calls do with other inputs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from breakscan.prove.worker.call_result import CallResult, save_results
from breakscan.prove.worker.call_runs import run_call
from breakscan.prove.worker.captured_call import CapturedCall, CapturedCallable
from breakscan.prove.worker.compile_failure import one_line
from breakscan.prove.worker.outcomes import OutcomeRecorder, RecordedOutcome
from breakscan.prove.worker.protocol import SeenOutcomes, Stress, StressedCall, StressedRun
from breakscan.prove.worker.shared_state import put_back, ready
from breakscan.prove.worker.stress import stressed_values
from breakscan.prove.worker.time_limit import TimeLimitReached, time_limit
from breakscan.prove.worker.torch_modes import eager_stance

if TYPE_CHECKING:
    from torch import Tensor

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
        """Answers :class:`.protocol.RecordOutcomes`."""
        seen: set[RecordedOutcome] = set()
        for captured in self._callables:
            for call in captured.calls:
                with ready(captured, call), eager_stance(), self._recorder.recording() as found:
                    run_call(captured, call, captured.original, backward=True, compare_state=False)
                seen |= found
        return self._recorder.outcomes(seen)

    def stressed(self, path: str, stress: Stress, compiled: bool, seconds: float) -> StressedRun:
        """Answers :class:`.protocol.RunStressed`."""
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
