"""Records what Dynamo does in this process, from the moment that torch's compiler is loaded."""

import atexit
import contextlib
import os
import platform
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from breakscan.recording.bootstrap.eager_compile import KEEP_GOING, PROFILE, SAVE_CACHES, read_requests, save_caches
from breakscan.recording.hooks.around import AROUND
from breakscan.recording.hooks.frames import BreakHook, BytecodeHook, FrameHook
from breakscan.recording.hooks.graphs import BackwardLineHook, CudaGraphSkipHook, GraphHook
from breakscan.recording.hooks.guards import GuardHook, RecompileHook
from breakscan.recording.hooks.hook import Hook, Hooks, own_code_skipped
from breakscan.recording.hooks.profile import ProfileHook
from breakscan.recording.hooks.runs import BackwardHook, RunHook, StanceHook
from breakscan.recording.hooks.targets import (
    AheadHook,
    AotHook,
    DraftHook,
    ExportHook,
    FullgraphHook,
    PackageHook,
    SkipHook,
    TargetHook,
)
from breakscan.recording.hooks.trace import TraceHook
from breakscan.recording.hooks.values import ValueHook
from breakscan.recording.launch import number_in
from breakscan.recording.recording import RecordingWriter
from breakscan.recording.records import CompileAsked, ProcessStarted, Record

HOOKS: tuple[type[Hook], ...] = (
    TraceHook, BreakHook, RecompileHook, FrameHook, BytecodeHook, GraphHook, RunHook, StanceHook, TargetHook, SkipHook,
    GuardHook, PackageHook, AotHook, ValueHook, FullgraphHook, ExportHook, DraftHook, AheadHook, CudaGraphSkipHook,
    ProfileHook, *AROUND, BackwardLineHook, BackwardHook,
)  # fmt: skip
"""The hooks, in the order in which they are installed."""
SWITCHES = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")  # variables that switch torch.compile off


class Recorder:
    """Hooks into torch while it is entered, and writes what it sees into a folder, or calls ``to`` with it.  Nothing
    that goes wrong in here reaches the user's program.  Where it is to keep the program going, ``fullgraph=True`` is
    set aside.  ``runs`` says that calls of what is compiled are counted and timed, too."""

    def __init__(
        self, to: Path | Callable[[Record], None], *, keep_going: bool = False, profile: bool = False, runs: bool = True
    ) -> None:
        self._end = contextlib.ExitStack()
        if isinstance(to, Path):
            to = self._end.enter_context(contextlib.closing(RecordingWriter(to))).write
        self._hooks = Hooks(HOOKS, to)
        wanted = {FullgraphHook: keep_going, ProfileHook: profile, RunHook: runs}
        self._left_out = [hook for hook, is_wanted in wanted.items() if not is_wanted]
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Recorder":
        """``torch._dynamo`` is imported already: a hook must not be what loads it."""
        self.note([_process_started()])
        self._hooks.install(self._left_out)
        self._hooks.guarded(Hook, lambda: self._stack.enter_context(own_code_skipped()))()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._hooks.close()
        self.note(self._hooks.merged.waiting())
        self._end.close()

    def loaded(self, executed: str | None = None) -> None:
        """Hooks into the modules of torch that are loaded by now; ``executed`` is one whose import is about to end."""
        self._hooks.loaded(executed)

    def note(self, records: Iterable[Record]) -> None:
        """Adds records of what hooks do not see."""

        def write() -> None:
            for record in records:
                self._hooks.write(record)

        self._hooks.guarded(Hook, write)()


def start(folder: str) -> Callable[[str], None]:
    """Records in this process until it ends.  What it returns is to be called with the name of each of
    :data:`breakscan.recording.hooks.targets.MODULES` that has been executed."""
    words, _, asked = read_requests(folder)
    recorder = Recorder(Path(folder), keep_going=KEEP_GOING in words, profile=PROFILE in words)
    recorder.__enter__()
    recorder.note(CompileAsked(request.text) for request in asked)
    if SAVE_CACHES in words:
        pid = os.getpid()
        atexit.register(lambda: save_caches(folder) if os.getpid() == pid else None)
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
