"""Runs the user's program as Python itself runs it, with the recorder hooked in, and waits for its end.

The program is a child process: whatever ends it, a crash of the interpreter included, the report can still be
written.  ``bootstrap/`` comes first on its import path, and puts everything back before the program starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

INJECTED = Path(__file__).parent / "bootstrap"
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_SENT_BY_KERNEL = 0x80
"""``SI_KERNEL``: a terminal sends its signals so."""
_SET_PARENT_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of ``prctl``."""


class LaunchError(Exception):
    """The program cannot be run so that it is recorded.  Says why, and what to do."""


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """The end of the program: its exit status, negative for the signal that killed it, and its wall time in
    seconds, from the start of its interpreter on."""

    status: int
    seconds: float


def run_recorded(arguments: Sequence[str], folder: Path) -> ProgramExit:
    """Runs ``python ARGUMENTS`` with the options of this interpreter, recording into ``folder``.

    Standard streams are inherited.  Raises LaunchError where Python's options keep the recorder out.
    """
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
    """Waits for the program, and hands on every signal that was meant for it and did not reach it.

    Where this process stands in the foreground of a terminal, the program shares its process group: Ctrl-C
    reaches both, and so does job control.  Elsewhere it gets a separate group, so that a signal to ours
    reaches it once, through us.
    """
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
    """Has this process end by a signal with its parent: where that is killed, it must not go on unseen, holding its
    GPU."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, number)
