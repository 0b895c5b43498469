"""Worker processes that need not import torch: a server has imported it, and forks one for each worker.

The parent sends the path of a worker's settings and three file descriptors: those of its connection and of its output,
and one to which the server writes the worker's process id, and its exit status when it has ended.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from breakscan.prove.preloaded import PreloadedModules
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


MESSAGE = 4096
"""Bytes of a message, at most."""
CHECK = b"check the compiler"
"""The message after which workers need not find out what the C++ compiler can do."""
DYNAMO, INDUCTOR = "dynamo", "inductor"
"""The parts of the compiler that have to be imported."""
NVIDIA = "/dev/nvidia"
DEVICES = ("/dev/kfd", "/dev/dri", "/dev/accel")
NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it, torch asks NVML whether there is a GPU, and not CUDA, which no forked process can use once it has begun.
Inductor asks while it is imported."""


class CannotFork(Exception):
    """A process that is forked from this one might not work."""


class ForkServer:
    """Imports torch, and forks a worker for each message of ``control``.  The first ``eager`` workers compile nothing:
    what Inductor asks the C++ compiler is left until they run."""

    def __init__(self, control: socket.socket, eager: int) -> None:
        self.preloaded = PreloadedModules()
        self._control = control
        self._eager = eager
        self._startup: dict[str, float] = {}
        self._workers: dict[int, int] = {}
        """The descriptor for the exit status of each worker, by process id."""
        self._wakeup, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> tuple[Path, int] | None:
        """Returns None in this process, when the parent needs no more workers, and in each of them the path of its
        settings and the descriptor of its connection. Raises CannotFork.
        """
        # Ctrl-C in a terminal reaches all processes: the parent decides when this one ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            has_gpu = self._load()
        except CannotFork:
            self._tell_startup()
            raise
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken)
        gc.collect()
        # A collection in a worker then touches no memory that all of them share.
        gc.freeze()
        waiting: list[socket.socket | int] = [self._control, self._wakeup]
        still_eager: int | None = self._eager
        while True:
            if still_eager == 0:
                still_eager = None
                if not has_gpu:
                    with self._timed(INDUCTOR):
                        _check_compiler()
                self._tell_startup()
            ready, _, _ = select.select(waiting, [], [])
            if self._wakeup in ready:
                self._note_ends()
            if self._control in ready:
                message, files, *_ = socket.recv_fds(self._control, MESSAGE, 3)
                if not message:
                    return None
                if message == CHECK:
                    _check_compiler()
                    _tell(files[0], 0)
                    os.close(files[0])
                    continue
                still_eager = None if still_eager is None else still_eager - 1
                worker = self._fork(message.decode(), files)
                if worker is not None:
                    return worker

    def _load(self) -> bool:
        """Returns whether there is a GPU."""
        with contextlib.suppress(ImportError):
            self.preloaded.load("numpy", native=True)
        # The others are threads of BLAS, which it ends before a fork and starts again after it.
        threads = _threads()
        with _set(NVML, "1"):
            self.preloaded.load("torch", native=True)
            with self._timed(DYNAMO):
                self.preloaded.load("torch._dynamo")
            with self._timed(INDUCTOR):
                self.preloaded.load("torch._inductor.compile_fx")
        if _threads() != threads:
            raise CannotFork("there are threads, which a forked process does not have")
        files = _open_files()
        if any(name.startswith(DEVICES) for name in files):
            raise CannotFork("a device is in use")
        has_gpu = any(name.startswith(NVIDIA) for name in files)
        if has_gpu and _began_cuda():
            raise CannotFork("CUDA is in use")
        return has_gpu

    def _tell_startup(self) -> None:
        self._control.send(json.dumps(self._startup).encode())

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._startup[stage] = self._startup.get(stage, 0.0) + time.perf_counter() - began

    def _fork(self, settings: str, files: list[int]) -> tuple[Path, int] | None:
        connection, output, status = files
        with warnings.catch_warnings():
            # Python warns of the threads of BLAS.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            os.close(connection)
            os.close(output)
            self._workers[pid] = status
            _tell(status, pid)
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._control.close()
        for file in (self._wakeup, self._woken, status, *self._workers.values()):
            os.close(file)
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        return Path(settings), connection

    def _note_ends(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, MESSAGE)
        for pid, status in list(self._workers.items()):
            ended, how = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._workers[pid]
                _tell(status, os.waitstatus_to_exitcode(how))
                os.close(status)


def _tell(status: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.write(status, f"{number}\n".encode())


def _threads() -> int:
    """The threads of this process, without that of NVML: a forked process does not use it."""
    return sum(not (task / "comm").read_bytes().startswith(b"cuda") for task in Path("/proc/self/task").iterdir())


@contextlib.contextmanager
def _set(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


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

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._ended: int | None = None

    def poll(self) -> int | None:
        """Returns the exit status, None while the process runs."""
        if self._ended is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self._ended

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the process. Returns the exit status. Raises subprocess.TimeoutExpired."""
        if self._ended is None:
            line = _line(self._status, timeout)
            if line is None:
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            os.close(self._status)
            # Without the server, nobody knows how it ended.
            self._ended = int(line) if line else -signal.SIGKILL
        return self._ended

    def send_signal(self, number: int) -> None:
        """Sends a signal if the process runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServerProcess:
    """The fork server. It imports torch in the background from the moment that it is created. Inductor keeps what it
    finds out of the C++ compiler in the folder ``cache``, by default in the user's cache.  The first ``eager`` workers
    compile nothing.
    """

    def __init__(self, cache: Path | None = None, eager: int = 0) -> None:
        self._control, control = socket.socketpair()
        self._lock = threading.Lock()
        with control:
            self._process = subprocess.Popen(
                process_command("--fork", str(control.fileno()), str(eager)),
                env=worker_environment() | (caches_in(cache) if cache is not None else {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(control.fileno(),),
            )

    @cached_property
    def startup_seconds(self) -> Mapping[str, float]:
        """The seconds that a process takes, before it compiles anything, to import Dynamo and then Inductor, which also
        finds out what the C++ compiler can do.  Waits until they are known.
        """
        with self._lock:
            text = self._control.recv(MESSAGE)
        found: dict[str, float] = json.loads(text) if text else {}
        return found

    def check_compiler(self) -> None:
        """Lets Inductor find out what the C++ compiler can do before the next worker starts.  Where there is a GPU, it
        does not before: this took 45 s on such a machine, and each worker of a program for the CPU would do it."""
        status, end = os.pipe()
        with self._lock, contextlib.suppress(OSError):
            socket.send_fds(self._control, [CHECK], [end])
            os.close(end)
            _line(status)
        os.close(status)

    def start(self, settings: Path, connection: int, output: int) -> ForkedProcess | None:
        """Returns a new worker process, None if none can be forked. Threads may call it."""
        status, end = os.pipe()
        # The server reads one message at a time.
        with self._lock:
            try:
                socket.send_fds(self._control, [str(settings).encode()], [connection, output, end])
            except OSError:
                os.close(status)
                return None
            finally:
                os.close(end)
            line = _line(status)
        if not line:
            os.close(status)
            return None
        return ForkedProcess(int(line), status)

    def close(self) -> None:
        """Ends the server. The workers go on."""
        self._control.close()
        self._process.wait()

    def __enter__(self) -> ForkServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(file: int, timeout: float | None = None) -> str | None:
    """The next line of a file; empty at its end, None if it does not come in time."""
    until = None if timeout is None else time.monotonic() + timeout
    text = b""
    while not text.endswith(b"\n"):
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([file], [], [], left)[0]:
            return None
        # One byte at a time: the next line is read later.
        part = os.read(file, 1)
        if not part:
            return ""
        text += part
    return text.decode()
