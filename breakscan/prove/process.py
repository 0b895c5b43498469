"""A worker process: runs the user's program up to the captured calls, then carries out the commands of its parent.

It is run by its path, with the file of its settings and the descriptor of its connection as arguments.  With
``--fork`` and the descriptor of a socket, it is a :mod:`.fork_server`, and its children are worker processes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import random
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

if __name__ == "__main__":
    # Python has put the folder of this file first.  Later imports have to find the package.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from breakscan.prove.call_result import failure_of
from breakscan.prove.capture import Capture, LaterCalls, ProgramStopped
from breakscan.prove.commands import CommandHandler
from breakscan.prove.compiler_settings import CompilerSettings
from breakscan.prove.fork_server import CannotFork, ForkServer, caches_in, process_command
from breakscan.prove.outside import OUTSIDE
from breakscan.prove.overlay import (
    ExecutedCode,
    Overlay,
    plain_code,
    recording_code,
    run_module,
    run_script,
    run_text,
)
from breakscan.prove.preloaded import PreloadedModules
from breakscan.prove.program_run import WholeProgram
from breakscan.prove.protocol import ProcessSettings, ProgramRun
from breakscan.recording.bootstrap.import_watch import ImportWatch
from breakscan.recording.recording import SUFFIX

if TYPE_CHECKING:
    from breakscan.recording.recorder import Recorder


LONGEST_ERROR = 2000
"""Characters of an error that is reported."""


class WorkerProcess:
    """Runs the program, and answers commands within its last captured call or after its end.

    ``settings`` is the file of its settings, ``connection`` a descriptor.  ``preloaded`` are modules that are there
    already.
    """

    def __init__(self, settings: Path, connection: int, preloaded: PreloadedModules) -> None:
        given: ProcessSettings = pickle.loads(settings.read_bytes())
        self._restart_arguments = str(settings), str(connection)
        self._preloaded = preloaded
        self._argv = given.argv
        self._recording = Path(given.recording)
        self._cache = Path(given.cache)
        self._whole = None if given.whole is None else WholeProgram(given.whole)
        compile_text = plain_code if self._whole is None else self._whole.compile_text
        self._overlay = Overlay(given.overlay, recording_code if given.probes else compile_text)
        self._looks = given.whole is None or not given.whole.loops
        self._settings = CompilerSettings(given.settings)
        self._watch = ImportWatch()
        later = LaterCalls() if given.probes else None
        self._executed = ExecutedCode(self._overlay.paths)
        self._capture = Capture(given.calls, given.patience, self._executed.stop, self._serve, later)
        self._connection = Connection(connection)
        self._recorder: Recorder | None = None
        self._served = False

    def run(self) -> None:
        """Runs the program, then serves if it has not served yet."""
        os.environ.update(caches_in(self._cache))
        self._environment = dict(os.environ)
        self._preloaded.hide(self._restart, lambda module: self._watch.execute(lambda _: None, module))
        if any(map(self._overlay.holds, self._preloaded.files)):
            self._restart()
        self._overlay.install()
        OUTSIDE.install(self._recording.parent.parent)
        self._watch.after("torch._dynamo", self._start_recording)
        self._watch.after("torch._dynamo", self._capture.hook.install if self._whole is None else self._whole.install)
        self._settings.install(self._watch)
        self._watch.after("numpy.random", lambda module: module.seed(0))
        # All workers draw the same numbers where the program does not seed itself.
        random.seed(0)
        self._obey_requests()
        error = failed_in = None
        try:
            with self._traced():
                self._run_program()
        except ProgramStopped:
            if self._whole is None:
                return
        except SystemExit as left:
            error = None if left.code in (None, 0) else f"it ended with exit status {left.code}"
        except BaseException as raised:
            traceback.print_exc()
            error = f"{type(raised).__qualname__}: {raised}"[:500]
            if self._capture.failed and self._capture.failed[1] is raised:
                failed_in = self._capture.failed[0]
        if not self._served:
            self._capture.finish()
            self._serve(error, failed_in)

    def _restart(self) -> NoReturn:
        """Starts this process again as a new one, without preloaded modules, and the program with it."""
        os.set_inheritable(self._connection.fileno(), True)
        for path in self._recording.glob(f"*{SUFFIX}"):
            path.unlink()
        command = process_command(*self._restart_arguments)
        os.execve(command[0], command, self._environment)

    @contextlib.contextmanager
    def _traced(self) -> Iterator[None]:
        """Notes which lines of the overlaid texts run before the first captured call.  Nothing is noted where
        ``--compile`` traces the script."""
        if self._whole is not None or not self._overlay.paths or sys.gettrace() is not None:
            yield
            return
        with self._executed.noted():
            yield

    def _run_program(self) -> None:
        """Runs the program. Raises what the program raises."""
        if self._argv[0] == "-m":
            run_module(self._argv[1], list(self._argv[2:]))
        elif self._argv[0] == "-c":
            run_text(self._argv[1], list(self._argv[2:]))
        else:
            run_script(self._argv[0], list(self._argv[1:]), self._overlay)

    def _obey_requests(self) -> None:
        """Carries out ``--compile``, as in ``explain``."""
        if not (self._recording / "requests").exists():
            return
        from breakscan.recording.bootstrap import eager_compile

        library = str(Path(__file__).parents[2])
        for name, action in eager_compile.wait_for(str(self._recording), library).items():
            self._watch.after(name, action)

    def _start_recording(self, _: ModuleType) -> None:
        """Called after the import of the compiler."""
        from breakscan.recording.recorder import Recorder

        # Steps that are timed are not slowed down by counting calls.
        self._recorder = Recorder(self._recording, runs=self._looks)
        self._recorder.__enter__()

    def _stop_recording(self) -> None:
        """From here on nothing is recorded or slowed down."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.__exit__(None, None, None)

    def _serve(self, error: str | None = None, failed_in: str | None = None) -> None:
        """Carries out commands until there are no more."""
        self._preloaded.check_environment()
        self._served = True
        sys.settrace(None)
        run = ProgramRun(
            error=error,
            failed_in=failed_in,
            loaded=tuple(sorted(self._overlay.loaded)),
            ran=self._executed.found(),
            unknown_settings=tuple(self._settings.unknown),
            lost_settings=tuple(self._settings.lost()),
            torch=str(getattr(sys.modules.get("torch"), "__version__", "")) or None,
        )
        overlaid = self._overlay.paths
        served = CommandHandler(self._capture, run, self._stop_recording, self._cache, overlaid).served()
        if self._whole is not None:
            served[WholeProgram.__name__] = self._whole
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                reply = carried_out(served, *self._connection.recv())
                sys.stdout.flush()
                self._connection.send(reply)
        self._stop_recording()


def carried_out(served: Mapping[str, object], command: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """The result of a command (``CallRuns.eager``) of one of the objects that are served, by the names of their
    classes; a Failure if it raises."""
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
    with contextlib.suppress(CannotFork):
        server = ForkServer(socket.socket(fileno=int(arguments[1])), int(arguments[2]))
        worker = server.serve()
        if worker is not None:
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
