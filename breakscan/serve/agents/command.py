"""Runs a command of breakscan in its own process, for a limited time, and reads its JSON."""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from mcp.server.mcpserver.exceptions import ToolError

from breakscan.recording.launch import RUN_COMMAND
from breakscan.report.printable import visible

KEPT = 16_000  # bytes of the output of a process, its last, that are kept
PATIENCE = 30.0  # seconds that a process has for its report once it is asked to end
AT_ONCE = 1.0  # seconds that it has where nobody waits for the report
EVERY = 1.0  # seconds between two notifications of progress
OWN = "breakscan: "  # the start of breakscan's own lines
_HERE = str(Path(__file__).resolve().parents[3])  # the folder that breakscan lies in
_START = f"import sys; {_HERE!r} in sys.path or sys.path.append({_HERE!r}); {RUN_COMMAND}"

Progress = Callable[[float, str], Awaitable[None]]


class ToolFailure(ToolError):
    """A call that cannot be answered, with the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """``limit`` is the time limit that ended the process, if one did; ``output`` the last of what it printed."""

    report: Any
    output: str
    seconds: float
    limit: float | None


async def run_command(
    command: str,
    options: Sequence[str],
    folder: str,
    limit: float,
    progress: Progress | None = None,
) -> CommandResult:
    """Run a command with ``options`` in ``folder``.

    After ``limit`` seconds the process is asked to end, and reports what it has.  ``progress`` is called with the
    seconds so far and the last line that was printed.  Cancelling ends the process.  Raises ToolFailure if there is no
    report.
    """
    with tempfile.TemporaryDirectory(prefix="breakscan-mcp-") as work:
        path = Path(work, "report.json")
        # Its recording goes with the folder, also where it is killed.
        saved = ["--save", str(Path(work, "recording"))] if command == "explain" else []
        words = [command, "--format", "json", "--output", str(path), *saved]
        started = time.monotonic()
        output = bytearray()
        ended_by: float | None = None
        try:
            process = await anyio.open_process(
                [sys.executable, "-c", _START, *words, *options],
                cwd=folder,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolFailure(f"cannot start a process: {error}") from error
        assert process.stdout is not None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_keep_last, process.stdout, output)
                if progress is not None:
                    tasks.start_soon(_report_progress, progress, output, started)
                with anyio.move_on_after(limit):
                    await process.wait()
                if process.returncode is None:
                    ended_by = limit
                    await _end(process, PATIENCE)
                # What the process has started may hold its output open.
                await anyio.sleep(0.05)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, AT_ONCE)
        return CommandResult(
            await anyio.to_thread.run_sync(_read, path, _text(output), ended_by),
            _text(output),
            time.monotonic() - started,
            ended_by,
        )


async def _keep_last(stream: ByteReceiveStream, output: bytearray) -> None:
    async for chunk in stream:
        output += chunk
        del output[:-KEPT]


def _text(output: bytearray) -> str:
    return output.decode("utf-8", "replace")


async def _report_progress(progress: Progress, output: bytearray, started: float) -> None:
    while True:
        await anyio.sleep(EVERY)
        await progress(time.monotonic() - started, _last(_text(output)).removeprefix(OWN) if output else "")


async def _end(process: Process, patience: float) -> None:
    """Ask the process to end, and kill it with its group if it still runs after ``patience`` seconds."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(patience):
            await process.wait()
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()


def _read(path: Path, output: str, ended_by: float | None) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        last = f"the last line printed is: {_last(output)}. Ask with more seconds, or let the program do fewer steps"
        late = f"the time limit of {ended_by or 0:.0f} s came before there was anything to report; {last}"
        raise ToolFailure(_why(output) if ended_by is None else late) from None
    return json.loads(text)


def _why(output: str) -> str:
    """The message of a command that wrote no report, in one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if line.startswith("Error: ")), None)
    if first is None:
        return f"there is no report; the last that was printed is: {_last(output)}"
    if any(line.startswith("Traceback ") for line in lines):
        return visible(f"a fault in breakscan: {lines[first - 1]}. Report it, with this call.")
    return visible(" ".join(lines[first:]).removeprefix("Error: "))


def _last(output: str) -> str:
    """Return the last line that is not empty."""
    return visible(next((line for line in reversed(output.splitlines()) if line.strip()), "nothing").strip())
