"""Processes that compile at the same time, and are timed one after another."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

BLOCKS = 15
READY = "ready"


def timed_blocks(step: Callable[[], object], wait: Callable[[], float], longest: float) -> list[float]:
    """In a :class:`Turn`: the seconds of a step, for each of several blocks, once it is this process's turn.

    ``wait`` waits until all work is done, and gives the time; ``longest`` is the seconds of a block.
    """
    print(READY, flush=True)
    sys.stdin.readline()
    step()
    began = wait()
    step()
    count = max(1, round(longest / (wait() - began)))
    seconds = []
    for _ in range(BLOCKS):
        began = wait()
        for _ in range(count):
            step()
        seconds.append((wait() - began) / count)
    return seconds


class Turn:
    """A process that compiles, and waits for its turn. It prints a JSON object at the end."""

    def __init__(self, command: list[str], env: Mapping[str, str] | None = None) -> None:
        # A pipe that nobody reads would stop a process that writes much.
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [sys.executable, *command],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def wait(self) -> None:
        """Waits until it is ready, or has failed."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def result(self) -> dict[str, Any]:
        """Gives it its turn. Returns what it measured; if it failed, only ``error``, its last error."""
        out, _ = self._process.communicate("go\n")
        lines = (out or "").strip().splitlines()
        self._errors.seek(0)
        errors = self._errors.read().strip().splitlines()
        self._errors.close()
        if not self._process.returncode and lines and lines[-1].startswith("{"):
            found: dict[str, Any] = json.loads(lines[-1])
            return found
        return {"error": next((one for one in errors[::-1] if "Error" in one), "")[-300:]}
