"""A few steady steps under torch.profiler, on request: where the time of a step goes.  A step is the time from one call
of something compiled to the next.  It is steady if nothing is compiled in it."""

import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks
from breakscan.recording.hooks.run_tallies import CallTally
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.records import HostCall, StepsProfiled, time_covered

STEPS = 5  # steps that are profiled, after one in which the profiler starts up
_STEADY = 5  # steady steps before those: torch compiles, tunes and captures CUDA graphs in the first
_LONGEST = 10.0  # seconds after which no further step is profiled
_ATTEMPTS = 5  # profiles that may be given up because something was compiled meanwhile


@dataclass(slots=True)
class _Steps:
    """The calls of one compiled thing: when the last began, and how long the steady steps since took."""

    began: float
    compilations: int
    steady: list[float] = field(default_factory=list)


class ProfileHook(Hook):
    """Profiles steps of what is first called often enough, once.  Ends where the program starts a profiler itself."""

    name = "profile"
    without = "where the time of a step goes is missing"
    wraps = ("torch.autograd.profiler:profile._prepare_trace",)
    needs = ("torch.autograd.profiler:_is_profiler_enabled",)

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._calls: dict[tuple[int, int], _Steps] = {}
        self._profiler: Any = None
        self._of: tuple[int, int] | None = None
        self._left = _ATTEMPTS
        self._steps = self._began = self._ended = 0

    @contextmanager
    def installed(self) -> Iterator[bool]:
        with super().installed() as works:
            self.hooks.of(RunHook).profile = self.guarded(self._call) if works else None
            yield works

    def before(self, *_: Any, **__: Any) -> None:
        """The program starts a profiler: only one can be at work."""
        if self._of is not None and self._profiler is not None:
            self.ended()

    def _call(self, tally: CallTally) -> None:
        """A call begins."""
        now, key = time.perf_counter(), (threading.get_ident(), tally.key)
        compilations = self.hooks.of(RunHook).compilations
        known = self._calls.get(key)
        if known is None or known.compilations != compilations:
            if self._of == key:
                self._give_up()
            self._calls[key] = _Steps(now, compilations)
            return
        took, known.began = now - known.began, now
        if self._profiler is None:
            known.steady.append(took)
            if len(known.steady) >= _STEADY:
                self._start(key)
                known.began = time.perf_counter()
        elif self._of == key and not self._began:
            _wait_for_device()
            self._began = time.time_ns()
        elif self._of == key:
            self._steps, self._ended = self._steps + 1, time.time_ns()
            if self._steps == STEPS or self._steps * took > _LONGEST:
                self.ended()

    def _start(self, key: tuple[int, int]) -> None:
        import torch
        from torch.profiler import ProfilerActivity, profile

        runs = self.hooks.of(RunHook)
        if torch.autograd.profiler._is_profiler_enabled or not self._left:
            runs.profile = None
            return
        activities = [ProfilerActivity.CPU]
        if _wait_for_device():
            activities.append(ProfilerActivity.CUDA)
        profiler = profile(activities=activities, acc_events=True)
        # Kineto logs to standard error, where the program's own output stays, and reads how much when it starts.
        is_own = "KINETO_LOG_LEVEL" in os.environ
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        profiler.start()
        if not is_own:
            del os.environ["KINETO_LOG_LEVEL"]
        self._steps = self._began = 0
        self._left, self._of, self._profiler = self._left - 1, key, profiler

    def _give_up(self) -> None:
        profiler, self._profiler, self._of = self._profiler, None, None
        self._calls.clear()
        if profiler is not None:
            profiler.stop()

    def ended(self) -> None:
        """Ends the profile, and writes what the whole steps in it say."""
        self.hooks.of(RunHook).profile = None
        profiler, of, self._profiler, self._of = self._profiler, self._of, None, None
        if profiler is None or of is None:
            return
        profiler.stop()
        if self._steps:
            zero = profiler.profiler.kineto_results.trace_start_ns()
            began, ended = ((at - zero) / 1e3 for at in (self._began, self._ended))
            seconds = median(self._calls[of].steady)
            self.hooks.write(steps_profiled(of[1], self._steps, seconds, profiler.events(), began, ended))


def _wait_for_device() -> bool:
    """Return whether a CUDA device is in use.  What is still to run there belongs to steps before."""
    import torch

    in_use: bool = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if in_use:
        torch.cuda.synchronize()
    return in_use


_MOST_CALLS = 5  # calls of libraries that are recorded
_GRAPH = "## Call CompiledFxGraph"
_BACKWARD = "autograd::engine::evaluate_function: "
_ENTERING = (
    "TorchDynamo Cache Lookup",
    "Torch-Compiled Region",
    "Pregraph bytecode",
    "AOTDispatcher",
    "CompiledFunction",
    f"{_BACKWARD}CompiledFunction",
)
"""The starts of torch's names for what is done around graphs."""
_WAITING = re.compile(r"(cuda|hip)(Stream|Device|Event)Synchronize|cudaMemcpy|hipMemcpy")
_OF_RUNTIME = re.compile(r"(cuda|cu|hip)[A-Z]\w+")


def steps_profiled(
    key: int, steps: int, seconds: float, events: Iterable[Any], began: float, ended: float
) -> StepsProfiled:
    """The time of steps by what it went to, from the events of a profile that begin in them; times are microseconds."""
    times: dict[str, float] = defaultdict(float)
    calls: dict[str, list[float]] = defaultdict(list)
    kernels: list[tuple[float, float]] = []
    for event in events:
        start = event.time_range.start
        if start < began:
            continue
        if event.device_type.name != "CPU":
            if not event.is_user_annotation:
                kernels.append((start, event.time_range.end))
        elif event.cpu_parent is None and start < ended:
            _add(event, "", times, calls)
    # The device may be behind the host.
    whole = max([ended, *(end for _, end in kernels)]) - began
    costly = sorted(calls.items(), key=lambda call: -sum(call[1]))[:_MOST_CALLS]
    each = 1e6 * steps
    return StepsProfiled(
        key,
        steps,
        seconds,
        whole / each,
        graphs=times["graphs"] / each,
        eager=times["eager"] / each,
        entering=times["entering"] / each,
        waiting=times["waiting"] / each,
        device=time_covered(kernels) / each if kernels else None,
        calls=tuple(HostCall(name, len(took) / steps, sum(took) / each) for name, took in costly),
    )


def _add(event: Any, around: str, times: dict[str, float], calls: dict[str, list[float]]) -> None:
    """Adds the host's time of an event and of what is in it.  ``around`` is the part that it is in."""
    name = event.name
    part = _part(name, around)
    own = max(0.0, event.time_range.elapsed_us() - sum(one.time_range.elapsed_us() for one in event.cpu_children))
    if part:
        times[part] += own
    if part != "waiting" and (_OF_RUNTIME.fullmatch(name) or ("::" in name and not name.startswith(_BACKWARD))):
        calls[name].append(own)
    for inner in event.cpu_children:
        _add(inner, part, times, calls)


def _part(name: str, around: str) -> str:
    if _WAITING.fullmatch(name):
        return "waiting"
    if around in ("graphs", "eager"):
        return around
    if name.startswith(_GRAPH):
        return "graphs"
    if name.startswith(_ENTERING):
        return "entering"
    # The rest are ranges that the program, or torch for it, has named, with Python in them.
    return "eager" if "::" in name or _OF_RUNTIME.fullmatch(name) else ""
