"""What a process does with the calls that it captured, when it is told to: runs them eager and compiled, always from
the same state, and times them."""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscan.worker import compile_options as choices
from breakscan.worker.call_result import CallResult, leaves, outcome_of, projections, wait_for_device
from breakscan.worker.capture import Capture, CapturedCall, CapturedCallable
from breakscan.worker.compile_failure import one_line
from breakscan.worker.executed_lines import executed_lines
from breakscan.worker.state_snapshot import digests, set_rng_state
from breakscan.worker.timing import COMPILED, EAGER
from breakscan.worker.torch_modes import Modes

SEQUENCE = 6
"""Calls in a row, without anything being put back but values, that show recompiles."""
CHUNKS = 40
"""Parts of a block, of which the median counts."""
MOST_WARMUP = 30.0
"""Seconds."""


@dataclass(slots=True)
class _Step:
    """A call that is timed.  ``refills`` says that it changes containers that it is given: the program hands it new
    ones each time, so they are put back each time."""

    call: Callable[..., Any]
    case: CapturedCall
    directions: list[Any] | None
    leaves: list[Any]
    refills: bool


@dataclass(frozen=True, slots=True)
class _Call:
    """One of a row: its number in it, what it took, and what was compiled in it."""

    number: int
    seconds: float
    compiles: int


class CommandHandler:
    """The commands of the parent process are this object's public methods; what they take and give is plain JSON.

    ``watched`` are the paths of files whose executed lines are told.
    """

    def __init__(self, capture: Capture, stop_recording: Callable[[], None], cache: Path) -> None:
        self._capture = capture
        self._stop_recording = stop_recording
        self._cache = cache
        self._steps: dict[str, list[list[_Step]]] = {}
        self._modes: Modes | None = None
        self._compiles = 0
        self.program: dict[str, Any] = {}

    @property
    def _doors(self) -> list[CapturedCallable]:
        return self._capture.captured

    def describe(self) -> dict[str, Any]:
        """What was captured, and how the program got there."""
        captured = self._doors
        return {
            **self.program,
            "callables": [{"name": door.name, "calls": len(door.cases)} for door in captured],
            "modes": [case.modes.told() for door in captured for case in door.cases],
            "backward": [door.backward for door in captured],
            "left_out": sorted(set(self._capture.left_out)),
            "not_called": sorted({door.name for door in self._capture.doors if not door.cases and not door.passed}),
            "devices": sorted(self._devices()),
            "complete": all(memento.complete for door in captured for memento in self._mementos_of(door)),
            "warm_cache": _entries(self._cache),
        }

    def _devices(self) -> set[str]:
        """The types of those that the calls use: of NumPy arrays, the device that was set for new tensors tells."""
        if not self._doors:
            return set()
        import torch

        cuda: Any = torch.cuda
        tensors = [t for door in self._doors for memento in self._mementos_of(door) for t in memento.tensors.values()]
        return {tensor.device.type for tensor in tensors} | ({"cuda"} if cuda.is_initialized() else set())

    # -- how it is compiled -------------------------------------------------------------------------------------

    def choices(self) -> dict[str, Any]:
        """The backends and modes that there are, and what ``torch.compile`` was told for each callable."""
        return {
            "backends": choices.backends(),
            "all_backends": choices.all_backends(),
            "modes": choices.modes(),
            "told": [choices.told(door.context) for door in self._doors],
        }

    def meant(self, hows: list[dict[str, Any]]) -> list[dict[str, Any] | str | None]:
        """What ``torch.compile`` takes each of these keyword arguments for, as :func:`.compile_options.told`
        has it; its error in one line where it does not take them."""
        return [self._meant(how) for how in hows]

    def compile(self, how: dict[str, Any]) -> None:
        """From now on each callable is compiled with these keyword arguments of ``torch.compile``."""
        for door in self._doors:
            door.compiled, _ = self._capture.compile(door.original, how)

    # -- the same state for all ---------------------------------------------------------------------------------

    def save(self, path: str) -> dict[str, str]:
        """Decides which first calls run from a state of their own, and writes all values to a file, for the other
        processes.  Returns their digests."""
        import torch

        for door in self._doors:
            self._settle(door)
        torch.save(
            [
                {
                    "own": [case.state is not None for case in door.cases],
                    "rng": [case.rng for case in door.cases],
                    "values": [memento.values for memento in self._mementos_of(door)],
                }
                for door in self._doors
            ],
            path,
        )
        return self.digests()

    def start(self) -> list[dict[str, str]]:
        """Digests of all that the first call of each callable could reach, values and generators."""
        return [door.start for door in self._doors]

    def take(self, path: str) -> list[str]:
        """Takes the values of a file in the place of its own, and which first calls run from a state of their own.
        Returns what cannot be taken."""
        problems: list[str] = []
        given = _load(path)
        for door, its in zip(self._doors, given, strict=False):
            for case, own in zip(door.cases, its["own"], strict=False):
                case.state = case.state if own else None
            for memento, values in zip(self._mementos_of(door), its["values"], strict=False):
                problems += memento.take_over(values)
            for case, rng in zip(door.cases, its["rng"], strict=False):
                case.rng = {**case.rng, **rng}
        return list(dict.fromkeys(problems))

    def digests(self) -> dict[str, str]:
        """Of all values as they are when they have been put back into the program's own objects."""
        found: dict[str, str] = {}
        for number, door in enumerate(self._doors):
            for at, case in enumerate(door.cases):
                self._put_back(door, case)
                for memento in self._together(door, case):
                    found.update({f"{number}.{at}.{name}": said for name, said in digests(memento.now()).items()})
                found.update({f"{number}.{at} {name}": said for name, said in digests(case.rng).items()})
        return found

    # -- runs for what they give --------------------------------------------------------------------------------

    def eager(self, path: str, watched: list[str]) -> dict[str, Any]:
        """Runs each call eager, writes the outcomes to a file, and returns which lines of the watched files ran, and
        whether random numbers were drawn."""
        is_random = False
        with executed_lines(watched) as lines:
            pass
        outcomes = []
        for door in self._doors:
            for case in door.cases:
                with self._ready(door, case), _eager_stance(), executed_lines(watched) as ran:
                    outcomes.append(self._outcome(door, case, door.original, backward=True))
                is_random = is_random or digests(case.rng) != {**digests(case.rng), **outcomes[-1].rng}
                for name, numbers in ran.items():
                    lines[name] |= numbers
        _save(outcomes, path)
        return {"lines": {name: sorted(numbers) for name, numbers in lines.items()}, "random": is_random}

    def double(self, path: str) -> str | None:
        """Runs each call eager in double precision.  Returns why that cannot be, where it cannot."""
        import torch

        outcomes = []
        for door in self._doors:
            for case in door.cases:
                with self._ready(door, case), _eager_stance(), _without_autocast():
                    tensors = [t for memento in self._together(door, case) for t in memento.tensors.values()]
                    held = [(t, t.data) for t in tensors if t.dtype.is_floating_point]
                    torch.set_default_dtype(torch.float64)
                    try:
                        for tensor, data in held:
                            tensor.grad = None
                            tensor.data = data.double()
                        outcomes.append(self._outcome(door, case, door.original, backward=True, compare_state=False))
                    except Exception as error:
                        return f"{type(error).__qualname__}: {error}"[:300]
                    finally:
                        torch.set_default_dtype(case.modes.default_dtype)
                        for tensor, data in held:
                            tensor.grad = None
                            tensor.data = data
                if outcomes[-1].error is not None:
                    return f"{outcomes[-1].error}: {outcomes[-1].error_text}"
        _save(outcomes, path)
        return None

    def compiled(self, first: str, steady: str, patient: bool = True) -> dict[str, Any]:
        """Runs each call compiled, recorded: for the first time, then a row of calls, then again.  Writes the outcomes
        of both.  Returns the seconds of the first calls, of them and the row together, how many calls there were of how
        many callables, how many compiles the row took, and whether each call of its latter half did.  What follows is
        not recorded.

        Where it is not patient and a first call fails, that is all, and what is returned is how it ``failed``."""
        cold: list[tuple[CapturedCallable, CapturedCall, CallResult]] = []
        for door in self._doors:
            for case in door.cases:
                cold.append((door, case, self._run_compiled(door, case)))
                failed = cold[-1][2].failed
                if failed is not None and not patient:
                    self._stop_recording()
                    return {"failed": failed}
        _save([outcome for _, _, outcome in cold], first)
        firsts = [outcome for door, case, outcome in cold if case is door.cases[0]]
        with self._counted_compiles():
            row = self._sequence()
            compiles = self._compiles
        _save([self._run_compiled(door, case) for door in self._doors for case in door.cases], steady)
        self._stop_recording()
        return {
            "calls": 2 * len(cold) + SEQUENCE * len(self._doors),
            "doors": len(self._doors),
            "first_call_seconds": sum(one.seconds + one.backward_seconds for one in firsts),
            "cold_seconds": sum(one.seconds + one.backward_seconds for _, _, one in cold)
            + sum(call.seconds for call in row),
            "cold_calls": len(cold) + len(row),
            "compiles_in_row": compiles,
            "endless": all(call.compiles for call in row if call.number >= SEQUENCE // 2),
            "failed": None,
        }

    def compiled_random(self, path: str) -> None:
        """Runs each call compiled anew so that random numbers are drawn as eager code draws them.  Not recorded."""
        import torch
        import torch._inductor.config as inductor

        self._stop_recording()
        torch._dynamo.reset()
        with inductor.patch(fallback_random=True):
            _save([self._run_compiled(door, case) for door in self._doors for case in door.cases], path)
        torch._dynamo.reset()

    # -- runs for their time ------------------------------------------------------------------------------------

    def prepare(self, kind: str = COMPILED) -> float:
        """Gets ready for a :meth:`block` of this kind: nothing is recorded any more, what is compiled is compiled anew,
        and runs until its time is steady.  Returns the seconds of a step."""
        import torch

        self._stop_recording()
        self._clean_contexts()
        if kind == COMPILED:
            torch._dynamo.reset()
        gc.collect()
        # What is there stays: looking at it again before each block would take longer than the block.
        gc.freeze()
        rows = [
            [self._step(door, case, door.original if kind == EAGER else door.entry) for case in door.cases]
            for door in self._doors
        ]
        longest = max(map(len, rows))
        self._steps[kind] = [[row[at % len(row)] for row in rows] for at in range(longest)]
        modes = [case.modes for door in self._doors for case in door.cases]
        self._modes = modes[0] if all(one == modes[0] for one in modes) else None
        return self._warm_up(kind)

    def block(self, calls: int, kind: str = COMPILED) -> dict[str, Any]:
        """Times so many steps: a step is one call of each callable.  Returns the median of a few parts: what else the
        machine does now and then is not in it."""
        import torch

        cuda: Any = torch.cuda
        cycle = self._steps[kind]
        for door in self._doors:
            assert door.state is not None
            door.state.restore(values_only=True)
            for case in door.cases:
                case.inputs.restore()
        gc.collect()
        with contextlib.ExitStack() as stack:
            if self._modes is not None:
                stack.enter_context(self._modes.set())
            if kind == EAGER:
                stack.enter_context(_eager_stance())
            compiles = stack.enter_context(self._counted_compiles())
            steps = [cycle[at % len(cycle)] for at in range(calls)]
            run = self._run if self._modes is not None else self._run_in_modes
            # A device works on while the next call is prepared: waiting for it behind each part would be timed, too.
            # All calls of a cycle in each part: they may differ.
            parts = 1 if cuda.is_initialized() else CHUNKS
            size = -(-calls // (parts * len(cycle))) * len(cycle)
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
        return {"seconds": statistics.median(seconds), "compiles": compiles()}

    def memory(self, kind: str = COMPILED) -> int | None:
        """The most bytes in use while a few steps run: on the device, else of the process.  None where the system does
        not tell."""
        import torch

        cuda: Any = torch.cuda
        if cuda.is_initialized():
            cuda.synchronize()
            cuda.reset_peak_memory_stats()
            self.block(2 * len(self._steps[kind]), kind)
            return int(cuda.max_memory_allocated())
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.block(2 * len(self._steps[kind]), kind)
            status = Path("/proc/self/status").read_text()
        except OSError:
            return None
        line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
        return int(line.split()[1]) * 1024 if line else None

    def launches(self, kind: str = COMPILED) -> dict[str, int] | None:
        """What one step hands to the device: kernels one by one, and CUDA graphs.  None without a device."""
        import torch

        cuda: Any = torch.cuda
        if not cuda.is_initialized():
            return None
        from torch.profiler import ProfilerActivity, profile

        steps = len(self._steps[kind])
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            self.block(steps, kind)
        counts = {"kernels": 0, "cuda_graphs": 0}
        for event in profiled.events() or ():
            name = event.name
            if name.startswith(("cudaLaunchKernel", "cuLaunchKernel")):
                counts["kernels"] += 1
            elif name.startswith("cudaGraphLaunch"):
                counts["cuda_graphs"] += 1
        return {name: round(count / steps) for name, count in counts.items()}

    # -- the inside ---------------------------------------------------------------------------------------------

    def _meant(self, how: dict[str, Any]) -> dict[str, Any] | str | None:
        try:
            return choices.told(self._capture.compile(lambda: None, how)[1])
        except Exception as error:
            return one_line(error)

    def _mementos_of(self, door: CapturedCallable) -> list[Any]:
        own = [case.state for case in door.cases if case.state is not None]
        return [door.state, *own, *(case.inputs for case in door.cases)]

    def _together(self, door: CapturedCallable, case: CapturedCall) -> tuple[Any, ...]:
        return (case.state or door.state, case.inputs)

    def _put_back(self, door: CapturedCallable, case: CapturedCall) -> None:
        for memento in self._together(door, case):
            memento.restore()
        set_rng_state(case.rng)

    def _settle(self, door: CapturedCallable) -> None:
        """Drops the state that the first call found where it is like that of the later ones, or where the call cannot
        be repeated from it."""
        first = door.cases[0]
        if first.state is None or door.state is None:
            return
        if first.state.fits and first.state.is_other_than(door.state):
            first.state.share(door.state)
            with self._ready(door, first), _eager_stance():
                outcome = self._outcome(door, first, door.original, backward=False, compare_state=False)
            if outcome.error is None:
                return
        first.state = None

    @contextlib.contextmanager
    def _ready(self, door: CapturedCallable, case: CapturedCall) -> Iterator[None]:
        """The state as the call found it, the modes, too; and put back again behind the block."""
        self._put_back(door, case)
        try:
            with case.modes.set():
                yield
        finally:
            self._put_back(door, case)

    def _outcome(
        self,
        door: CapturedCallable,
        case: CapturedCall,
        call: Callable[..., Any],
        backward: bool,
        compare_state: bool = True,
    ) -> CallResult:
        return outcome_of(
            lambda: call(*case.args, **case.kwargs),
            backward and case.modes.grad and not case.modes.inference,
            self._together(door, case),
            compare_state,
        )

    def _run_compiled(self, door: CapturedCallable, case: CapturedCall) -> CallResult:
        _mark_step()
        with self._ready(door, case):
            # Where the program goes not back, a backward would be compiled that it has not.
            return self._outcome(door, case, door.compiled, backward=door.backward)

    def _sequence(self) -> list[_Call]:
        """A row of calls as the program makes them: numbers that the calls change stay changed."""
        import torch

        row = []
        for door in self._doors:
            self._put_back(door, door.cases[0])
            for number in range(SEQUENCE):
                case = door.cases[number % len(door.cases)]
                if number:
                    assert door.state is not None
                    door.state.restore(values_only=True)
                    case.inputs.restore()
                _mark_step()
                before = self._compiles
                wait_for_device()
                began = time.perf_counter()
                with case.modes.set(), contextlib.suppress(Exception):
                    result = door.compiled(*case.args, **case.kwargs)
                    if door.backward:
                        torch.autograd.backward(*projections(result))
                    del result
                wait_for_device()
                row.append(_Call(number, time.perf_counter() - began, self._compiles - before))
            self._put_back(door, door.cases[0])
        return row

    def _step(self, door: CapturedCallable, case: CapturedCall, call: Callable[..., Any]) -> _Step:
        # Steady are the later calls: what a first one found is not timed.
        case = replace(case, state=None)
        with self._ready(door, case), _eager_stance():
            result = door.original(*case.args, **case.kwargs)
            refills = case.inputs.plains_now() != case.inputs.plains
            directions = projections(result)[1] or None if door.backward else None
        own = [leaf for memento in self._together(door, case) for leaf in memento.leaves().values()]
        return _Step(call, case, directions, own, refills)

    def _run(self, step: _Step) -> None:
        import torch

        _mark_step()
        result = step.call(*step.case.args, **step.case.kwargs)
        if step.directions is not None:
            if isinstance(result, torch.Tensor):
                torch.autograd.backward(result, step.directions[0])
            else:
                ends = [one for _, one in leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
                torch.autograd.backward(ends, step.directions)
            for leaf in step.leaves:
                leaf.grad = None
        if step.refills:
            step.case.inputs.refill()

    def _run_in_modes(self, step: _Step) -> None:
        with step.case.modes.set():
            self._run(step)

    def _warm_up(self, kind: str) -> float:
        """Runs until two blocks in a row compile nothing and take about the same time.  Returns the seconds of a
        step."""
        began = time.monotonic()
        size = len(self._steps[kind])
        seconds = 0.0
        calm = 0
        while calm < 2 and time.monotonic() - began < MOST_WARMUP:
            told = self.block(size, kind)
            near = seconds and abs(told["seconds"] - seconds) < 0.1 * seconds
            calm = calm + 1 if near and not told["compiles"] else 0
            seconds = told["seconds"]
            # Blocks of at least some milliseconds: shorter ones never agree.
            if seconds * size < 0.02:
                size = min(max(size + 1, round(0.02 / max(seconds, 1e-7))), size * 10)
        return seconds

    @contextlib.contextmanager
    def _counted_compiles(self) -> Iterator[Callable[[], int]]:
        """Yields what tells how many compiles have begun in the block."""
        from torch._dynamo.callback import callback_handler

        self._compiles = 0

        def started(*_: Any) -> None:
            self._compiles += 1

        callback_handler.register_start_callback(started)
        try:
            yield lambda: self._compiles
        finally:
            callback_handler.remove_start_callback(started)

    def _clean_contexts(self) -> None:
        """Takes the recorder's hooks out of what torch.compile made: they would be timed, too."""
        for context in self._capture.contexts:
            hooks = context.enter_exit_hooks
            hooks[:] = [hook for hook in hooks if not hasattr(hook, "meter")]


def _eager_stance() -> Any:
    import torch

    return torch.compiler.set_stance("force_eager")


@contextlib.contextmanager
def _without_autocast() -> Iterator[None]:
    import torch

    with torch.autocast("cpu", enabled=False), contextlib.ExitStack() as stack:
        if torch.cuda.is_available():
            stack.enter_context(torch.autocast("cuda", enabled=False))
        yield


def _mark_step() -> None:
    import torch

    compiler: Any = torch.compiler
    compiler.cudagraph_mark_step_begin()


def _save(outcomes: list[CallResult], path: str) -> None:
    import torch

    torch.save([outcome.plain() for outcome in outcomes], path)


def _load(path: str) -> list[Mapping[str, Any]]:
    import torch

    loaded: list[Mapping[str, Any]] = torch.load(path, map_location="cpu", weights_only=True)
    return loaded


def _entries(cache: Path) -> int:
    """Files of compiler caches that are there already, in the arm's own folder and where the program keeps them."""
    folders = {str(cache), *(_backend_cache() or {}).values()}
    return sum(len(files) for folder in folders for _, _, files in os.walk(folder))


def _backend_cache() -> dict[str, str]:
    """Where the backend keeps what it has compiled: the program may have chosen a folder itself."""
    return {
        name: folder
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        if (folder := os.environ.get(name)) is not None
    }
