"""Candidates, and the processes that run the user's program with and without one, as their parent sees them."""

import contextlib
import itertools
import math
import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from breakscan.fix.result import Difference
from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import Finding, Site
from breakscan.prove.fork_server import ForkedProcess, ForkServerProcess
from breakscan.prove.process import WorkerProcess
from breakscan.prove.protocol import (
    BlockTime,
    CompileOption,
    Description,
    Failure,
    RunRequest,
    Stage,
    StepKind,
    WorkerInput,
)
from breakscan.prove.step_timer import StepTimer
from breakscan.recording.bootstrap.eager_compile import Request
from breakscan.recording.launch import Requests, signal_name
from breakscan.rulebook.config import FileSettings
from breakscan.rulebook.document import Rule

Say = Callable[[str], None]
"""Shows progress."""
ALL = "all"
"""The label of all rewrites together."""


@dataclass(frozen=True)
class Candidate:
    """Anything that changes how the program runs: a way to compile it, settings, edits of its files, or none of these.

    ``label`` names it, as the name of a patch, settings as they were given, or ``net.py:12+20 where``.  ``options`` are
    keyword arguments of ``torch.compile``, None for the program's own; ``settings`` belong to the compiler's
    configurations (``dynamo.capture_scalar_outputs``).  ``texts`` holds the old and the new text of each file, by
    absolute path.  The rest is known of rewrites alone."""

    label: str
    options: Mapping[str, CompileOption] | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    rewrite: str | None = None
    differences: tuple[Difference, ...] = ()
    members: tuple[str, ...] = ()
    targets: tuple[Site, ...] = ()
    """Break sites that the change must remove."""
    units: tuple[tuple[str, str], ...] = ()
    """The places of what the program as it is compiles, where the change compiles something else."""

    @cached_property
    def lines(self) -> Mapping[str, SourceMap]:
        """The lines that those of each new text come from, by path."""
        return {path: SourceMap.of_change(*texts) for path, texts in self.texts.items()}

    @property
    def difference(self) -> str | None:
        """In which way the change is not safe, in words; None if it is safe."""
        return "; ".join(one.text for one in self.differences) or None


UNCHANGED = Candidate("")
"""The program as it is."""


P = ParamSpec("P")
R = TypeVar("R")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt in the block once; then they are ignored until the block is left,
    as the processes are being ended."""

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


class Crash(WorkerError):
    """A worker's process died of a signal."""


@dataclass(frozen=True, slots=True)
class UserProgram:
    """``python ARGV`` with requests; ``calls`` of each callable are captured."""

    argv: tuple[str, ...]
    requests: Requests = field(default_factory=Requests)
    calls: int = CALLS


class OutOfTime(Exception):
    """A worker was ended, as its time is up."""


class Workers:
    """Starts the processes of a program, each with its own folder in ``folder``.  ``until`` is the time of the
    monotonic clock at which those that start from now on are ended."""

    def __init__(
        self, program: UserProgram, folder: Path, server: ForkServerProcess, library: Iterable[Rule] = ()
    ) -> None:
        self.program = program
        self.server = server
        self.library = library
        self.until = math.inf
        self.ahead: list[tuple[Candidate, bool, Worker]] = []
        """Those that have been started in advance, and whether they probe."""
        self.cache_of: Worker | None = None
        """The worker whose compiler caches those have that are given no other's."""
        self._folder = folder
        self._numbers = itertools.count(1)

    def wait_ahead(self) -> None:
        """Waits until the programs that were started in advance have stopped."""
        for *_, worker in self.ahead:
            with contextlib.suppress(WorkerError):
                worker.ready()

    def start(
        self,
        candidate: Candidate,
        cache_of: "Worker | None" = None,
        probes: bool = False,
        whole: RunRequest | None = None,
    ) -> "Worker":
        """Starts a process of the program with a change. It has the compiler caches of another one, if one is given,
        else empty ones.  ``probes`` and ``whole`` are those of WorkerInput."""
        for one in self.ahead:
            if one[:2] == (candidate, probes):
                self.ahead.remove(one)
                return one[2]
        cache_of = cache_of or self.cache_of
        folder = self._folder / f"worker{next(self._numbers)}"
        recording, cache = folder / "recording", (cache_of.folder if cache_of else folder) / "cache"
        recording.mkdir(parents=True)
        cache.mkdir(exist_ok=True)
        asked = tuple(Request(":".join(unit), *unit) for unit in candidate.units)
        requests = self.program.requests
        (replace(requests, compile=asked, backend="eager") if asked else requests).write(recording)
        given = WorkerInput(
            argv=self.program.argv,
            recording=recording,
            cache=cache,
            overlay={path: after for path, (_, after) in candidate.texts.items()},
            probes=probes,
            settings=dict(candidate.settings),
            calls=self.program.calls,
            units=bool(asked),
            whole=whole,
        )
        settings = folder / "settings.pickle"
        settings.write_bytes(pickle.dumps(given))
        connection, its = Pipe()
        with its, (folder / OUTPUT).open("wb") as log:
            try:
                process = self.server.start(settings, its.fileno(), log.fileno())
            except (OSError, EOFError):
                raise WorkerError("the server of its processes has ended") from None
        return Worker(self.program, folder, connection, process, self.until)


@contextlib.contextmanager
def workers_of(program: UserProgram, settings: FileSettings | None = None, cold: bool = False) -> Iterator[Workers]:
    """Starts the server of a program's processes, which end and whose files go where the block is left, also by SIGINT
    or SIGTERM.  The rules are those of the ``settings``; a ``cold`` server finds nothing in the user's caches."""
    temporary = tempfile.TemporaryDirectory(prefix="breakscan-", ignore_cleanup_errors=True)
    rules = settings.of(Path.cwd() / "any file").library if settings is not None else ()
    with (
        temporary as folder,
        interrupted_once(),
        ForkServerProcess(Path(folder) / "server" if cold else None) as server,
    ):
        yield Workers(program, Path(folder), server, rules)


OUTPUT = "output.txt"


@dataclass(eq=False)
class Worker(contextlib.AbstractContextManager["Worker"]):
    """A process that runs, with its files in ``folder``, until its end or this time of the monotonic clock."""

    program: UserProgram
    folder: Path
    _connection: Connection
    _process: ForkedProcess
    until: float

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

    def compile_as(self, candidate: Candidate) -> None:
        """Makes the worker compile with the options of a candidate from now on."""
        if candidate.options is not None:
            self.ask(WorkerProcess.compile, dict(candidate.options))

    def prepare(self, kind: StepKind, keep: bool = False) -> float:
        """Prepares the worker for blocks of a kind, until their time is steady.  Returns the seconds of a step.
        ``keep``: with what is compiled already."""
        self.ask(StepTimer.prepare, kind, keep)
        return self.ask(StepTimer.warm_up, kind)

    def block(self, calls: int, kind: StepKind = StepKind.COMPILED) -> BlockTime:
        """Times a block of steps of a kind that the worker is prepared for."""
        return self.ask(StepTimer.block, calls, kind)

    def output(self) -> str:
        """The output of the program."""
        return (self.folder / OUTPUT).read_text(encoding="utf-8", errors="replace")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends the process at once."""
        self._process.send_signal(how)

    @property
    def ended(self) -> bool:
        """Return True if the process has ended."""
        return self._process.wait(0.0) is not None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Lets the program run to its end, for a while."""
        # Otherwise it would be waited for until all is compiled.
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.kill(signal.SIGINT)
        elif kind is not None and issubclass(kind, OutOfTime):
            self.kill()
        self._connection.close()
        if self._process.wait(10) is None:
            self.kill()
            self._process.wait()

    def _death(self) -> WorkerError:
        status = self._process.wait() or 0
        last = next((line for line in reversed(self.output().splitlines()) if line.strip()), "")
        how = f"by {signal_name(-status)}" if status < 0 else f"with exit status {status}"
        if status == -signal.SIGKILL:
            how += ", which the system sends where memory runs out"
        kind = Crash if status < 0 and status != -signal.SIGKILL else WorkerError
        return kind(f"the program ended {how}{f': {last.strip()[:300]}' if last else ''}")
