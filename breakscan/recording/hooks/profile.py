"""A few steady steps under torch.profiler, on request: where the time of a step goes.

A step is the time from one call of something compiled to the next.  It is steady if nothing is compiled in it.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks, wrapped, written_at_end
from breakscan.recording.hooks.run_tallies import CallTally
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.parsers.profiles import steps_profiled

STEPS = 5
"""Steps that are profiled, after one in which the profiler starts up."""
_STEADY = 5
"""Steady steps before those: torch compiles, tunes and captures CUDA graphs in the first."""
_LONGEST = 10.0
"""Seconds after which no further step is profiled."""
_ATTEMPTS = 5
"""Profiles that may be given up because something was compiled meanwhile."""
_KINETO = re.compile(rb"[A-Z]+:\d{4}-\d\d-\d\d [\d:]+ \d+:\d+ \w+\.cpp:\d+\] ")


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
        finish = self.guarded(self._finish)
        meter = self.hooks.of(RunHook).meter
        with wrapped(self.wraps, self.wrap, needs=self.needs) as works, written_at_end(finish):
            meter.profile = self.guarded(self._call) if works else None
            yield works

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        give_way = self.guarded(self._give_way)

        def _prepare_trace(self: Any, *args: Any, **kwargs: Any) -> Any:
            give_way()
            return original(self, *args, **kwargs)

        return _prepare_trace

    def _give_way(self) -> None:
        """The program starts a profiler: only one can be at work."""
        if self._of is not None and self._profiler is not None:
            self._finish()

    def _call(self, tally: CallTally) -> None:
        """A call begins."""
        now, key = time.perf_counter(), (threading.get_ident(), tally.key)
        compilations = self.hooks.of(RunHook).meter.compilations
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
                self._finish()

    def _start(self, key: tuple[int, int]) -> None:
        import torch
        from torch.profiler import ProfilerActivity, profile

        meter = self.hooks.of(RunHook).meter
        if torch.autograd.profiler._is_profiler_enabled or not self._left:
            meter.profile = None
            return
        activities = [ProfilerActivity.CPU]
        if _wait_for_device():
            activities.append(ProfilerActivity.CUDA)
        profiler = profile(activities=activities, acc_events=True)
        with _without_kinetos_lines():
            profiler.start()
        self._steps = self._began = 0
        self._left, self._of, self._profiler = self._left - 1, key, profiler

    def _give_up(self) -> None:
        profiler, self._profiler, self._of = self._profiler, None, None
        self._calls.clear()
        if profiler is not None:
            _stop(profiler)

    def _finish(self) -> None:
        """Ends the profile, and writes what the whole steps in it say."""
        self.hooks.of(RunHook).meter.profile = None
        profiler, of, self._profiler, self._of = self._profiler, self._of, None, None
        if profiler is None or of is None:
            return
        _stop(profiler)
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


def _stop(profiler: Any) -> None:
    with _without_kinetos_lines():
        profiler.stop()


@contextmanager
def _without_kinetos_lines() -> Iterator[None]:
    """Takes what Kineto logs off standard error, where the program's own output stays."""
    kept = os.dup(2)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(kept, 2)
                file.seek(0)
                for line in file:
                    if not _KINETO.match(line):
                        os.write(2, line)
    finally:
        os.close(kept)
