"""Runs the captured calls for their results: eager, in higher precision, and compiled, from the same state."""

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from breakscan.prove import torch_state
from breakscan.prove.call_result import CallResult, one_line, projections, result_of
from breakscan.prove.capture import CapturedCall, CapturedCallable
from breakscan.prove.equal import Change, Expected, Noise, Part, ResultDifference, places_of
from breakscan.prove.outside import OUTSIDE
from breakscan.prove.overlay import ExecutedCode
from breakscan.prove.protocol import Failure, RanCode
from breakscan.prove.state import digests, read_file, write_file
from breakscan.prove.torch_state import eager_stance, mark_step, plain_modes, torch, wait_for_device


class CompileClock(contextlib.ExitStack):
    """Counts the compiles that start in a block, and the seconds that they take."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.seconds = 0.0
        self._began: list[float] = []

    def __enter__(self) -> "CompileClock":
        from torch._dynamo.callback import callback_handler as handler

        handler.register_start_callback(self._started)
        self.callback(handler.remove_start_callback, self._started)
        handler.register_end_callback(self._ended)
        self.callback(handler.remove_end_callback, self._ended)
        return self

    def _started(self, *_: object) -> None:
        self.count += 1
        self._began.append(time.perf_counter())

    def _ended(self, *_: object) -> None:
        if self._began:
            began = self._began.pop()
            if not self._began:
                self.seconds += time.perf_counter() - began


class RunQueue(contextlib.ExitStack):
    """For how long the threads of this process were ready to run while something else had the core, as Linux counts it
    (``Documentation/scheduler/sched-stats.rst``)."""

    def __init__(self) -> None:
        super().__init__()
        self._files: list[int] = []
        for thread in dict.fromkeys([threading.get_native_id(), *map(int, os.listdir("/proc/self/task"))]):
            with contextlib.suppress(OSError):
                self._files.append(os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY))
                self.callback(os.close, self._files[-1])

    def waits(self) -> list[float]:
        """The seconds for which each thread has waited since it began, this one first."""
        return [*map(_waits, self._files)] or [0.0]


def unloaded_time() -> float:
    """A clock that stands still while this thread waits for a core: other programs do not decide what is looked at."""
    with RunQueue() as queue:
        return time.perf_counter() - queue.waits()[0]


def _waits(file: int) -> float:
    try:
        return int(os.pread(file, 64, 0).split()[1]) * 1e-9
    except (OSError, IndexError):
        # The thread has ended.
        return 0.0


def calls_of(callables: Sequence[CapturedCallable]) -> Iterator[tuple[CapturedCallable, CapturedCall]]:
    """All captured calls."""
    return ((captured, call) for captured in callables for call in captured.calls)


def put_back(captured: CapturedCallable, call: CapturedCall) -> None:
    """Puts back the state that a call found."""
    snapshots = captured.snapshots_of(call)
    for snapshot in snapshots:
        snapshot.restore()
    OUTSIDE.put_back([file for snapshot in snapshots for file in snapshot.files])
    torch_state.set_rng_state(call.rng)
    # The program may have stopped within autocast, which keeps what it has cast.
    torch.clear_autocast_cache()


def put_values_back(captured: CapturedCallable) -> None:
    """Puts back the values of the state, and the inputs of all calls: attributes that the calls changed stay."""
    assert captured.state is not None
    captured.state.restore(values_only=True)
    for call in captured.calls:
        call.inputs.restore()
    torch.clear_autocast_cache()


@contextlib.contextmanager
def ready(captured: CapturedCallable, call: CapturedCall, after: bool = True) -> Iterator[None]:
    """The state and the modes that the call found; the state is put back ``after`` the block, too."""
    put_back(captured, call)
    try:
        with call.modes.set():
            yield
    finally:
        if after:
            put_back(captured, call)


def in_turn(captured: CapturedCallable, call: CapturedCall) -> contextlib.AbstractContextManager[None]:
    """The same for one of all calls in turn: the state is put back after the last one."""
    return ready(captured, call, after=call is captured.calls[-1])


def _settle(captured: CapturedCallable) -> None:
    """Drops the state that the first call found if it is like that of later calls, or the call does not run from it."""
    first = captured.calls[0]
    if first.state is None or captured.state is None:
        return
    if first.state.fits and first.state.is_other_than(captured.state):
        first.state.share(captured.state)
        with ready(captured, first), eager_stance():
            if run_call(captured, first, captured.original, backward=False).error is None:
                return
    first.state = None


@dataclass(frozen=True)
class Reference:
    """The results of the unchanged program, in the file ``path``, with the ``noise`` of further runs of it."""

    path: str
    noise: tuple[Noise, ...] = ()

    @contextlib.contextmanager
    def opened(self) -> Iterator[Expected]:
        """Yields the expected results, in the modes in which they are compared."""
        with plain_modes():
            if self.path not in _OPEN:
                _OPEN[self.path] = read_file(self.path)
            expected = _OPEN[self.path]
            expected.know(self.noise)
            yield expected


_OPEN: dict[str, Expected] = {}


@dataclass(frozen=True)
class Compared:
    """The differences of a run, and how far values are apart.  ``varying`` are those that no rounding explains if the
    program is the unchanged one; that of a Python number, a text, a file or the environment is one of ``unlike``.
    ``printed`` are the texts of the first call that prints another one, ``same_parts`` says that the first call returns
    the same parts, ``loose`` that a run in higher precision may show more."""

    differences: tuple[ResultDifference, ...]
    distances: tuple[Noise, ...]
    varying: tuple[ResultDifference, ...] = ()
    unlike: tuple[ResultDifference, ...] = ()
    printed: tuple[str, ...] | None = None
    same_parts: bool = True
    loose: bool = True


def compare(reference: Reference, results: Sequence[CallResult], eager: bool, moves: bool | None = None) -> Compared:
    """Compares the results of all calls.  ``moves`` says if parts of results may be at other places, from now on."""
    with reference.opened() as expected:
        expected.moves = expected.moves if moves is None else moves
        found = expected.differences(results, eager)
        unlike = [one for one in found if _is_unlike(one, expected.results)]
        known = [one for one in found if one.change is Change.ERROR and not expected.drowns(one.part, one.path)]
        varying = [one for one in found if one not in unlike and one not in known]
        pairs = list(zip(expected.results, results, strict=False))
        return Compared(
            tuple(found),
            tuple(expected.distances()),
            tuple(varying),
            tuple(unlike),
            next(((one.printed, other.printed) for one, other in pairs if one.printed != other.printed), None),
            all(one.others.keys() == other.others.keys() for one, other in pairs[:1]),
            expected.is_loose,
        )


def compare_call(reference: Reference, number: int, result: CallResult) -> Compared:
    """Compares the compiled result of the call with this number."""
    with reference.opened() as expected:
        results = [*expected.results[:number], result, *expected.results[number + 1 :]]
    return compare(reference, results, eager=False)


def _is_unlike(difference: ResultDifference, results: Sequence[CallResult]) -> bool:
    """Return True if a Python number or a text differs, which need not repeat itself: a time, the id of the process."""
    result = results[difference.call]
    kind = {Part.OUTPUT: result.others, Part.STATE: result.changes}.get(difference.part, {}).get(difference.path)
    is_text = bool(kind) and difference.change in (Change.ERROR, Change.ELEMENT, Change.TEXT)
    return difference.part is Part.OUTSIDE or is_text


BUSY = 0.1
"""The share of the first compiled calls for which they may wait for a core."""
SEQUENCE = 6
"""Calls in a row, between which only values are put back: they show recompiles."""
SHORT_SEQUENCE = 3
"""The same where the first calls take longer than :data:`LONG` seconds."""
LONG = 0.5


@dataclass(frozen=True)
class ReferenceRun:
    """The unchanged program: ``random`` says that it draws random numbers, ``outside`` that it changes files or the
    environment, ``first_seconds`` how long the first call of each callable takes, and ``no_exact`` why it does not run
    in higher precision: ``double``, or float32."""

    random: bool
    outside: bool
    first_seconds: float
    double: bool
    no_exact: str | None


@dataclass(frozen=True)
class CompiledResult:
    """The results of the first compiled calls, and of those after a row of calls; or how a first call failed.
    Each callable was called ``calls_each`` times while it was recorded.  ``compiling_seconds`` are those that the first
    calls and the row took longer than calls that compile nothing.  ``busy`` says that other programs had the cores
    meanwhile, ``endless`` that each call of the latter half of the row compiled something."""

    failure: Failure | None = None
    compared: tuple[Compared, ...] = ()
    calls_each: float = 1.0
    first_call_seconds: float = 0.0
    compiling_seconds: float = 0.0
    busy: bool = False
    endless: bool = False


class CallRuns:
    """The captured calls and their state.  ``stop_recording`` ends the recording of the process."""

    def __init__(self, callables: Sequence[CapturedCallable], stop_recording: Callable[[], None]) -> None:
        self._callables = callables
        self._stop_recording = stop_recording
        self._results: list[CallResult] = []

    def save(self, path: str) -> None:
        """Writes the state of all calls to a file for the other processes, that of a first call where it needs one."""
        saved = []
        for captured in self._callables:
            _settle(captured)
            calls = [(call.state is not None, call.rng) for call in captured.calls]
            saved.append((calls, [snapshot.values for snapshot in captured.snapshots()]))
        write_file(saved, path)

    def take(self, path: str) -> tuple[str, ...]:
        """Replaces the state of all calls by that of a file.  Returns what could not be taken over."""
        problems: list[str] = []
        for captured, (calls, states) in zip(self._callables, read_file(path), strict=False):
            for call, (has_own, rng) in zip(captured.calls, calls, strict=False):
                call.state = call.state if has_own else None
                call.rng = {**call.rng, **rng}
            for snapshot, values in zip(captured.snapshots(), states, strict=False):
                problems += snapshot.take_over(values)
        return tuple(dict.fromkeys(problems))

    def reference(self, path: str) -> ReferenceRun:
        """Runs each call eager, and in higher precision if that is possible.  Writes the results for all processes."""
        results = self._eager()
        double = not isinstance(exact := self._exact(True), str)
        exact = exact if double else self._exact(False)
        no_exact = exact if isinstance(exact, str) else None
        with plain_modes():
            expected = Expected(results, None if isinstance(exact, str) else exact)
            # What takes long is done once.
            _ = expected.sizes
            write_file(expected, path)
        calls = list(zip(calls_of(self._callables), results, strict=True))
        is_random = any((start := digests(call.rng)) != {**start, **one.rng} for (_, call), one in calls)
        firsts = [one.seconds + one.backward_seconds for (captured, call), one in calls if call is captured.calls[0]]
        outside = any(one.outside for one in results)
        return ReferenceRun(is_random, outside, sum(firsts), double, no_exact)

    def nudged(self, reference: Reference, seed: int, long: bool) -> tuple[Noise, ...]:
        """Runs each call eager, of long calls one, with nudged values.  Returns how far that moves the results."""
        if not long:
            return compare(reference, self._eager(seed), True).distances
        calls = list(calls_of(self._callables))
        number = seed % len(calls)
        return compare_call(reference, number, *self._eager(seed, [calls[number]])).distances

    def eager(self, watched: Mapping[str, Sequence[int]]) -> tuple[dict[str, RanCode], bool]:
        """Runs each call eager.  Returns the code that they run of files, and whether not all of these lines, which
        have changed, are in it: code around the calls has changed, too."""
        with ExecutedCode(watched).noted(closely=True) as executed:
            self._results = self._eager()
        ran = executed.found()
        return ran, any(set(lines) - ran[path].lines for path, lines in watched.items())

    def compare(self, reference: Reference, moves: bool | None = None) -> Compared:
        """Compares the results of the last eager run.  If parts of results ``moves``, backward passes start from those
        that the unchanged program has, from now on."""
        with reference.opened() as expected:
            results = zip(calls_of(self._callables), expected.results, self._results, strict=False)
            for (captured, _), one, other in results if moves else ():
                if places := places_of(one, other):
                    captured.ends = [places[path] for path in one.outputs]
        if moves and any(captured.ends is not None for captured in self._callables):
            self._results = self._eager()
        return compare(reference, self._results, True, moves)

    def exact(self, reference: Reference, double: bool) -> Compared | None:
        """Runs each call eager in higher precision, if that is possible."""
        if isinstance(results := self._exact(double), str):
            return None
        with reference.opened() as expected:
            return Compared(tuple(expected.differences_when_exact(results)), tuple(expected.distances(exact=True)))

    def _eager(
        self, nudge: int = 0, calls: Iterable[tuple[CapturedCallable, CapturedCall]] | None = None
    ) -> list[CallResult]:
        results = []
        for captured, call in calls or calls_of(self._callables):
            with in_turn(captured, call), eager_stance():
                for snapshot in captured.snapshots_of(call) if nudge else ():
                    snapshot.nudge(nudge)
                results.append(run_call(captured, call, captured.original, backward=True))
        return results

    def _exact(self, double: bool) -> list[CallResult] | str:
        """The results in higher precision, or why there are none."""
        results: list[CallResult] = []
        for captured, call in calls_of(self._callables):
            tensors = [tensor for one in captured.snapshots_of(call) for tensor in one.tensors.values()]
            with in_turn(captured, call), eager_stance():
                try:
                    with torch_state.higher_precision(tensors, double):
                        results.append(run_call(captured, call, captured.original, backward=True))
                except Exception as error:
                    return one_line(error)
            if (failure := results[-1].failure) is not None:
                return failure.text
        return results

    def compiled(self, reference: Reference, patient: bool, long: bool) -> CompiledResult:
        """Runs each call compiled and recorded: once, then in a row of calls, then once more, of long calls the last
        alone.  Unless ``patient``, it ends where a first call fails.  What follows is not recorded."""
        cold: list[CallResult] = []
        alone, began = unloaded_time(), time.perf_counter()
        for captured, call in calls_of(self._callables):
            cold.append(run_compiled_call(captured, call))
            if cold[-1].failure is not None and not patient:
                self._stop_recording()
                return CompiledResult(failure=cold[-1].failure)
        size = SHORT_SEQUENCE if long else SEQUENCE
        rows = [_row(captured, size) for captured in self._callables]
        pairs = list(zip(calls_of(self._callables), cold, strict=True))
        steady = [
            run_compiled_call(captured, call) if not long or call is captured.calls[-1] else one
            for (captured, call), one in pairs
        ]
        self._stop_recording()
        calls = len(cold) + sum(now is not then for now, then in zip(steady, cold, strict=True))
        its = [(call is captured.calls[0], one.seconds + one.backward_seconds) for (captured, call), one in pairs]
        # The seconds that the first calls and the rows took longer than those of a row that compiled nothing.
        compiling = sum(seconds for _, seconds in its)
        for captured, row in zip(self._callables, rows, strict=True):
            calm = statistics.median([seconds for seconds, compiles in row if not compiles] or [0.0])
            compiling += sum(seconds for seconds, _ in row) - (len(captured.calls) + size) * calm
        return CompiledResult(
            compared=tuple(compare(reference, one, False) for one in (cold, steady)),
            calls_each=calls / len(self._callables) + size,
            first_call_seconds=sum(seconds for is_first, seconds in its if is_first),
            compiling_seconds=max(0.0, compiling),
            busy=unloaded_time() - alone < (1 - BUSY) * (time.perf_counter() - began),
            endless=all(compiles for row in rows for _, compiles in row[size // 2 :]),
        )


def _row(captured: CapturedCallable, size: int) -> list[tuple[float, int]]:
    """The seconds and compiles of a row of calls as the program makes them: numbers that they change stay changed."""
    row = []
    put_back(captured, captured.calls[0])
    for number in range(size):
        if number:
            put_values_back(captured)
        call = captured.calls[number % len(captured.calls)]
        mark_step()
        wait_for_device()
        began = time.perf_counter()
        with CompileClock() as compiles:
            with call.modes.set(), contextlib.suppress(Exception):
                result = captured.compiled(*call.args, **call.kwargs)
                if captured.backward:
                    torch.autograd.backward(*projections(result))
                del result
            wait_for_device()
        row.append((time.perf_counter() - began, compiles.count))
    put_back(captured, captured.calls[0])
    return row


def run_call(
    captured: CapturedCallable, call: CapturedCall, run: Callable[..., object], backward: bool, varied: bool = False
) -> CallResult:
    """Runs a captured call, and the backward pass if that is wanted and the call allows it.  Of the large tensors of a
    ``varied`` call, and of all but the first call of a callable, samples are kept."""
    backward = backward and call.modes.grad and not call.modes.inference
    sampled = varied or call is not captured.calls[0]
    snapshots = captured.snapshots_of(call)
    hooks, ends = captured.backward, captured.ends
    return result_of(lambda: run(*call.args, **call.kwargs), backward, snapshots, sampled, hooks, ends)


def run_compiled_call(
    captured: CapturedCallable, call: CapturedCall, compiled: Callable[..., object] | None = None
) -> CallResult:
    """Runs a captured call compiled, by default as the program compiles it."""
    mark_step()
    with in_turn(captured, call):
        # A backward pass that the program does not run would be compiled for nothing.
        return run_call(captured, call, compiled or captured.compiled, backward=captured.backward)
