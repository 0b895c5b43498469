"""Programs that are run as the commands run them."""

import difflib
import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from briefly import BRIEFLY

from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.worker import CALLS, UNCHANGED, UserProgram, Worker, Workers


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServerProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.delenv("TORCHINDUCTOR_MAX_AUTOTUNE", raising=False)
        with ForkServerProcess() as running:
            yield running


@pytest.fixture
def started(tmp_path: Path, server: ForkServerProcess) -> Any:
    """Starts the program with this text, with its files in ``workers1``, ``workers2``, … of the folder."""
    numbers = itertools.count(1)

    def started(text: str, by: ForkServerProcess = server, calls: int = CALLS) -> Worker:
        script = tmp_path / "it.py"
        script.write_text(text, encoding="utf-8")
        program = UserProgram((str(script),), calls=calls)
        return Workers(program, tmp_path / f"workers{next(numbers)}", by).start(UNCHANGED)

    return started


@pytest.fixture
def verified(tmp_path: Path, valid: Any) -> Any:
    """The JSON of ``verify`` for a program with this text, which is written to ``program.py``.  ``becomes`` is the text
    that a patch makes of it, ``it.patch``."""

    def verified(text: str, *words: str, becomes: str | None = None, status: int | None = None) -> Any:
        (tmp_path / "program.py").write_text(text, encoding="utf-8")
        if becomes is not None:
            both = (one.splitlines(keepends=True) for one in (text, becomes))
            lines = difflib.unified_diff(*both, "a/program.py", "b/program.py")
            (tmp_path / "it.patch").write_text("".join(lines), encoding="utf-8")
            words = (*words, "--patch", "it.patch")
        command = [*BRIEFLY, "verify", "--format", "json", *words, "program.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=580)
        assert done.stdout, done.stderr
        assert status in (None, done.returncode), done.stdout + done.stderr
        return valid(done.stdout, "verify")

    return verified
