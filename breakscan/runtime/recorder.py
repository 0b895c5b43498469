"""Records what Dynamo does in this process, from the moment that torch's compiler is loaded."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ParamSpec

from breakscan.runtime.hooks.breaks import break_record, graph_breaks, raised_break_record
from breakscan.runtime.hooks.facts import code_of
from breakscan.runtime.hooks.frames import FrameOutcome, frame_outcomes, frame_record, is_break, is_recompile_limit
from breakscan.runtime.hooks.graphs import compiled_graphs, graph_record
from breakscan.runtime.hooks.recompiles import recompilations, recompile_record
from breakscan.runtime.hooks.spine import records_of_trace, structured_trace
from breakscan.runtime.hooks.targets import compile_calls, compile_record, silent_skips, skip_record
from breakscan.runtime.recording import RecordingWriter
from breakscan.runtime.records import Code, HookFailed, HookInstalled, ProcessStarted

P = ParamSpec("P")

SWITCHES = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
"""Environment variables by which a user switches torch.compile off."""


class Recorder:
    """Hooks into torch while it is entered, and writes what it sees into a folder.

    Nothing that goes wrong in here reaches the user's program: it becomes a record of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._writer = RecordingWriter(folder)
        self._hooks = contextlib.ExitStack()
        self._targets: set[Code] = set()
        self._skipped: set[tuple[Code, str]] = set()
        self._failed: set[str] = set()
        self._numbers = itertools.count()

    def __enter__(self) -> Recorder:
        """``torch._dynamo`` is imported already: a hook must not be what loads it."""
        self._guarded("recorder", lambda: self._writer.write(_process_started()))()
        hooks: dict[str, contextlib.AbstractContextManager[Any]] = {
            "trace": structured_trace(self._guarded("trace", self._on_trace)),
            "breaks": graph_breaks(self._guarded("breaks", self._on_break)),
            "recompiles": recompilations(self._guarded("recompiles", self._on_recompile)),
            "frames": frame_outcomes(self._guarded("frames", self._on_frame)),
            "graphs": compiled_graphs(self._guarded("graphs", self._on_graph)),
            "targets": compile_calls(self._guarded("targets", self._on_compile)),
            "skips": silent_skips(self._guarded("skips", self._on_skip)),
        }
        for name, hook in hooks.items():
            self._guarded(name, self._install)(name, hook)
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()

    def _install(self, name: str, hook: contextlib.AbstractContextManager[Any]) -> None:
        available = bool(self._hooks.enter_context(hook))
        self._writer.write(HookInstalled(name, available))

    def _guarded(self, name: str, function: Callable[P, None]) -> Callable[P, None]:
        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except Exception as error:
                self._report_failure(name, error)

        return call

    def _report_failure(self, name: str, error: Exception) -> None:
        """Once a hook: a hook that fails, fails often."""
        if name not in self._failed:
            self._failed.add(name)
            with contextlib.suppress(Exception):
                self._writer.write(HookFailed(name, f"{type(error).__name__}: {error}"))

    def _on_trace(self, _: float, metadata: Any, payload: str | None) -> None:
        for record in records_of_trace(metadata, payload):
            self._writer.write(record)

    def _on_break(self, translator: Any, reason: str, error: Exception) -> None:
        self._writer.write(break_record(translator, reason, error))

    def _on_recompile(self, entries: list[Any], frame: FrameType) -> None:
        self._writer.write(recompile_record(entries, frame))

    def _on_frame(self, outcome: FrameOutcome) -> None:
        if outcome.error is None:
            self._on_skip(outcome.code, outcome.skip_reason or "")
            return
        if outcome.raised and is_break(outcome.error) and not is_recompile_limit(outcome.error):
            self._writer.write(raised_break_record(code_of(outcome.code), outcome.error, raised=True))
        self._writer.write(frame_record(outcome))

    def _on_graph(self, output: Any, module: Any, inputs: Any, at: float, seconds: float) -> None:
        self._writer.write(graph_record(output, module, inputs, next(self._numbers), at, seconds))

    def _on_compile(self, context: Any, target: Any) -> None:
        record = compile_record(context, target)
        if record.code:
            self._targets.add(record.code)
        self._writer.write(record)

    def _on_skip(self, code: CodeType, reason: str) -> None:
        """Dynamo passes over hundreds of frames, rightly: what the user asked to compile is what counts."""
        record = skip_record(code, reason)
        if record.frame in self._targets and (record.frame, reason) not in self._skipped:
            self._skipped.add((record.frame, reason))
            self._writer.write(record)


def start(folder: str) -> None:
    """Records in this process until it ends."""
    Recorder(Path(folder)).__enter__()


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def _process_started() -> ProcessStarted:
    import torch

    return ProcessStarted(
        pid=os.getpid(),
        parent_pid=os.getppid(),
        argv=tuple(sys.argv),
        rank=_number("RANK"),
        world_size=_number("WORLD_SIZE"),
        time=time.time(),
        clock=time.perf_counter(),
        torch=str(torch.__version__),
        python=platform.python_version(),
        torch_folder=str(Path(torch.__file__).parent),
        standard_library=sysconfig.get_path("stdlib"),
        disabled_by=next((name for name in SWITCHES if os.environ.get(name, "0") not in ("", "0")), None),
        profile_kept=bool(os.environ.get("TORCH_COMPILE_JOB_ID")),
    )
