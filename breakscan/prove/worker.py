"""A process that runs the user's program with or without a change, as its parent sees it."""

from __future__ import annotations

import contextlib
import math
import pickle
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from breakscan.prove.candidate import Candidate
from breakscan.prove.fork_server import ForkServerProcess, process_command, worker_environment
from breakscan.prove.process import WorkerProcess
from breakscan.prove.protocol import BlockTime, Description, Failure, ProcessSettings, RunRequest, Stage, StepKind
from breakscan.prove.step_timer import StepTimer
from breakscan.recording.job import signal_name
from breakscan.recording.recording import read_recording
from breakscan.recording.records import Record
from breakscan.recording.requests_file import Requests

P = ParamSpec("P")
R = TypeVar("R")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt in the block once; then they are ignored until the block is left,
    as the processes are being ended.  In other threads than the main one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(*_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupted) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


CALLS = 3
"""Calls of each compiled callable that are captured."""
PATIENCE = 10.0
"""Seconds for which the program goes on to call what it has compiled and not called yet."""
LONGEST = 3600.0
"""Seconds that one command may take."""


class WorkerError(Exception):
    """A worker could not carry out a command.  ``stage`` is the stage of compiling, if it is known."""

    def __init__(self, text: str, stage: Stage | None = None) -> None:
        super().__init__(text)
        self.stage = stage

    @property
    def first_line(self) -> str:
        """The first line of the message."""
        return str(self).strip().partition("\n")[0]


@dataclass(frozen=True, slots=True)
class UserProgram:
    """``python ARGV`` with requests; ``calls`` of each callable are captured."""

    argv: tuple[str, ...]
    requests: Requests = field(default_factory=Requests)
    calls: int = CALLS
    patience: float = PATIENCE


class OutOfTime(Exception):
    """A worker was ended, as its time is up."""


class Worker:
    """Starts when it is created.

    ``folder`` is new: all files of the worker are in it.  ``cache_of`` is the folder of another worker whose compiler
    caches it uses; by default its caches are empty.  If the ``server`` cannot fork the process, it is a new one.
    ``probes`` and ``whole`` are those of ProcessSettings.  ``until`` is the time of the monotonic clock at which it is
    ended.
    """

    def __init__(
        self,
        program: UserProgram,
        candidate: Candidate,
        folder: Path,
        cache_of: Path | None = None,
        server: ForkServerProcess | None = None,
        probes: bool = False,
        whole: RunRequest | None = None,
        until: float = math.inf,
    ) -> None:
        self.program = program
        self.until = until
        self.folder = folder
        self.recording = folder / "recording"
        cache = (cache_of or folder) / "cache"
        self.recording.mkdir(parents=True)
        cache.mkdir(exist_ok=True)
        program.requests.write(self.recording)
        self._connection, connection = Pipe()
        given = ProcessSettings(
            argv=program.argv,
            recording=self.recording,
            cache=cache,
            overlay={path: after for path, (_, after) in candidate.texts.items()},
            probes=probes,
            settings=dict(candidate.settings),
            calls=program.calls,
            patience=program.patience,
            whole=whole,
        )
        settings = folder / "settings.pickle"
        settings.write_bytes(pickle.dumps(given))
        self._log = folder / "output.txt"
        with connection, self._log.open("wb") as log:
            file = connection.fileno()
            forked = server.start(settings, file, log.fileno()) if server is not None else None
            self._process = forked or subprocess.Popen(
                process_command(str(settings), str(file)),
                env=worker_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(file,),
            )

    def ready(self) -> Description:
        """Waits until the program has reached its last captured call, or its end.  Returns what was captured."""
        return self.ask(WorkerProcess.describe)

    def ask(self, command: Callable[Concatenate[Any, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a method of an object that the worker serves.  Raises WorkerError where the worker fails, ends
        or takes too long, OutOfTime where its time is up."""
        until = min(time.monotonic() + LONGEST, self.until)
        try:
            self._connection.send((command.__qualname__, args, kwargs))
            if not self._connection.poll(max(0.0, until - time.monotonic())):
                if until < self.until:
                    raise WorkerError(f"it took longer than {LONGEST:.0f} s")
                self.kill()
                raise OutOfTime
            reply: Any = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._death() from None
        if isinstance(reply, Failure):
            raise WorkerError(reply.text, reply.stage)
        result: R = reply
        return result

    def prepare(self, kind: StepKind) -> float:
        """Prepares the worker for blocks of a kind, until their time is steady.  Returns the seconds of a step."""
        self.ask(StepTimer.prepare, kind)
        return self.ask(StepTimer.warm_up, kind)

    def block(self, calls: int, kind: StepKind = StepKind.COMPILED) -> BlockTime:
        """Times a block of steps of a kind that the worker is prepared for."""
        return self.ask(StepTimer.block, calls, kind)

    def records(self) -> list[list[Record]]:
        """The records of the process until now."""
        return read_recording(self.recording)

    def output(self) -> str:
        """The output of the program."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """Ends the process at once."""
        if not self.ended:
            self._process.send_signal(signal.SIGKILL)

    def interrupt(self) -> None:
        """Ends the process as Ctrl-C would, whatever it does."""
        if not self.ended:
            self._process.send_signal(signal.SIGINT)

    @property
    def ended(self) -> bool:
        """Return True if the process has ended."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Lets the program run to its end, for a while."""
        self._connection.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Otherwise it would be waited for until all is compiled.
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.interrupt()
        elif kind is not None and issubclass(kind, OutOfTime):
            self.kill()
        self.close()

    def _death(self) -> WorkerError:
        status = self._process.wait()
        last = next((line for line in reversed(self.output().splitlines()) if line.strip()), "")
        how = f"by {signal_name(-status)}" if status < 0 else f"with exit status {status}"
        if status == -signal.SIGKILL:
            how += ", which the system sends where memory runs out"
        return WorkerError(f"the program ended {how}{f': {last.strip()[:300]}' if last else ''}")
