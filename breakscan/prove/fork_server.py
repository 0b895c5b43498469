"""Worker processes that need not import torch: a server has imported it, and forks one for each worker.

The parent sends the path of a worker's settings and three file descriptors: those of its connection and of its output,
and one to which the server writes the worker's process id, and its exit status when it has ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from breakscan.recording.launch import interpreter_options

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
"""The values to which glibc's thresholds grow, in bytes, in a program that has freed large tensors (``man mallopt``).

Below these values, what a process happens to have freed decides whether it returns memory at each step and faults it in
again: of two equal eager processes one took up to 1.8 times as long as the other.
"""


def worker_environment() -> dict[str, str]:
    """The environment of this process, with :data:`ALLOCATOR`, and without compiler caches on other machines."""
    return {
        **ALLOCATOR,
        **os.environ,
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "0",
        "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "0",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }


def caches_in(folder: Path) -> dict[str, str]:
    """The variables that put the compiler caches into a folder."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}


NOT_READ = ("ACCELERATE_", "TOKENIZERS_", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Variables that no native library reads while it is loaded."""


@dataclass(slots=True)
class _Stage:
    """``modules`` by name, in the order in which their imports ended. ``children`` are those that are attributes of
    modules of an earlier stage: parent, name and module.  ``read`` are the variables that Python code read while they
    were imported; None if native libraries, which may read any, were loaded, too."""

    modules: dict[str, ModuleType]
    children: list[tuple[ModuleType, str, ModuleType]]
    read: set[str] | None


class PreloadedModules(Loader):
    """The modules that this process has imported in advance, in stages: a program that imports any module of a stage
    gets all of it, and those before it.

    ``hide`` removes them from ``sys.modules``. The program's own import brings a stage back, without executing it
    again, if the environment variables that it read are those with which it was imported.
    """

    def __init__(self) -> None:
        self._stages: list[_Stage] = []
        self._environment: dict[str, str] = {}
        self._restart: Callable[[], object] = lambda: None
        self._restored: Callable[[ModuleType], object] = lambda _: None

    def load(self, name: str, native: bool = False) -> None:
        """Imports a module, and what it imports, as the next stage: ``native`` libraries too. Raises what the import
        raises."""
        before = set(sys.modules)
        with _variables_read() as read:
            importlib.import_module(name)
        loaded = {name: sys.modules[name] for name in sys.modules if name not in before}
        self._stages.append(_stage(loaded, None if native else read))

    @property
    def files(self) -> frozenset[str]:
        """The real paths of the files of the modules."""
        found = (getattr(module, "__file__", None) for stage in self._stages for module in stage.modules.values())
        return frozenset(os.path.realpath(path) for path in found if path)

    def hide(self, restart: Callable[[], object], restored: Callable[[ModuleType], object]) -> None:
        """Hides the modules. ``restored`` is called with each that is brought back, and ``restart`` if the program has
        changed variables that they read, so that they have to be imported again in a new process.
        """
        if not self._stages:
            return
        self._environment = dict(os.environ)
        self._restart, self._restored = restart, restored
        for stage in self._stages:
            for name in stage.modules:
                del sys.modules[name]
            for parent, name, _ in stage.children:
                delattr(parent, name)
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a hidden module."""
        return ModuleSpec(name, self) if any(name in stage.modules for stage in self._stages) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Brings the stages back, up to the one that has the module. Returns the module, which needs not be
        executed."""
        self.check_environment()
        while True:
            stage = self._stages.pop(0)
            self._restore(stage)
            if spec.name in stage.modules:
                module = stage.modules[spec.name]
                # The import system is about to replace its own spec.
                spec.loader_state = module.__spec__
                return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own spec back."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    def check_environment(self) -> None:
        """Calls ``restart`` if modules that are still hidden read a variable that has changed."""
        changed = {name for name, _ in self._environment.items() ^ os.environ.items() if not name.startswith(NOT_READ)}
        if any(changed if stage.read is None else changed & stage.read for stage in self._stages):
            self._restart()

    def _restore(self, stage: _Stage) -> None:
        if not self._stages:
            sys.meta_path.remove(self)
        sys.modules.update(stage.modules)
        for parent, name, module in stage.children:
            setattr(parent, name, module)
        for module in stage.modules.values():
            self._restored(module)


@contextlib.contextmanager
def _variables_read() -> Iterator[set[str]]:
    """Yields the names of the environment variables that Python code reads in the block."""
    environment: Any = type(os.environ)
    get, read = environment.__getitem__, set()

    def noted(variables: object, name: str) -> object:
        read.add(name)
        return get(variables, name)

    environment.__getitem__ = noted
    try:
        yield read
    finally:
        environment.__getitem__ = get


def _stage(modules: Mapping[str, ModuleType], read: set[str] | None) -> _Stage:
    # Modules of the standard library are the same for all programs.
    own = {name: module for name, module in modules.items() if name.partition(".")[0] not in sys.stdlib_module_names}
    children = []
    for name, module in own.items():
        above, _, last = name.rpartition(".")
        parent = sys.modules.get(above)
        if above not in own and parent is not None and vars(parent).get(last) is module:
            children.append((parent, last, module))
    return _Stage(own, children, read)


MESSAGE = 4096
"""Bytes of a message, at most."""
CHECK, STARTUP = b"check the compiler", b"startup"
"""Messages that are answered with the seconds of ``startup_seconds``; after the first, workers need not find out what
the C++ compiler can do."""
DYNAMO, INDUCTOR = "dynamo", "inductor"
"""The parts of the compiler that have to be imported."""
NVIDIA = "/dev/nvidia"
DEVICES = ("/dev/kfd", "/dev/dri", "/dev/accel")
NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it, torch asks NVML whether there is a GPU, and not CUDA, which no forked process can use once it has begun.
Inductor asks while it is imported."""


class ForkServer:
    """Imports torch, and forks a worker for each path of settings that ``control`` receives."""

    def __init__(self, control: socket.socket) -> None:
        self.preloaded = PreloadedModules()
        self._control = control
        self._startup: dict[str, float] = {}
        self._workers: dict[int, Connection] = {}
        """The connection for the exit status of each worker, by process id."""
        self._wakeup, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> tuple[Path, int] | None:
        """Returns None in this process, when the parent needs no more workers, and in each of them the path of its
        settings and the descriptor of its connection.
        """
        # Ctrl-C in a terminal reaches all processes: the parent decides when this one ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        can_fork = self._load()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken)
        gc.collect()
        # A collection in a worker then touches no memory that all of them share.
        gc.freeze()
        waiting: list[socket.socket | int] = [self._control, self._wakeup]
        while True:
            ready, _, _ = select.select(waiting, [], [])
            if self._wakeup in ready:
                self._note_ends()
            if self._control in ready:
                message, files, *_ = socket.recv_fds(self._control, MESSAGE, 3)
                if not message:
                    return None
                if message in (CHECK, STARTUP):
                    if message == CHECK:
                        with self._timed(INDUCTOR):
                            _check_compiler()
                    with contextlib.suppress(OSError), Connection(files[0]) as reply:
                        reply.send(self._startup)
                elif not can_fork:
                    for file in files:
                        os.close(file)
                elif worker := self._fork(message.decode(), files):
                    return worker

    def _load(self) -> bool:
        """Imports torch.  Returns False if a process that is forked from this one might not work."""
        with contextlib.suppress(ImportError):
            self.preloaded.load("numpy", native=True)
        # The others are threads of BLAS, which it ends before a fork and starts again after it.
        threads = _threads()
        with mock.patch.dict(os.environ, {NVML: "1"}):
            self.preloaded.load("torch", native=True)
            with self._timed(DYNAMO):
                self.preloaded.load("torch._dynamo")
            with self._timed(INDUCTOR):
                self.preloaded.load("torch._inductor.compile_fx")
        files = _open_files()
        if _threads() != threads or any(name.startswith(DEVICES) for name in files):
            return False
        return not any(name.startswith(NVIDIA) for name in files) or not _began_cuda()

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._startup[stage] = self._startup.get(stage, 0.0) + time.perf_counter() - began

    def _fork(self, settings: str, files: list[int]) -> tuple[Path, int] | None:
        connection, output, end = files
        status = Connection(end)
        with warnings.catch_warnings():
            # Python warns of the threads of BLAS.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            os.close(connection)
            os.close(output)
            self._workers[pid] = status
            with contextlib.suppress(OSError):
                status.send(pid)
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._control.close()
        for file in (self._wakeup, self._woken):
            os.close(file)
        for one in (status, *self._workers.values()):
            one.close()
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        return Path(settings), connection

    def _note_ends(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, MESSAGE)
        for pid in list(self._workers):
            ended, how = os.waitpid(pid, os.WNOHANG)
            if ended:
                with contextlib.suppress(OSError), self._workers.pop(pid) as status:
                    status.send(os.waitstatus_to_exitcode(how))


def _threads() -> int:
    """The threads of this process, without that of NVML: a forked process does not use it."""
    return sum(not (task / "comm").read_bytes().startswith(b"cuda") for task in Path("/proc/self/task").iterdir())


def _began_cuda() -> bool:
    """Return True if a process that is forked from this one could not use CUDA, as torch itself sees it."""
    import torch

    pid = os.fork()
    if not pid:
        os._exit(int(getattr(torch.cuda, "_is_in_bad_fork", lambda: True)()))
    return os.waitpid(pid, 0)[1] != 0


def _open_files() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return found


def _check_compiler() -> None:
    """Lets Inductor find out what the C++ compiler can do. That can take longer than compiling a small program, and is
    kept in the user's cache.
    """
    from torch._inductor import cpu_vec_isa

    with contextlib.suppress(Exception):
        cpu_vec_isa.pick_vec_isa()


PROCESS = Path(__file__).with_name("process.py")


def process_command(*arguments: str) -> list[str]:
    """The command that runs ``process.py`` with the options of this interpreter."""
    return [sys.executable, *interpreter_options(sys.orig_argv), str(PROCESS), *arguments]


class ForkedProcess:
    """A worker process that the server has forked. Its methods are those of ``subprocess.Popen``."""

    def __init__(self, pid: int, status: Connection) -> None:
        self.pid = pid
        self._status = status
        self._ended: int | None = None

    def poll(self) -> int | None:
        """Returns the exit status, None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._ended

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the process. Returns the exit status. Raises subprocess.TimeoutExpired."""
        if self._ended is None:
            if not self._status.poll(timeout):
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            # Without the server, nobody knows how it ended.
            self._ended = -signal.SIGKILL
            with self._status, contextlib.suppress(EOFError, ConnectionError):
                self._ended = self._status.recv()
        return self._ended

    def send_signal(self, number: int) -> None:
        """Sends a signal if the process runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServerProcess(contextlib.AbstractContextManager["ForkServerProcess"]):
    """The fork server. It imports torch in the background from the moment that it is created. Inductor keeps what it
    finds out of the C++ compiler in the folder ``cache``, by default in the user's cache.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._control, control = socket.socketpair()
        self._lock = threading.Lock()
        with control:
            self._process = subprocess.Popen(
                process_command("--fork", str(control.fileno())),
                env=worker_environment() | (caches_in(cache) if cache is not None else {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(control.fileno(),),
            )

    @property
    def startup_seconds(self) -> Mapping[str, float]:
        """The seconds that a process takes, before it compiles anything, to import Dynamo and then Inductor, which also
        finds out what the C++ compiler can do, if that was checked.
        """
        return self._asked(STARTUP)

    def check_compiler(self) -> None:
        """Lets Inductor find out what the C++ compiler can do before the next worker starts.  For a program that uses a
        GPU, it does not before: this took 45 s on such a machine, and each worker of a program for the CPU would do
        it."""
        self._asked(CHECK)

    def _asked(self, message: bytes) -> Mapping[str, float]:
        reply, end = Pipe()
        with self._lock, reply, contextlib.suppress(OSError, EOFError):
            with end:
                socket.send_fds(self._control, [message], [end.fileno()])
            seconds: dict[str, float] = reply.recv()
            return seconds
        return {}

    def start(self, settings: Path, connection: int, output: int) -> ForkedProcess | None:
        """Returns a new worker process, None if none can be forked. Threads may call it."""
        status, end = Pipe()
        # The server reads one message at a time.
        with self._lock, contextlib.suppress(OSError, EOFError):
            with end:
                socket.send_fds(self._control, [str(settings).encode()], [connection, output, end.fileno()])
            return ForkedProcess(status.recv(), status)
        status.close()
        return None

    def __exit__(self, *_: object) -> None:
        """Ends the server. The workers go on."""
        self._control.close()
        self._process.wait()
