"""Records what Dynamo does in this process, from the moment that torch's compiler is loaded."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

from breakscan.record.hooks import bytes_moved, cudagraph_recordings, cudagraphs, exports
from breakscan.record.hooks.autograd_reasons import autograd_reasons
from breakscan.record.hooks.breaks import break_record, graph_breaks, raised_break_record
from breakscan.record.hooks.frames import FrameOutcome, frame_outcomes, frame_record, is_break, is_recompile_limit
from breakscan.record.hooks.fullgraph import FullgraphAside
from breakscan.record.hooks.graphs import compiled_graphs, graph_record, metered_graph
from breakscan.record.hooks.guards import built_guards, with_lines
from breakscan.record.hooks.late_hooks import LateHooks
from breakscan.record.hooks.object_facts import code_of, current_compile_id
from breakscan.record.hooks.own_code import own_code_skipped
from breakscan.record.hooks.packages import installed_packages, package_record
from breakscan.record.hooks.patching import untraced
from breakscan.record.hooks.ranks import RankWatch
from breakscan.record.hooks.recompiles import recompilations, recompile_record
from breakscan.record.hooks.runs import RunMeter, timed_calls
from breakscan.record.hooks.stances import known_stance
from breakscan.record.hooks.structured_trace import records_of_trace, structured_trace
from breakscan.record.hooks.targets import compile_calls, compile_record, silent_skips, skip_record
from breakscan.record.hooks.traced_lines import LineTimes
from breakscan.record.hooks.values import ValueTallies, traced_functions
from breakscan.record.job import number_in
from breakscan.record.recording import RecordingWriter
from breakscan.record.records import (
    Code,
    CompileAsked,
    CompileStarted,
    CompileTimed,
    HookFailed,
    HookInstalled,
    ProcessStarted,
    Record,
)
from breakscan.record.requests_file import read_requests
from breakscan.record.trace_fallback import TraceAndHooks

P = ParamSpec("P")
T = TypeVar("T")

SWITCHES = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
"""Environment variables by which a user switches torch.compile off."""


class Recorder:
    """Hooks into torch while it is entered, and writes what it sees into a folder.

    Nothing that goes wrong in here reaches the user's program: it becomes a record.  Where it is to keep
    the program going, ``fullgraph=True`` is set aside.
    """

    def __init__(self, folder: Path, *, keep_going: bool = False) -> None:
        self._writer = RecordingWriter(folder)
        self._keep_going = keep_going
        self._fullgraph = FullgraphAside()
        self._hooks = contextlib.ExitStack()
        self._targets: set[Code] = set()
        self._skipped: set[tuple[Code, str]] = set()
        self._failed: set[str] = set()
        self._numbers = itertools.count()
        self._ranks = RankWatch()
        self._available: set[str] = set()
        self._failing: set[str] = set()
        self._values = ValueTallies()
        self._lines = LineTimes()
        self._merged = TraceAndHooks(self._works, self._numbers)
        self._cudagraphs = cudagraph_recordings.CudaGraphRecordings(
            self._writer.write, partial(self._guarded, "recordings")
        )
        self._exports = exports.ExportWatch(self._writer.write, partial(self._guarded, "exports"))
        self._late = LateHooks(
            {
                "exports": (exports.TRACE, self._exports.exports()),
                "drafts": (exports.DRAFT, self._exports.drafts()),
                "ahead": (exports.INDUCTOR, self._exports.ahead_of_time()),
                "bytes": (bytes_moved.MODULE, bytes_moved.generated_modules(self._compiling("bytes", self._on_module))),
                "cudagraphs": (
                    cudagraphs.MODULE,
                    cudagraphs.cudagraph_skips(self._compiling("cudagraphs", self._on_cudagraph_skip)),
                ),
                "recordings": (cudagraph_recordings.MODULE, self._cudagraphs.installed()),
            }
        )
        self._meter = RunMeter(self._guarded("runs", self._writer.write), partial(self._guarded, "runs"))

    def __enter__(self) -> Recorder:
        """``torch._dynamo`` is imported already: a hook must not be what loads it."""
        self._guarded("recorder", lambda: self._writer.write(_process_started()))()
        hooks: dict[str, contextlib.AbstractContextManager[Any]] = {
            "trace": structured_trace(self._guarded("trace", self._on_trace)),
            "breaks": graph_breaks(self._compiling("breaks", self._on_break)),
            "recompiles": recompilations(self._compiling("recompiles", self._on_recompile)),
            "frames": frame_outcomes(self._compiling("frames", self._on_frame)),
            "graphs": compiled_graphs(self._compiling("graphs", self._on_graph)),
            "runs": timed_calls(self._meter, self._guarded("runs", self._meter.write)),
            "stance": known_stance(),
            "targets": compile_calls(self._compiling("targets", self._on_compile)),
            "skips": silent_skips(self._compiling("skips", self._on_skip)),
            "guards": built_guards(self._compiling("guards", self._on_guards)),
            "autograd": autograd_reasons(),
            "packages": installed_packages(self._guarded("packages", self._on_package)),
            "aot": self._exports.compiled_ahead(),
            "values": traced_functions(self._guarded("values", self._values.add)),
            "lines": self._lines.installed(partial(self._guarded, "lines")),
        }
        if self._keep_going:
            # The last one is the outermost: what the others see is seen while it is at work.
            hooks["fullgraph"] = self._fullgraph.installed()
        for name, hook in hooks.items():
            self._guarded(name, self._install)(name, hook)
        self._guarded("recorder", lambda: self._hooks.enter_context(own_code_skipped()))()
        self.loaded()
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()
        self.note(self._merged.waiting())
        self._writer.close()

    def loaded(self, executed: str | None = None) -> None:
        """Hooks into the modules of torch that the program has loaded by now; ``executed`` is one whose import is about
        to end."""
        for name, hook in self._late.due(executed):
            self._guarded(name, self._install)(name, hook)

    def note(self, records: Iterable[Record]) -> None:
        """Adds records of what hooks do not see."""

        def write() -> None:
            for record in records:
                self._writer.write(record)

        self._guarded("recorder", write)()

    def _install(self, name: str, hook: contextlib.AbstractContextManager[Any]) -> None:
        available = bool(self._hooks.enter_context(hook))
        if available:
            self._available.add(name)
        self._writer.write(HookInstalled(name, available))

    def _works(self, name: str) -> bool:
        """Whether a hook saw what the trace speaks of.  The hook for frames comes after the trace: it may not fail."""
        return name in self._available and name not in (self._failed if name == "frames" else self._failing)

    def _guarded(self, name: str, function: Callable[P, T]) -> Callable[P, T | None]:
        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                self._failing.add(name)
                self._report_failure(name, error)
                return None
            self._failing.discard(name)
            return result

        return untraced(call)

    def _compiling(self, name: str, function: Callable[P, T]) -> Callable[P, T | None]:
        """As :meth:`_guarded`, for what is seen while something is compiled: what an export compiles on its way is not
        for the program to run."""

        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            return None if self._exports.is_running() else function(*args, **kwargs)

        return self._guarded(name, call)

    def _report_failure(self, name: str, error: Exception) -> None:
        """Once a hook: a hook that fails, fails often."""
        if name not in self._failed:
            self._failed.add(name)
            with contextlib.suppress(Exception):
                self._writer.write(HookFailed(name, f"{type(error).__name__}: {error}"))

    def _on_trace(self, _: float, metadata: Any, payload: str | None) -> None:
        if (rank := self._ranks.news(metadata)) is not None:
            self._writer.write(rank)
        self.loaded()
        self._exports.saw(metadata)
        if self._exports.is_running():
            return
        for said in records_of_trace(metadata, payload):
            if isinstance(said, CompileStarted | CompileTimed):
                self._meter.compiled()
            for record in self._merged.records(said, metadata):
                self._writer.write(record)
            if isinstance(said, CompileTimed):
                self.note(self._values.records())
                if (traced := self._lines.record(said.compile_id)) is not None:
                    self._writer.write(traced)

    def _on_guards(self, code: CodeType, output_graph: Any, manager: Any) -> None:
        built = self._merged.saw_guards(current_compile_id())
        if built is not None:
            self._writer.write(self._guarded("guards", with_lines)(built, code, output_graph, manager) or built)

    def _on_module(self, graph: Any) -> None:
        self._writer.write(bytes_moved.bytes_record(graph))

    def _on_cudagraph_skip(self, reason: str) -> None:
        self._writer.write(cudagraphs.skip_record(reason))

    def _on_break(self, translator: Any, reason: str, error: Exception) -> None:
        record = replace(break_record(translator, reason, error), set_aside=self._fullgraph.would_raise())
        self._merged.saw_break(record)
        self._writer.write(record)
        if record.stack and "values" in self._available:
            seen = self._guarded("values", self._values.at_break)(translator, record.stack[-1])
            if seen is not None:
                self._writer.write(seen)

    def _on_recompile(self, entries: Any, frame: FrameType) -> None:
        self._merged.saw_recompile(recompile_record(entries, frame))

    def _on_frame(self, outcome: FrameOutcome) -> None:
        self._meter.compiled()
        if "frames" in self._failed:
            # From the first failure on, the trace reports frames.
            return
        if outcome.error is None:
            self._on_skip(outcome.code, outcome.skip_reason or "")
            return
        if outcome.raised and is_break(outcome.error) and not is_recompile_limit(outcome.error):
            self._writer.write(raised_break_record(code_of(outcome.code), outcome.error, raised=True))
        self._writer.write(replace(frame_record(outcome), set_aside=self._fullgraph.would_raise()))

    def _on_graph(
        self, output: Any, module: Any, inputs: Any, compiled: Any, at: float, seconds: float
    ) -> Callable[..., Any] | None:
        self._meter.compiled()
        number = next(self._numbers)
        self._writer.write(graph_record(output, module, inputs, number, at, seconds))
        return metered_graph(output, inputs, compiled, number, self._meter)

    def _on_compile(self, context: Any, target: Any) -> None:
        record = compile_record(context, target)
        if record.code:
            self._targets.add(record.code)
        if self._fullgraph.concerns(context):
            record = replace(record, fullgraph=True)
        key = self._guarded("runs", self._meter.calls)(context)
        self._writer.write(record if key is None else replace(record, key=key))

    def _on_package(self, package: Any) -> None:
        self._writer.write(package_record(package))

    def _on_skip(self, code: CodeType, reason: str) -> None:
        """Dynamo passes over hundreds of frames, rightly: what the user asked to compile is what counts."""
        record = skip_record(code, reason)
        if record.frame in self._targets and (record.frame, reason) not in self._skipped:
            self._skipped.add((record.frame, reason))
            self._writer.write(record)


def start(folder: str) -> Callable[[str], None]:
    """Records in this process until it ends.  What it returns is to be called with the name of each of
    :data:`breakscan.record.hooks.exports.MODULES` that has been executed."""
    requests = read_requests(Path(folder))
    recorder = Recorder(Path(folder), keep_going=requests.keep_going)
    recorder.__enter__()
    recorder.note(CompileAsked(request.text) for request in requests.compile)
    return recorder.loaded


def _process_started() -> ProcessStarted:
    import torch

    return ProcessStarted(
        pid=os.getpid(),
        parent_pid=os.getppid(),
        argv=tuple(sys.argv),
        rank=number_in(os.environ, "RANK"),
        world_size=number_in(os.environ, "WORLD_SIZE"),
        time=time.time(),
        clock=time.perf_counter(),
        torch=str(torch.__version__),
        python=platform.python_version(),
        torch_folder=str(Path(torch.__file__).parent),
        standard_library=sysconfig.get_path("stdlib"),
        disabled_by=next((name for name in SWITCHES if os.environ.get(name, "0") not in ("", "0")), None),
        profile_kept=bool(os.environ.get("TORCH_COMPILE_JOB_ID")),
    )
