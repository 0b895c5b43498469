"""Runs tasks in processes of their own, which end, with all that they started, when whoever asked does."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator

from breakscan.model.dataclass_json import encode
from breakscan.survey.limited_process import MARK, end_marked
from breakscan.survey.run_unit import Task, result_of
from breakscan.survey.stage_results import StageResult, StageStatus


class UnitProcesses:
    """The processes that run now; after :meth:`stop`, none begins."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._changing = threading.Lock()
        self._stopped = False

    def results(self, task: Task) -> Iterator[StageResult]:
        """What the stages of a task give, as they end.  Where their process ends before, they have crashed."""
        mark = uuid.uuid4().hex
        process = self._begun(mark)
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        waiting = list(task.stages)
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(encode(task)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                result = result_of(line)
                waiting = [stage for stage in waiting if stage.value != result.stage]
                yield result
            process.wait()
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
            process.wait()
            self._running.discard(process)
            if process.returncode:
                end_marked(mark)
        if not self._stopped:
            said = f"the process that ran it ended with {process.returncode}, such as for want of memory"
            for stage in waiting:
                yield StageResult(
                    stage.value, StageStatus.CRASHED.value, 0.0, None, said=said, host=socket.gethostname()
                )

    def stop(self) -> None:
        """Ends all."""
        with self._changing:
            self._stopped = True
        for process in list(self._running):
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()

    def _begun(self, mark: str) -> subprocess.Popen[str] | None:
        """A process whose standard input stays open while it works: it ends when that does."""
        with self._changing:  # whatever begins is known to stop
            if self._stopped:
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", "breakscan.survey.run_unit"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
                env={**os.environ, MARK: mark},
            )
            self._running.add(process)
        return process
