"""The process of one arm: runs the user's program up to the calls that are wanted, then does what its parent says.

Run by its path, with a file of settings as its one argument.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Python has put the folder of this file in front.  What is imported later is found through the package.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from breakscan.runtime.bootstrap.import_watch import ImportWatch
from breakscan.worker.capture import Capture, ProgramStopped
from breakscan.worker.commands import CommandHandler
from breakscan.worker.compile_failure import failure_of
from breakscan.worker.executed_lines import executed_lines
from breakscan.worker.overlay import Overlay, run_module, run_script, run_text


class WorkerProcess:
    """``given`` is what :class:`breakscan.worker.worker.Arm` wrote."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.argv: list[str] = given["argv"]
        self.recording = Path(given["recording"])
        self.settings: dict[str, Any] = given["settings"]
        self.overlay = Overlay(given["overlay"])
        self.watch = ImportWatch()
        self.capture = Capture(given["calls"], given["patience"], self.serve)
        self.stage = CommandHandler(self.capture, self.stop_recording, Path(given["cache"]))
        self.commands = os.fdopen(given["commands"], "r", encoding="utf-8")
        self.replies = os.fdopen(given["replies"], "w", encoding="utf-8")
        self.recorder: Any = None
        self.served = False
        self.unknown: list[str] = []
        self.ran: dict[str, set[int]] = {}

    def run(self) -> None:
        """Runs the program, and serves once: within its last captured call, or behind its end."""
        self.overlay.install()
        self.watch.after("torch._dynamo", self.start_recording)
        self.watch.after("torch._dynamo", self.capture.hook)
        self.watch.after("torch._dynamo.config", lambda _: self.apply("dynamo"))
        self.watch.after("torch._inductor.config", lambda _: self.apply("inductor"))
        self.watch.after("numpy.random", lambda module: module.seed(0))
        self.seed()
        self.obey_requests()
        error = None
        try:
            with self.traced():
                self.run_program()
        except ProgramStopped:
            return
        except SystemExit as left:
            error = None if left.code in (None, 0) else f"it ended with exit status {left.code}"
        except BaseException as raised:
            traceback.print_exc()
            error = f"{type(raised).__qualname__}: {raised}"[:500]
            if self.capture.failed and self.capture.failed[1] is raised:
                self.stage.program["failed_in"] = self.capture.failed[0]
        if not self.served:
            self.capture.finish()
            self.stage.program["error"] = error
            self.serve()

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        """Notes which lines of the new texts run before it serves.  Where ``--compile`` watches the script by the same
        means, nothing is noted."""
        if not self.overlay.paths or sys.gettrace() is not None:
            yield
            return
        with executed_lines(self.overlay.paths) as self.ran:
            yield

    def run_program(self) -> None:
        """Raises what the program raises."""
        if self.argv[0] == "-m":
            run_module(self.argv[1], self.argv[2:])
        elif self.argv[0] == "-c":
            run_text(self.argv[1], self.argv[2:])
        else:
            run_script(self.argv[0], self.argv[1:], self.overlay)

    def seed(self) -> None:
        """Where the program does not seed itself, all arms draw the same numbers."""
        import random

        random.seed(0)

    def obey_requests(self) -> None:
        """``--compile``, as ``explain`` has it."""
        if not (self.recording / "requests").exists():
            return
        from breakscan.runtime.bootstrap import eager_compile

        library = str(Path(__file__).parents[2])
        for name, action in eager_compile.wait_for(str(self.recording), library).items():
            self.watch.after(name, action)

    def start_recording(self, _: Any) -> None:
        """Behind the import of the compiler."""
        from breakscan.runtime.recorder import Recorder

        self.recorder = Recorder(self.recording)
        self.recorder.__enter__()

    def stop_recording(self) -> None:
        """What follows is not recorded, and not slowed down."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.__exit__(None, None, None)

    def apply(self, room: str) -> None:
        """Sets what was asked for in one of the compiler's configurations."""
        config: Any = sys.modules[f"torch._{room}.config"]
        for key, value in self.settings.items():
            where, _, name = key.partition(".")
            if where == room:
                owner, last = config, name
                while "." in last:
                    head, _, last = last.partition(".")
                    owner = getattr(owner, head)
                if hasattr(owner, last):
                    setattr(owner, last, value)
                else:
                    self.unknown.append(key)

    def lost_settings(self) -> list[str]:
        """What was set and is not any more: the program sets it itself."""
        lost = []
        for key, value in self.settings.items():
            where, _, name = key.partition(".")
            found: Any = sys.modules.get(f"torch._{where}.config")
            for part in name.split("."):
                found = getattr(found, part, None)
            if key not in self.unknown and found != value:
                lost.append(key)
        return lost

    def serve(self) -> None:
        """Answers one line of JSON with another, until there are no more."""
        self.served = True
        sys.settrace(None)
        self.stage.program.setdefault("error", None)
        self.stage.program.setdefault("failed_in", None)
        self.stage.program |= {
            "loaded": sorted(self.overlay.loaded),
            "ran": {path: sorted(lines) for path, lines in self.ran.items()},
            "unknown_settings": self.unknown,
            "lost_settings": self.lost_settings(),
            "torch": str(getattr(sys.modules.get("torch"), "__version__", "")) or None,
        }
        for line in self.commands:
            command, arguments = json.loads(line)
            try:
                reply = {"result": getattr(self.stage, command)(**arguments)}
            except BaseException as error:
                traceback.print_exc()
                reply = {"error": f"{type(error).__qualname__}: {error}"[:2000], "stage": failure_of(error)[0]}
            sys.stdout.flush()
            self.replies.write(json.dumps(reply) + "\n")
            self.replies.flush()
        self.stop_recording()


if __name__ == "__main__":
    given_settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # Its place is taken by what stands there for the program: see ``run_script``.
    WorkerProcess(given_settings).run()
