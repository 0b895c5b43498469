"""A process that runs the user's program with or without a change, as its parent sees it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breakscan.runtime.exit_status import signal_name
from breakscan.runtime.launch import interpreter_options
from breakscan.runtime.recording import read_recording
from breakscan.runtime.records import Record
from breakscan.runtime.requests_file import Requests
from breakscan.worker.timing import COMPILED

PROCESS = Path(__file__).with_name("process.py")
CALLS = 3
"""Calls of each compiled callable that are captured."""
PATIENCE = 10.0
"""Seconds that the program goes on for the sake of what it has compiled and not called."""
LONGEST = 3600.0
"""Seconds that one command may take."""
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
"""What glibc's thresholds grow to, in bytes, in a program that has freed large tensors (see ``man mallopt``).

Before that, what a process happens to have freed decides whether it gives memory back at each step and faults it in
again: of two equal eager processes one took up to 1.8 times as long as the other.
"""


class WorkerError(Exception):
    """An arm could not do what it was told to.  Says why, in the words of the program where they are its own; and in
    which ``stage`` of compiling, where that is known."""

    def __init__(self, text: str, stage: str | None = None) -> None:
        super().__init__(text)
        self.stage = stage

    @property
    def first_line(self) -> str:
        """Of what it says."""
        return str(self).strip().partition("\n")[0]


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """What is other in an arm: new texts of files by their absolute paths, and settings of the compiler
    (``dynamo.capture_scalar_outputs``)."""

    texts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserProgram:
    """``python ARGV`` and what is asked of it beyond running; ``calls`` of each callable are captured."""

    argv: tuple[str, ...]
    requests: Requests = field(default_factory=Requests)
    calls: int = CALLS
    patience: float = PATIENCE


class Worker:
    """Starts when it is made.  ``folder`` is new; all that the arm writes lies in it.  ``cache_of`` is the folder of an
    arm of which it takes over the compiler caches, which are empty else."""

    def __init__(self, program: UserProgram, change: ProgramChange, folder: Path, cache_of: Path | None = None) -> None:
        self.program = program
        self.folder = folder
        self.recording = folder / "recording"
        self.cache = (cache_of or folder) / "cache"
        self.recording.mkdir(parents=True)
        self.cache.mkdir(exist_ok=True)
        program.requests.write(self.recording)
        commands, self._commands = os.pipe()
        self._replies, replies = os.pipe()
        given = {
            "argv": program.argv,
            "recording": str(self.recording),
            "cache": str(self.cache),
            "overlay": dict(change.texts),
            "settings": dict(change.settings),
            "calls": program.calls,
            "patience": program.patience,
            "commands": commands,
            "replies": replies,
        }
        settings = folder / "arm.json"
        settings.write_text(json.dumps(given), encoding="utf-8")
        self._log = folder / "output.txt"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *interpreter_options(sys.orig_argv), str(PROCESS), str(settings)],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(commands, replies),
            )
        os.close(commands)
        os.close(replies)
        self._unread = b""
        self.about: dict[str, Any] = {}

    def _environment(self) -> dict[str, str]:
        """That of this process, with compiler caches of the arm's own, and :data:`ALLOCATOR`."""
        return {
            **ALLOCATOR,
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(self.cache / "inductor"),
            "TRITON_CACHE_DIR": str(self.cache / "triton"),
            "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
            "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
            "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "0",
            "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "0",
            "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        }

    def ready(self) -> dict[str, Any]:
        """Waits until the program has come to its last captured call, or its end.  Returns what was captured."""
        self.about = self.ask("describe")
        return self.about

    def ask(self, command: str, **arguments: Any) -> Any:
        """What the arm answers.  Raises ArmError where it fails, dies or takes too long."""
        try:
            os.write(self._commands, (json.dumps([command, arguments]) + "\n").encode())
        except BrokenPipeError:
            raise self._death() from None
        reply = json.loads(self._line())
        if "error" in reply:
            raise WorkerError(reply["error"], reply["stage"])
        return reply["result"]

    def block(self, calls: int, kind: str = COMPILED) -> dict[str, Any]:
        """Times so many steps of a kind that it has been prepared for."""
        told: dict[str, Any] = self.ask("block", calls=calls, kind=kind)
        return told

    def records(self) -> list[list[Record]]:
        """What was recorded in it until now."""
        return read_recording(self.recording)

    def output(self) -> str:
        """What the program has written."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def ended(self) -> bool:
        """Whether the process is there no more."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Lets the program's own end run, for a while."""
        with contextlib.suppress(OSError):
            os.close(self._commands)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        with contextlib.suppress(OSError):
            os.close(self._replies)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt) and not self.ended:
            # Else it is waited for until what it compiles is compiled.
            self._process.send_signal(signal.SIGINT)
        self.close()

    def _line(self) -> bytes:
        until = time.monotonic() + LONGEST
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._replies], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise WorkerError(f"it took longer than {LONGEST:.0f} s")
            part = os.read(self._replies, 1 << 16)
            if not part:
                raise self._death()
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _death(self) -> WorkerError:
        status = self._process.wait()
        last = next((line for line in reversed(self.output().splitlines()) if line.strip()), "")
        how = f"by {signal_name(-status)}" if status < 0 else f"with exit status {status}"
        if status == -signal.SIGKILL:
            how += ", which the system sends where memory runs out"
        return WorkerError(f"the program ended {how}{f': {last.strip()[:300]}' if last else ''}")
