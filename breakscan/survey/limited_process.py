"""Runs a command with limits of time and memory."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TAIL = 8192
"""Bytes that are kept of what a command says."""
_EVERY = 0.5
"""Seconds between two looks at a command.  A look reads all processes of the machine, while a command is timed."""
_MARK = "BREAKSCAN_SURVEY_UNIT"
"""The environment variable that marks the processes of a unit, also those that left its session."""
_running: dict[int, str] = {}
"""The leaders of the sessions that run now, with their marks."""
_ROUNDS = 20
"""Repetitions of the search for processes, since one may start another meanwhile."""
Ending = Literal["exited", "time", "memory"]


@dataclass(frozen=True, slots=True)
class LimitedRun:
    """The end of a command: ``status`` is negative for the signal that ended it.  ``peak`` is the most memory that its
    processes held together, in bytes; None if that cannot be read (it can on Linux)."""

    ending: Ending
    status: int
    seconds: float
    peak: int | None
    said: str


def run_limited(
    command: Sequence[str],
    *,
    seconds: float,
    memory: int | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> LimitedRun:
    """Run a command in a new session, without standard input, and end it with all that it started."""
    given = os.environ if environment is None else environment
    mark = f"{given.get(_MARK, '')}/{uuid.uuid4().hex}"
    started = time.monotonic()
    peak: int | None = None
    ending: Ending = "exited"
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**given, _MARK: mark},
            start_new_session=True,
        )
        _running[process.pid] = mark
        try:
            while process.poll() is None:
                held = _memory_of_session(process.pid)
                peak = held if peak is None or (held is not None and held > peak) else peak
                if memory is not None and held is not None and held > memory:
                    ending = "memory"
                    break
                if time.monotonic() - started > seconds:
                    ending = "time"
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_EVERY)
        finally:
            _end_session(process.pid, mark)
            process.wait()
            _running.pop(process.pid, None)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - TAIL))
        text = said.read().decode(errors="replace")
    return LimitedRun(ending, process.returncode, time.monotonic() - started, peak, text)


def end_running() -> None:
    """Ends all commands that run, with what they started."""
    for leader, mark in list(_running.items()):
        _end_session(leader, mark)


def _end_marked(mark: str) -> None:
    """End the processes of a unit that are still there, on systems with ``/proc``."""
    for _ in range(_ROUNDS):
        found = [process for process in _processes() if process != os.getpid() and _is_marked(process, mark)]
        if not found:
            return
        for process in found:
            _kill(process)


def _end_session(leader: int, mark: str) -> None:
    for process in _session(leader) or [leader]:
        _kill(process)
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(leader, signal.SIGKILL)
    _end_marked(mark)


def _kill(process: int) -> None:
    with contextlib.suppress(OSError):
        # Windows has no SIGKILL: what os.kill does there is as final.
        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _is_marked(process: int, mark: str) -> bool:
    try:
        environment = Path("/proc", str(process), "environ").read_bytes()
    except OSError:
        return False
    return f"\0{_MARK}={mark}".encode() in b"\0" + environment


def _processes() -> list[int]:
    """Return all processes; none on systems without ``/proc``."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _session(leader: int) -> list[int]:
    found = []
    for process in _processes():
        with contextlib.suppress(OSError):
            if os.getsid(process) == leader:
                found.append(process)
    return found


def _memory_of_session(leader: int) -> int | None:
    """The resident memory of its processes, in bytes; what they share counts for each."""
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    total = None
    for process in _session(leader):
        with contextlib.suppress(OSError, IndexError, ValueError):
            pages = int(Path("/proc", str(process), "statm").read_text(encoding="ascii").split()[1])
            total = (total or 0) + pages * page
    return total
