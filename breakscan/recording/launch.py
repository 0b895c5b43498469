"""Runs the user's program as Python itself runs it, with the recorder hooked in, and waits for its end; and the ranks
of a distributed job, as torchrun names them in the environment, with the folder that those of one machine share.  The
program is a child process: whatever ends it, a crash of the interpreter included, the report can still be written.
``bootstrap/`` comes first on its import path, and puts everything back before the program starts."""

import contextlib
import ctypes
import hashlib
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from breakscan.model.words import InputError
from breakscan.recording.bootstrap.eager_compile import (
    BACKEND,
    FILE,
    KEEP_GOING,
    LOAD_CACHES,
    MAIN,
    PROFILE,
    SAVE_CACHES,
    Request,
)

INJECTED = Path(__file__).parent / "bootstrap"
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_SENT_BY_KERNEL = 0x80  # ``SI_KERNEL``: a terminal sends its signals so
_SET_PARENT_DEATH_SIGNAL = 1  # ``PR_SET_PDEATHSIG`` of ``prctl``


class LaunchError(Exception):
    """The program cannot be run so that it is recorded.  Says why, and what to do."""


class RequestError(ValueError):
    """The request cannot be met.  Says why."""


def compile_request(text: str, argv: Sequence[str]) -> Request:
    """The request of a ``--compile``, of a program run as ``python ARGV``.  Raises RequestError for other texts."""
    module, colon, attribute = text.partition(":")
    parts = [*(module.split(".") if module else []), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise RequestError(f"{text!r} is not of the form module:name, or :name for the script itself")
    is_script = module in ("", MAIN) or (argv[0] == "-m" and argv[1] == module)
    return Request(text, MAIN if is_script else module, attribute)


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests to a run besides recording it: ``--keep-going``, ``--profile``, ``--compile`` with its backend, and
    what it compiles to be saved at its end, or loaded at its start.  They reach the program as a file of its
    recording."""

    keep_going: bool = False
    profile: bool = False
    compile: tuple[Request, ...] = ()
    backend: str = BACKEND
    save_caches: bool = False
    load_caches: bool = False

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        lines = [KEEP_GOING] * self.keep_going + [PROFILE] * self.profile
        lines += [SAVE_CACHES] * self.save_caches + [LOAD_CACHES] * self.load_caches
        lines += [f"backend {self.backend}"] if self.compile else []
        lines += [f"compile {r.text} {r.module} {r.attribute}" for r in self.compile]
        if lines:
            (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """The end of the program: its exit status, negative for the signal that killed it, and its wall time in
    seconds, from the start of its interpreter on."""

    status: int
    seconds: float


def run_recorded(arguments: Sequence[str], folder: Path) -> ProgramExit:
    """Runs ``python ARGUMENTS`` with the options of this interpreter, recording into ``folder``.  Standard streams are
    inherited.  Raises LaunchError where Python's options keep the recorder out."""
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise LaunchError("Python's options -E, -I and -S keep the recorder out of your program: run without them")
    path = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(INJECTED), *([path] if path else [])]),
        "BREAKSCAN_RECORDING": str(folder),
        **({} if path is None else {"BREAKSCAN_PYTHONPATH": path}),
    }
    command = [sys.executable, *interpreter_options(sys.orig_argv), *arguments]
    started = time.monotonic()
    if sys.platform == "win32":
        # The console sends Ctrl-C to the program as well, which decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = subprocess.Popen(command, env=environment).wait()
    else:
        status = _run_on_posix(command, environment)
    return ProgramExit(status, time.monotonic() - started)


@contextlib.contextmanager
def outliving_termination() -> Iterator[Callable[[], bool]]:
    """While the block runs, this process does not die of what asks it to end: once the program has ended, what
    asks, as torchrun does when another rank has failed, gets the report first.  Yields whether it was asked."""
    asked = threading.Event()
    numbers = [] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGHUP]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, lambda *_: asked.set())
    try:
        yield asked.is_set
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def end_like(status: int) -> NoReturn:
    """Ends this process as the program ended: by the same exit status, or by the same signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    if status < 0 and sys.platform != "win32":
        import resource

        # The program has left its core dump already.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def interpreter_options(original: Sequence[str]) -> list[str]:
    """The options that Python itself was given, of ``sys.orig_argv``."""
    options: list[str] = []
    rest = iter(original[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            break
        flags = "" if word.startswith("--") else re.split("[mc]", re.split("[WX]", word)[0])[0]
        ends_here = not word.startswith("--") and word[len(flags) : len(flags) + 1] in ("m", "c")
        if ends_here:
            options += [flags] if flags != "-" else []
            break
        options.append(word)
        if word in _WITH_VALUE:
            options.append(next(rest, ""))
    return options


def _run_on_posix(command: list[str], environment: dict[str, str]) -> int:
    """Waits for the program, and hands on every signal that was meant for it and did not reach it.  Where this process
    stands in the foreground of a terminal, the program shares its process group: Ctrl-C reaches both, and so does job
    control.  Elsewhere it gets a separate group, so that a signal to ours reaches it once, through us."""
    signals = {getattr(signal, name) for name in _PASSED_ON}
    in_foreground = _in_foreground()
    # Where the end of a child is ignored, as some starters leave it, its status would be lost.
    ignored = signal.signal(signal.SIGCHLD, lambda *_: None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*signals, signal.SIGCHLD})

    def prepare() -> None:
        if not in_foreground:
            os.setpgid(0, 0)
        die_with_parent(signal.SIGKILL)
        for number in signals:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        # Nothing else runs in this process: a function between fork and exec is safe.
        program = subprocess.Popen(command, env=environment, preexec_fn=prepare)
        while program.poll() is None:
            number, from_kernel = _next_signal({*signals, signal.SIGCHLD})
            if number != signal.SIGCHLD and not (from_kernel and in_foreground):
                program.send_signal(number)
        return program.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, ignored)


def _in_foreground() -> bool:
    terminal = next((stream for stream in (0, 1, 2) if os.isatty(stream)), None)
    with contextlib.suppress(OSError):
        return terminal is not None and os.tcgetpgrp(terminal) == os.getpgrp()
    return False


def _next_signal(signals: set[signal.Signals]) -> tuple[int, bool]:
    """Waits for a signal.  Returns its number, and whether it came from the terminal rather than a process."""
    if sys.platform == "linux":
        info = signal.sigwaitinfo(signals)
        return info.si_signo, info.si_code == _SENT_BY_KERNEL
    number = signal.sigwait(signals)
    return number, number in (signal.SIGINT, signal.SIGQUIT)


def die_with_parent(number: int) -> None:
    """Has this process end by a signal with its parent: if that is killed, it must not go on and hold its GPU."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, number)


RUN_COMMAND = (
    # The working directory is not searched: a folder named breakscan there would be run.
    "import signal, sys; del sys.path[0]; from breakscan.recording.launch import die_with_parent; "
    "die_with_parent(signal.SIGTERM); from breakscan.__main__ import main; sys.exit(main())"
)
"""The code that runs a command of breakscan, which ends with whoever started it."""


def signal_name(number: int) -> str:
    """``SIGKILL``; ``signal 77`` where the system has no name for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_SAME_FOR_ALL = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "GROUP_RANK")
_START_TIME = 19  # the field of ``/proc/PID/stat`` is the start time, counted after the name of the program


class JobError(InputError):
    """The ranks of a job cannot share a folder.  Says why."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank of a job: its number of ``world_size``, its number among the ``local_size`` ranks of this machine, and
    how often the job was started again before.  ``local_size`` is 1 where the launcher does not say it."""

    rank: int
    world_size: int
    local_rank: int = 0
    local_size: int = 1
    restart: int = 0

    @property
    def local_ranks(self) -> range:
        """The ranks of this machine: a launcher numbers them without gaps."""
        first = self.rank - self.local_rank
        return range(first, first + self.local_size)


def own_rank(environment: Mapping[str, str]) -> Rank | None:
    """The rank that a process has in such an environment; None outside a job of several ranks."""
    rank, world_size = (number_in(environment, name) for name in ("RANK", "WORLD_SIZE"))
    if rank is None or world_size is None or world_size < 2:
        return None
    local_rank, local_size = (number_in(environment, name) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    local = (0, 1) if local_rank is None or local_size is None else (local_rank, local_size)
    return Rank(rank, world_size, *local, number_in(environment, "TORCHELASTIC_RESTART_COUNT") or 0)


def shared_folder(environment: Mapping[str, str]) -> Path:
    """The temporary folder of this start of the job on this machine: all its ranks name it alike.  Made if need be.
    Raises JobError where something else has its name: the temporary folder is open to all users."""
    key = [str(os.getuid()) if hasattr(os, "getuid") else "", *(environment.get(name, "") for name in _SAME_FOR_ALL)]
    digest = hashlib.sha256("\0".join([*key, *_launcher()]).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"breakscan-job-{digest}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
            raise JobError(f"{folder} belongs to another user: set TMPDIR to a folder of your own") from None
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise JobError(f"{folder} is open to other users: delete it") from None
    except OSError as error:
        raise JobError(f"cannot make {folder}: {error.strerror}") from error
    return folder


def is_running(pid: int) -> bool:
    """Return whether there is such a process on this machine, one that has ended and was not waited for left out.
    Always so on Windows, where the signal that asks for it elsewhere is Ctrl-C."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    fields = _stat(pid)
    return not fields or fields[0] not in ("Z", "X")


def _launcher() -> tuple[str, ...]:
    """The process that started the ranks, and when it started: which distinguishes two jobs of one name.  It is the
    nearest process above that was not started as a rank: between them can be others, such as a shell."""
    pid = os.getppid()
    while (fields := _stat(pid)) and _is_rank(pid):
        pid = int(fields[1])
    return (str(pid), fields[_START_TIME] if fields else "")


def _is_rank(pid: int) -> bool:
    try:
        return any(entry.startswith(b"RANK=") for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name: its state, its parent, …  Empty where it does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def number_in(environment: Mapping[str, str], variable: str) -> int | None:
    text = environment.get(variable, "")
    return int(text) if text.isdecimal() else None
