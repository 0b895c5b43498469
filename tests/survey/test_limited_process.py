"""Commands end within their limits, with all that they started."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from breakscan.survey.run_unit import LimitedRun, run_limited

pytestmark = pytest.mark.process
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")


def run(code: str, *, seconds: float = 30, memory: int | None = None) -> LimitedRun:
    return run_limited([sys.executable, "-c", code], seconds=seconds, memory=memory)


def test_what_ends_by_itself() -> None:
    done = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.ending, done.status, sorted(done.said.split())) == ("exited", 3, ["err", "out"])
    assert run("import os; os.abort()").status == -signal.SIGABRT


def test_time(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"
    done = run(
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)", seconds=1
    )
    assert done.ending == "time"
    assert done.seconds < 20
    time.sleep(3)
    assert not mark.exists(), "what it started goes on"


@needs_proc
def test_memory_of_all_that_it_started() -> None:
    child = "b = bytearray(200_000_000); import time; time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    done = run(code, memory=100_000_000)
    assert done.ending == "memory"
    assert done.peak is not None
    assert done.peak > 100_000_000
    assert run("import time; time.sleep(0.5)", memory=100_000_000).ending == "exited"


def test_the_end_of_what_is_said_is_kept() -> None:
    assert run("print('a' * 100_000); print('last')").said.endswith("a\nlast\n")


@needs_proc
def test_what_left_its_session_ends_too(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"
    done = run(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)")
    assert done.status == 0
    time.sleep(3.5)
    assert not mark.exists()


@pytest.mark.parametrize("lacks_signals", [False, True])
def test_without_proc_the_limit_of_time_holds(monkeypatch: pytest.MonkeyPatch, lacks_signals: bool) -> None:
    def nothing(_: str) -> list[str]:
        raise FileNotFoundError

    monkeypatch.setattr("breakscan.survey.run_unit.os.listdir", nothing)
    if lacks_signals:  # as on Windows
        monkeypatch.delattr(os, "killpg")
        monkeypatch.delattr(signal, "SIGKILL")
    done = run("import time; time.sleep(60)", seconds=1, memory=1)
    assert (done.ending, done.peak) == ("time", None)
    assert done.seconds < 20
