"""The fork server and forked worker processes as their parent sees them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from breakscan.prove.worker.environment import worker_environment
from breakscan.record.launch import interpreter_options

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
    """The fork server. It imports torch in the background from the moment that it is created."""

    def __init__(self) -> None:
        self._control, control = socket.socketpair()
        self._lock = threading.Lock()
        with control:
            self._process = subprocess.Popen(
                process_command("--fork", str(control.fileno())),
                env=worker_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(control.fileno(),),
            )

    def start(self, settings: Path, commands: int, replies: int, output: int) -> ForkedProcess | None:
        """Returns a new worker process, None if none can be forked. Threads may call it."""
        status, end = os.pipe()
        # The server reads one message at a time.
        with self._lock:
            try:
                socket.send_fds(self._control, [str(settings).encode()], [commands, replies, output, end])
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
