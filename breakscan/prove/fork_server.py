"""Worker processes that need not import torch: a server has imported it, and forks them where that is possible.

The parent sends the path of a worker's settings and three file descriptors: those of its connection and of its output,
and one to which the worker's process id is written, and its exit status when it has ended."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
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
again: of two equal eager processes one took up to 1.8 times as long as the other."""


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


class PreloadedModules(Loader):
    """The packages that this process has imported in advance.  ``hide`` removes them from ``sys.modules``.  The
    program's own import of one brings it back, and that of torch all, without executing them again, if the environment
    variables are those with which they were imported."""

    def __init__(self) -> None:
        self._before = set(sys.modules)
        self._modules: dict[str, ModuleType] = {}
        """Those that are hidden."""
        self._read: set[str] = set()
        """The variables that the Python code of the compiler read while it was imported."""
        self._environment = dict(os.environ)
        self._restart: Callable[[], object] = lambda: None
        self._restored: Callable[[ModuleType], object] = lambda _: None

    def load_compiler(self, name: str) -> None:
        """Imports a module of the compiler, which loads no native library.  Raises what the import raises."""
        with _variables_read() as read:
            importlib.import_module(name)
        self._read |= read

    @property
    def files(self) -> frozenset[str]:
        """The real paths of the files of the modules."""
        found = (getattr(module, "__file__", None) for module in self._modules.values())
        return frozenset(os.path.realpath(path) for path in found if path)

    def hide(self, restart: Callable[[], object], restored: Callable[[ModuleType], object]) -> None:
        """Hides the modules. ``restored`` is called with each that is brought back, and ``restart`` if the program has
        changed variables that they read, so that they have to be imported again in a new process."""
        self._restart, self._restored = restart, restored
        # Modules of the standard library are the same for all programs.
        known = {name.partition(".")[0] for name in self._before} | sys.stdlib_module_names
        self._modules = {name: one for name, one in sys.modules.items() if name.partition(".")[0] not in known}
        for name in self._modules:
            del sys.modules[name]
        self._environment = dict(os.environ)
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a hidden module."""
        return ModuleSpec(name, self) if name in self._modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Brings the package of a module back. Returns the module, which needs not be executed."""
        if self._changed():
            self._restart()
        module, package = self._modules[spec.name], spec.name.partition(".")[0]
        back = {name: one for name, one in self._modules.items() if package in ("torch", name.partition(".")[0])}
        self._modules = {name: one for name, one in self._modules.items() if name not in back}
        sys.modules.update(back)
        for one in back.values():
            # Packages, such as Cython, put other objects there, too.
            if isinstance(one, ModuleType):
                self._restored(one)
        # The import system is about to replace its own spec.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own spec back."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    def check_environment(self) -> None:
        """Called before anything is compiled: calls ``restart`` if a variable that the compiler read has changed."""
        read, self._read = self._read, set()
        if not read.isdisjoint(self._changed()):
            self._restart()

    def _changed(self) -> set[str]:
        changed = self._environment.items() ^ os.environ.items()
        return {name for name, _ in changed if not name.startswith(NOT_READ)}


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


MESSAGE = 4096
"""Bytes of a message, at most."""
CHECK, STARTUP = b"check the compiler", b"startup"
"""Answered with ``startup_seconds``; after the first, workers know what the C++ compiler can do."""
DYNAMO, INDUCTOR = "dynamo", "inductor"
"""The parts of the compiler that have to be imported."""
DEVICES = ("/dev/kfd", "/dev/dri", "/dev/accel")
NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it, torch asks NVML for GPUs, and not CUDA, which no forked process can use then.  Inductor's import asks."""


class ForkServer:
    """Imports torch, and starts a worker for each path of settings that ``control`` receives."""

    def __init__(self, control: socket.socket) -> None:
        self.preloaded = PreloadedModules()
        self._control = control
        self._startup: dict[str, float] = {}

    def serve(self) -> tuple[Path, int] | None:
        """Returns None in this process, when the parent needs no more workers, and in each of them the path of its
        settings and the descriptor of its connection."""
        # Ctrl-C in a terminal reaches all processes: the parent decides when this one ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            can_fork = self._load()
        except Exception:
            # The program itself will show what is wrong with torch.
            can_fork = False
        gc.collect()
        # A collection in a worker then touches no memory that all of them share.
        gc.freeze()
        while True:
            message, files, *_ = socket.recv_fds(self._control, MESSAGE, 3)
            if not message:
                return None
            if message in (CHECK, STARTUP):
                if message == CHECK:
                    with self._timed(INDUCTOR), contextlib.suppress(Exception):
                        from torch._inductor import cpu_vec_isa

                        cpu_vec_isa.pick_vec_isa()
                with contextlib.suppress(OSError), Connection(files[0]) as reply:
                    reply.send(self._startup)
            elif worker := self._start(message.decode(), files, can_fork):
                return worker

    def _load(self) -> bool:
        """Imports torch.  Returns False if a process that is forked from this one might not work."""
        with contextlib.suppress(ImportError):
            importlib.import_module("numpy")
        # The others are threads of BLAS, which it ends before a fork and starts again after it.
        threads = _threads()
        with mock.patch.dict(os.environ, {NVML: "1"}):
            importlib.import_module("torch")
            with self._timed(DYNAMO):
                self.preloaded.load_compiler("torch._dynamo")
            with self._timed(INDUCTOR):
                self.preloaded.load_compiler("torch._inductor.compile_fx")
        uses_device = any(os.path.realpath(link).startswith(DEVICES) for link in Path("/proc/self/fd").iterdir())
        return _threads() == threads and not uses_device and not _began_cuda()

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._startup[stage] = self._startup.get(stage, 0.0) + time.perf_counter() - began

    def _start(self, settings: str, files: list[int], can_fork: bool) -> tuple[Path, int] | None:
        """Starts a worker in a process that waits for it, and sends its exit status."""
        connection, output, end = files
        if _fork():
            for file in files:
                os.close(file)
            return None
        self._control.close()
        with Connection(end) as status:
            if can_fork:
                pid = _fork()
            else:
                command = process_command(settings, str(connection))
                pid = subprocess.Popen(command, stdout=output, stderr=output, pass_fds=(connection,)).pid
            if pid:
                for file in (connection, output):
                    os.close(file)
                with contextlib.suppress(OSError):
                    status.send(pid)
                    status.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                os._exit(0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        return Path(settings), connection


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns of the threads of BLAS.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _threads() -> int:
    """The threads of this process, without that of NVML: a forked process does not use it."""
    return sum(not (task / "comm").read_bytes().startswith(b"cuda") for task in Path("/proc/self/task").iterdir())


def _began_cuda() -> bool:
    """Return True if a process that is forked from this one could not use CUDA, as torch itself sees it."""
    import torch

    if not (pid := _fork()):
        os._exit(int(getattr(torch.cuda, "_is_in_bad_fork", lambda: True)()))
    return os.waitpid(pid, 0)[1] != 0


def process_command(*arguments: str) -> list[str]:
    """The command that runs ``process.py`` with the options of this interpreter."""
    process = Path(__file__).with_name("process.py")
    return [sys.executable, *interpreter_options(sys.orig_argv), str(process), *arguments]


class ForkedProcess:
    """A worker process that the server has started."""

    def __init__(self, pid: int, status: Connection) -> None:
        self._pid = pid
        self._status = status
        self._ended: int | None = None

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for the end of the process.  Returns the exit status, None where it still runs."""
        if self._ended is None and self._status.poll(timeout):
            # Without the process that waits for it, nobody knows how it ended.
            self._ended = -signal.SIGKILL
            with self._status, contextlib.suppress(EOFError, ConnectionError):
                self._ended = self._status.recv()
        return self._ended

    def send_signal(self, number: int) -> None:
        """Sends a signal if the process runs."""
        if self.wait(0.0) is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)


class ForkServerProcess(contextlib.AbstractContextManager["ForkServerProcess"]):
    """The fork server. It imports torch in the background from the moment that it is created. Inductor keeps what it
    finds out of the C++ compiler in the folder ``cache``, by default in the user's cache."""

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
        finds out what the C++ compiler can do, if that was checked."""
        return self._asked(STARTUP)

    def check_compiler(self) -> None:
        """Lets Inductor find out what the C++ compiler can do before the next worker starts, which each would do: not
        for a program that uses a GPU, as it took 45 s on such a machine."""
        self._asked(CHECK)

    def _asked(self, message: bytes) -> Mapping[str, float]:
        reply, end = Pipe()
        with self._lock, reply, contextlib.suppress(OSError, EOFError):
            with end:
                socket.send_fds(self._control, [message], [end.fileno()])
            seconds: dict[str, float] = reply.recv()
            return seconds
        return {}

    def start(self, settings: Path, connection: int, output: int) -> ForkedProcess:
        """Returns a new worker process.  Threads may call it.  Raises OSError or EOFError if there is no server."""
        status, end = Pipe()
        # The server reads one message at a time.
        with self._lock, end:
            socket.send_fds(self._control, [str(settings).encode()], [connection, output, end.fileno()])
        return ForkedProcess(status.recv(), status)

    def __exit__(self, *_: object) -> None:
        """Ends the server. The workers go on."""
        self._control.close()
        # It does not end by itself while a process that was forked from this one has the socket, too.
        self._process.kill()
        self._process.wait()
