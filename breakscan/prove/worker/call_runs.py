"""Runs the captured calls for their results: eager, in double precision, and compiled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from breakscan.prove.worker.call_result import CallOutcome, CallResult, outcome_of, projections, save_results
from breakscan.prove.worker.captured_call import CapturedCall, CapturedCallable
from breakscan.prove.worker.compile_counter import compiles_counted
from breakscan.prove.worker.device import mark_step, wait_for_device
from breakscan.prove.worker.executed_lines import executed_lines
from breakscan.prove.worker.protocol import CompiledResult, CompiledRun, EagerRun
from breakscan.prove.worker.shared_state import put_back, ready
from breakscan.prove.worker.tensor_values import digests
from breakscan.prove.worker.torch_modes import double_precision, eager_stance, without_autocast

SEQUENCE = 6
"""Calls in a row, between which only values are put back: they show recompiles."""


@dataclass(frozen=True, slots=True)
class _CallInRow:
    """A call of a row: its number, its seconds, and how many compiles started in it."""

    number: int
    seconds: float
    compiles: int


class CallRuns:
    """``stop_recording`` ends the recording of the process."""

    def __init__(self, callables: Sequence[CapturedCallable], stop_recording: Callable[[], None]) -> None:
        self._callables = callables
        self._stop_recording = stop_recording

    def eager(self, path: str, watched: tuple[str, ...]) -> EagerRun:
        """Answers :class:`.protocol.RunEager`."""
        lines: dict[str, set[int]] = {name: set() for name in watched}
        results: list[CallResult] = []
        is_random = False
        for captured, call in self._calls():
            with ready(captured, call), eager_stance(), executed_lines(watched) as ran:
                results.append(run_call(captured, call, captured.original, backward=True).result)
            before = digests(call.rng)
            is_random = is_random or before != {**before, **results[-1].rng}
            for name, numbers in ran.items():
                lines[name] |= numbers
        save_results(results, path)
        return EagerRun({name: tuple(sorted(numbers)) for name, numbers in lines.items()}, is_random)

    def double(self, path: str) -> str | None:
        """Answers :class:`.protocol.RunDouble`."""
        results: list[CallResult] = []
        for captured, call in self._calls():
            tensors = [tensor for one in captured.snapshots_of(call) for tensor in one.tensors.values()]
            with ready(captured, call), eager_stance(), without_autocast():
                try:
                    with double_precision(tensors):
                        outcome = run_call(captured, call, captured.original, backward=True, compare_state=False)
                except Exception as error:
                    return f"{type(error).__qualname__}: {error}"[:300]
            results.append(outcome.result)
            if outcome.result.error is not None:
                return f"{outcome.result.error}: {outcome.result.error_text}"
        save_results(results, path)
        return None

    def compiled(self, first: str, steady: str, patient: bool) -> CompiledResult:
        """Answers :class:`.protocol.RunCompiled`."""
        cold: list[CallResult] = []
        firsts: list[CallResult] = []
        for captured, call in self._calls():
            outcome = _run_compiled(captured, call)
            if outcome.failure is not None and not patient:
                self._stop_recording()
                return CompiledResult(failure=outcome.failure)
            cold.append(outcome.result)
            if call is captured.calls[0]:
                firsts.append(outcome.result)
        save_results(cold, first)
        row = self._row()
        self._save_compiled(steady)
        self._stop_recording()
        return CompiledResult(
            CompiledRun(
                calls=2 * len(cold) + SEQUENCE * len(self._callables),
                callables=len(self._callables),
                first_call_seconds=sum(one.seconds + one.backward_seconds for one in firsts),
                cold_seconds=sum(one.seconds + one.backward_seconds for one in cold) + sum(one.seconds for one in row),
                cold_calls=len(cold) + len(row),
                endless=all(one.compiles for one in row if one.number >= SEQUENCE // 2),
            )
        )

    def compiled_random(self, path: str) -> None:
        """Answers :class:`.protocol.RunCompiledRandom`."""
        import torch
        import torch._inductor.config as inductor

        self._stop_recording()
        torch._dynamo.reset()
        with inductor.patch(fallback_random=True):
            self._save_compiled(path)
        torch._dynamo.reset()

    def _calls(self) -> Iterator[tuple[CapturedCallable, CapturedCall]]:
        for captured in self._callables:
            for call in captured.calls:
                yield captured, call

    def _save_compiled(self, path: str) -> None:
        save_results([_run_compiled(captured, call).result for captured, call in self._calls()], path)

    def _row(self) -> list[_CallInRow]:
        """A row of calls as the program makes them: numbers that the calls change stay changed."""
        row = []
        for captured in self._callables:
            put_back(captured, captured.calls[0])
            for number in range(SEQUENCE):
                call = captured.calls[number % len(captured.calls)]
                if number:
                    assert captured.state is not None
                    captured.state.restore(values_only=True)
                    call.inputs.restore()
                row.append(_call_in_row(captured, call, number))
            put_back(captured, captured.calls[0])
        return row


def _call_in_row(captured: CapturedCallable, call: CapturedCall, number: int) -> _CallInRow:
    import torch

    mark_step()
    wait_for_device()
    began = time.perf_counter()
    with compiles_counted() as counter:
        with call.modes.set(), contextlib.suppress(Exception):
            result = captured.compiled(*call.args, **call.kwargs)
            if captured.backward:
                torch.autograd.backward(*projections(result))
            del result
        wait_for_device()
    return _CallInRow(number, time.perf_counter() - began, counter.count)


def run_call(
    captured: CapturedCallable,
    call: CapturedCall,
    run: Callable[..., object],
    backward: bool,
    compare_state: bool = True,
) -> CallOutcome:
    """Runs a captured call, and the backward pass if that is wanted and the call allows it."""
    return outcome_of(
        lambda: run(*call.args, **call.kwargs),
        backward and call.modes.grad and not call.modes.inference,
        captured.snapshots_of(call),
        compare_state,
    )


def _run_compiled(captured: CapturedCallable, call: CapturedCall) -> CallOutcome:
    mark_step()
    with ready(captured, call):
        # A backward pass that the program does not run would be compiled for nothing.
        return run_call(captured, call, captured.compiled, backward=captured.backward)
