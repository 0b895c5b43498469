"""Eager runs of the captured calls that show what the results on the program's own values do not: which outcomes tests
had, and what the calls do with other inputs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product

from breakscan.worker.call_result import CallResult, save_results
from breakscan.worker.call_runs import run_call
from breakscan.worker.captured_call import CapturedCallable
from breakscan.worker.compile_failure import one_line
from breakscan.worker.outcomes import OutcomeRecorder
from breakscan.worker.protocol import SeenOutcomes, Stress, StressedCall, StressedRun
from breakscan.worker.shared_state import put_back, ready
from breakscan.worker.stress import stressed_values
from breakscan.worker.time_limit import TimeLimitReached, time_limit
from breakscan.worker.torch_modes import eager_stance

LONGEST_CALL = 5.0
"""Seconds of one call with other inputs. With NaN, a loop may never end."""
LONGEST = 60.0
"""Seconds of all of them."""
MOST_GRADIENTS = 256 << 20
"""Bytes of the gradients of a call with other inputs; where there are more, it has no backward pass."""


class ProbeRuns:
    """Runs calls eager. ``recorder`` knows the outcomes of the tests that they run."""

    def __init__(self, callables: Sequence[CapturedCallable], recorder: OutcomeRecorder) -> None:
        self._callables = callables
        self._recorder = recorder

    def outcomes(self) -> dict[str, tuple[SeenOutcomes, ...]]:
        """Answers :class:`.protocol.RecordOutcomes`."""
        for captured in self._callables:
            for call in captured.calls:
                with ready(captured, call), eager_stance(), self._recorder.recording():
                    run_call(captured, call, captured.original, backward=True, compare_state=False)
        return self._recorder.outcomes()

    def stressed(self, path: str) -> StressedRun:
        """Answers :class:`.protocol.RunStressed`."""
        until = time.monotonic() + LONGEST
        ended: dict[StressedCall, CallResult] = {}
        stopped = None
        try:
            for stress, number in product(Stress, range(len(self._callables))):
                seconds = min(LONGEST_CALL, until - time.monotonic())
                result = _stressed_result(self._callables[number], stress, seconds)
                if result is not None:
                    ended[StressedCall(number, stress)] = result
        except Exception as error:
            # What the calls raise is a result.  This was raised between them.
            stopped = one_line(error)
        save_results(list(ended.values()), path)
        return StressedRun(tuple(ended), stopped)


def _stressed_result(captured: CapturedCallable, stress: Stress, seconds: float) -> CallResult | None:
    """The result of the first call with other inputs; None if there are none, or if it takes too long."""
    call = captured.calls[0]
    values = stressed_values(call.inputs, stress)
    if not values or seconds <= 0:
        return None
    leaves = [leaf for snapshot in captured.snapshots_of(call) for leaf in snapshot.leaves().values()]
    backward = sum(leaf.numel() * leaf.element_size() for leaf in leaves) <= MOST_GRADIENTS
    try:
        with call.inputs.holding(values), ready(captured, call), eager_stance(), time_limit(seconds):
            return run_call(captured, call, captured.original, backward).result
    except TimeLimitReached:
        return None
    finally:
        put_back(captured, call)
