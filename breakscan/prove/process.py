"""A worker process: runs the user's program up to the captured calls, then carries out the commands of its parent.

It is run by its path, with the file of its settings and the descriptor of its connection as arguments.  With ``--fork``
and the descriptor of a socket, it is a :mod:`.fork_server`, and its children are worker processes."""

import atexit
import contextlib
import functools
import os
import pickle
import random
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

if __name__ == "__main__":
    # Python has put the folder of this file first.  Later imports have to find the package.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from breakscan.prove.call_result import failure_of
from breakscan.prove.call_runs import CallRuns
from breakscan.prove.capture import Capture, LaterCalls, ProgramStopped, place_of
from breakscan.prove.compiled_parts import CompiledParts
from breakscan.prove.fork_server import ForkServer, PreloadedModules, caches_in, process_command
from breakscan.prove.outside import OUTSIDE
from breakscan.prove.overlay import ExecutedCode, Overlay, plain_code, recording_code, run_module, run_script
from breakscan.prove.program_run import WholeProgram
from breakscan.prove.protocol import CONFIGURATIONS, CapturedCalls, Choices, CompileOption, Description, WorkerInput
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.torch_state import cuda_in_use
from breakscan.prove.varied_calls import VariedCalls
from breakscan.recording.bootstrap.import_watch import ImportWatch
from breakscan.recording.recording import SUFFIX

_NEEDS = {"tvm": "tvm", "openxla": "torch_xla"}
"""Backends that torch names even where the package that they need is not installed."""
EXPORTING = "torch.export._trace"
_NOT_FOR_USE = ("debug", "experimental")
LOOKS = 0.004
"""Seconds between looks for plain calls: what is compared may take them all away, so few must not be missed."""
LONGEST_ERROR = 2000
"""Characters of an error that is reported."""


class WorkerProcess:
    """Runs the program, and answers commands within its last captured call or after its end.  ``settings`` is the file
    of its settings, ``connection`` a descriptor.  ``preloaded`` are modules that are there already."""

    def __init__(self, settings: Path, connection: int, preloaded: PreloadedModules) -> None:
        given: WorkerInput = pickle.loads(settings.read_bytes())
        self._restart_arguments = str(settings), str(connection)
        self._preloaded = preloaded
        self._given, self._recording = given, given.recording
        self._whole = None if given.whole is None else WholeProgram(given.whole)
        compile_text = plain_code if self._whole is None else self._whole.compile_text
        self._overlay = Overlay(given.overlay, recording_code if given.probes else compile_text)
        self._looks = given.whole is None or not given.whole.loops
        self._unknown: list[str] = []
        self._watch = ImportWatch()
        later = LaterCalls() if given.probes else None
        self._executed = ExecutedCode(self._overlay.paths)
        self._capture = Capture(given.calls, self._executed.stop, self._serve, later)
        self._capture.hook.units = given.units
        self._connection = Connection(connection)
        self._recorder = contextlib.ExitStack()
        self._error: str | None = None
        self._failed_in: str | None = None
        self._served = False

    def run(self) -> None:
        """Runs the program, then serves if it has not served yet."""
        os.environ.update(caches_in(self._given.cache))
        self._environment = dict(os.environ)
        self._preloaded.hide(self._restart, lambda module: self._watch.execute(lambda _: None, module))
        if any(map(self._overlay.holds, self._preloaded.files)):
            self._restart()
        self._overlay.install()
        OUTSIDE.install(self._recording.parent.parent)
        self._watch.after("torch._dynamo.callback", self._check_before_compiling)
        self._watch.after("torch._dynamo", self._start_recording)
        self._watch.after("torch._dynamo", self._capture.hook.install if self._whole is None else self._whole.install)
        if self._whole is not None:
            self._watch.after(EXPORTING, self._watch_exports)
        self._watch.after("torch.distributed.rendezvous", _take_any_port)
        for key, value in self._given.settings.items():
            config, name = _place(key)
            self._watch.after(config, functools.partial(self._set, key, name, value))
        self._watch.after("numpy.random", lambda module: module.seed(0))
        # All workers draw the same numbers where the program does not seed itself.
        random.seed(0)
        self._obey_requests()
        notes = self._whole is None and self._overlay.paths
        try:
            with self._executed.noted() if notes else contextlib.nullcontext():
                if self._given.argv[0] == "-m":
                    run_module(self._given.argv[1], list(self._given.argv[2:]))
                else:
                    run_script(self._given.argv[0], list(self._given.argv[1:]), self._overlay)
        except ProgramStopped:
            if self._whole is None:
                return
        except SystemExit as left:
            self._error = None if left.code in (None, 0) else f"it ended with exit status {left.code}"
        except BaseException as raised:
            traceback.print_exc()
            # What torch adds in further lines is for its developers.
            text = str(raised).strip().partition("\n")[0]
            self._error = f"{type(raised).__qualname__}: {text}"[:500]
            if self._capture.failed and self._capture.failed[1] is raised:
                self._failed_in = self._capture.failed[0]
        if not self._served:
            self._capture.finish()
            self._serve()

    def describe(self) -> Description:
        """The captured calls, and how the program reached them."""
        captured = self._capture.captured
        walks = [snapshot.walk for one in captured for snapshot in one.snapshots()]
        # The program may choose folders itself.
        return Description(
            error=self._error,
            failed_in=self._failed_in,
            loaded=frozenset(self._overlay.loaded),
            ran=self._executed.found(),
            unknown_settings=tuple(self._unknown),
            lost_settings=tuple(self._lost()),
            torch=str(getattr(sys.modules.get("torch"), "__version__", "")) or None,
            callables=tuple(
                CapturedCalls(
                    one.name,
                    len(one.calls),
                    tuple(str(it.modes) for it in one.calls),
                    one.backward,
                    one.start,
                    place_of(one.original, self._capture.frames),
                )
                for one in captured
            ),
            left_out=tuple(sorted(set(self._capture.left_out))),
            not_called=tuple(sorted({one.name for one in self._capture.callables if not one.calls and not one.passed})),
            devices=tuple(sorted(self._devices())),
            complete=all(walk.complete for walk in walks),
            iterators=tuple(sorted({path for walk in walks for path in walk.iterators})),
        )

    def choices(self) -> Choices:
        """The choices that there are."""
        import torch._inductor

        names = torch._dynamo.list_backends
        contexts = [one.context for one in self._capture.captured]
        is_full = all(getattr(one, "fullgraph", False) for one in contexts)
        kept: dict[str, CompileOption] = {"fullgraph": True} if is_full else {}
        dynamic = {getattr(one, "_dynamic", None) for one in contexts}
        kept |= {"dynamic": dynamic.pop()} if len(dynamic) == 1 and dynamic != {None} else {}
        return Choices(
            tuple(name for name in names(exclude_tags=_NOT_FOR_USE) if _is_there(name)),
            tuple(names(exclude_tags=())),
            tuple(torch._inductor.list_mode_options()),
            kept,
            "cuda" in self._devices(),
        )

    def choice(self, options: Mapping[str, CompileOption] | None) -> str | None:
        """The way in which ``torch.compile`` compiles with these keyword arguments; without them, that of the program.
        Of two that compile alike, it is the same.  None where it is not known, or not the same for all callables."""
        captured = self._capture.captured
        if options is None:
            contexts = [one.context for one in captured]
        else:
            try:
                self._capture.hook.compile(captured[0].original, options)
                contexts = self._capture.hook.contexts[-1:]
            except Exception:
                # A backend of which a package is missing.
                return None
        found = {choice_of(one, "cuda" in self._devices()) for one in contexts}
        return found.pop() if len(found) == 1 else None

    def compile(self, options: dict[str, CompileOption]) -> None:
        """Compiles each callable with these keyword arguments of ``torch.compile`` from now on."""
        for one in self._capture.captured:
            one.compiled = self._capture.hook.compile(one.original, options)

    def _devices(self) -> set[str]:
        """The types of the devices that the calls use.  NumPy arrays have none: there an initialized device counts."""
        if not self._capture.captured:
            return set()
        snapshots = [snapshot for one in self._capture.captured for snapshot in one.snapshots()]
        found = {tensor.device.type for snapshot in snapshots for tensor in snapshot.tensors.values()}
        return found | ({"cuda"} if cuda_in_use() else set())

    def _restart(self) -> NoReturn:
        """Starts this process again as a new one, without preloaded modules, and the program with it."""
        os.set_inheritable(self._connection.fileno(), True)
        for path in self._recording.glob(f"*{SUFFIX}"):
            path.unlink()
        command = process_command(*self._restart_arguments)
        os.execve(command[0], command, self._environment)

    def _obey_requests(self) -> None:
        """Carries out ``--compile``, as in ``explain``."""
        if not (self._recording / "requests").exists():
            return
        from breakscan.recording.bootstrap import eager_compile

        library = str(Path(__file__).parents[2])
        for name, action in eager_compile.wait_for(str(self._recording), library).items():
            self._watch.after(name, action)

    def _check_before_compiling(self, callback: Any) -> None:
        callback.callback_handler.register_start_callback(lambda _: self._preloaded.check_environment())

    def _set(self, key: str, name: str, value: object, config: ModuleType) -> None:
        if hasattr(config, name):
            setattr(config, name, value)
        else:
            self._unknown.append(key)

    def _lost(self) -> Iterator[str]:
        """The keys of settings that have another value by now: the program sets them itself."""
        for key, value in self._given.settings.items():
            config, name = _place(key)
            if key not in self._unknown and getattr(sys.modules.get(config), name, None) != value:
                yield key

    def _start_recording(self, _: ModuleType) -> None:
        """Called after the import of the compiler."""
        from breakscan.recording.hooks.around import PlainCallHook
        from breakscan.recording.recorder import Recorder

        if self._whole is not None:
            PlainCallHook.every = LOOKS
        # Steps that are timed are not slowed down by counting calls.
        self._records = self._recorder.enter_context(Recorder(self._recording, runs=self._looks))

    def _watch_exports(self, trace: ModuleType) -> None:
        """Called after the import of what exports, which imports the compiler."""
        self._records.loaded(EXPORTING)
        assert self._whole is not None
        self._whole.install_export(trace)

    def _serve(self) -> None:
        """Carries out commands until there are no more."""
        self._preloaded.check_environment()
        self._served = True
        # The program may have chosen other folders, which need not be empty.
        os.environ.update(caches_in(self._given.cache))
        sys.settrace(None)
        callables, stop = self._capture.captured, self._recorder.close
        objects = [
            self,
            CallRuns(callables, stop),
            CompiledParts(callables, self._capture.hook, stop),
            VariedCalls(self._capture, self._overlay.paths),
            StepTimer(self._capture, stop),
            *([self._whole] if self._whole is not None else []),
        ]
        served = {type(one).__name__: one for one in objects}
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                reply = carried_out(served, *self._connection.recv())
                sys.stdout.flush()
                self._connection.send(reply)
        self._recorder.close()


def _place(key: str) -> tuple[str, str]:
    """The module of a setting, and its name there, which may have dots."""
    room, _, name = key.partition(".")
    return CONFIGURATIONS[room], name


def _take_any_port(rendezvous: Any) -> None:
    """A process that is alone in its group listens at a free port: the same program runs more than once at a time."""
    store = rendezvous.TCPStore

    def alone(*args: Any, **given: Any) -> Any:
        is_alone = given.get("world_size") == 1 and given.get("is_master")
        return store(*args, **given | ({"port": 0} if is_alone else {}))

    rendezvous.TCPStore = alone


_CUDA_GRAPHS = "triton.cudagraphs"


def choice_of(context: Any, cuda: bool) -> str | None:
    """The choice in Dynamo's context, equal for those that compile alike; None where this torch keeps it elsewhere."""
    backend = getattr(context, "callback", None)
    while inner := getattr(backend, "_torchdynamo_orig_backend", None):
        backend = inner
    name = getattr(backend, "compiler_name", None)
    if name is None or not hasattr(context, "fullgraph"):
        return None
    options = getattr(backend, "config", None) or getattr(backend, "kwargs", None) or {}
    # Without tensors on a GPU there are no CUDA graphs.
    kept = sorted((key, repr(value)) for key, value in options.items() if cuda or key != _CUDA_GRAPHS)
    return repr((name, kept, getattr(context, "_dynamic", None), context.fullgraph))


def _is_there(name: str) -> bool:
    from torch._dynamo.backends.registry import lookup_backend

    try:
        lookup_backend(name)
    except Exception:
        # An installed package may not work with this torch.
        return False
    return find_spec(_NEEDS.get(name, "torch")) is not None


def carried_out(served: Mapping[str, object], command: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """The result of a command (``CallRuns.eager``) of a served object, by its class; a Failure if it raises."""
    owner, _, name = command.partition(".")
    try:
        return getattr(served[owner], name)(*args, **kwargs)
    except BaseException as error:
        traceback.print_exc()
        return replace(failure_of(error), text=f"{type(error).__qualname__}: {error}"[:LONGEST_ERROR])


def _main(arguments: list[str]) -> None:
    preloaded = PreloadedModules()
    if arguments[0] != "--fork":
        settings, connection = arguments
        WorkerProcess(Path(settings), int(connection), preloaded).run()
        return
    server = ForkServer(socket.socket(fileno=int(arguments[1])))
    if (worker := server.serve()) is not None:
        WorkerProcess(*worker, server.preloaded).run()


def _leave() -> NoReturn:
    """Ends this process.  It would take Python a second to delete the modules of torch one by one."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    # ``run_script`` replaces this module by the module of the program.
    leave = _leave
    _main(sys.argv[1:])
    leave()
