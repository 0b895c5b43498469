"""Forked worker processes run a program as new ones would."""

import os
import sys
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from breakscan.prove.fork_server import DYNAMO, INDUCTOR, ForkServerProcess, PreloadedModules
from breakscan.prove.worker import WorkerError

pytestmark = pytest.mark.torch

CALLS = """
net = torch.compile(lambda x: x + 1, backend="eager")
for step in range(9):
    net(torch.ones(2))
"""
UNTOUCHED = """\
import os, sys
print([name for name in ("numpy", "torch", "torch._dynamo") if name in sys.modules])
import numpy
print("torch" in sys.modules)
import torch
print(torch.__spec__.name, torch.nn.Module.__name__)
print(torch._dynamo.config is sys.modules["torch._dynamo.config"])
print(os.environ["TORCHINDUCTOR_CACHE_DIR"])
"""
BEFORE_TORCH = """\
import os
print("started")
os.environ["OMP_NUM_THREADS"] = "2"
import torch
print(torch.get_num_threads())
"""
AFTER_TORCH = """\
import os
print("started")
import torch
os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "1"
"""
UNREAD = """\
import os
print("started")
import torch
os.environ["KMP_INIT_AT_FORK"] = "FALSE"
"""
ENDS = """\
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


Output = Callable[[str], list[str]]


@pytest.fixture
def output(started: Any) -> Output:
    """The lines that a program prints in a forked process."""

    def output(text: str) -> list[str]:
        with started(text) as worker:
            about = worker.ready()
        assert (about.error, [one.calls for one in about.callables]) == (None, [3]), worker.output()
        assert worker._process.wait() == 0
        return worker.output().split("\n")  # type: ignore[no-any-return]

    return output


def test_a_program_finds_nothing_imported_before_it_imports_it(tmp_path: Path, output: Output) -> None:
    first, *others = output(UNTOUCHED + CALLS)
    cache = os.fspath(tmp_path / "workers1" / "worker1" / "cache" / "inductor")
    assert first == "[]"
    assert others == ["False", "torch Module", "True", cache, ""]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (BEFORE_TORCH, ["started", "started", "2", ""]),
        (AFTER_TORCH, ["started", "started", ""]),
        (UNREAD, ["started", ""]),
    ],
    ids=["set before torch is imported", "read by the compiler", "not read by it"],
)
def test_variables_that_are_set_before_an_import_count(output: Output, text: str, printed: list[str]) -> None:
    assert output(text + CALLS) == printed


def test_objects_that_a_package_puts_among_the_modules_come_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cython does so."""
    preloaded, made, restored = PreloadedModules(), object(), []
    monkeypatch.setitem(sys.modules, "made", ModuleType("made"))
    monkeypatch.setitem(sys.modules, "made.parallel", made)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "meta_path", sys.meta_path.copy())
    preloaded.hide(lambda: None, restored.append)
    preloaded.create_module(ModuleSpec("made", preloaded))
    assert sys.modules["made.parallel"] is made
    assert restored == [sys.modules["made"]]


def test_the_end_of_a_forked_process_is_known(started: Any) -> None:
    with started(ENDS) as worker, pytest.raises(WorkerError, match="ended by SIGKILL"):
        worker.ready()


def test_where_torch_cannot_be_imported_in_advance_the_program_fails_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Any
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('broken')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with ForkServerProcess() as broken, started("import torch" + CALLS, broken) as worker:
        assert worker.ready().error == "ImportError: broken"
    with pytest.raises(WorkerError):
        started("", broken)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_the_server_ends_while_a_process_that_was_forked_from_this_one_lives() -> None:
    reading, writing = os.pipe()
    with ForkServerProcess() as own:
        own.check_compiler()
        if not (forked := os.fork()):
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        began = time.monotonic()
    assert time.monotonic() - began < 10.0
    assert os.waitpid(forked, os.WNOHANG) == (0, 0)
    os.close(writing)
    os.waitpid(forked, 0)


@pytest.mark.slow
def test_what_a_first_run_pays_before_it_compiles_is_measured(tmp_path: Path, started: Any) -> None:
    with ForkServerProcess(tmp_path / "cache") as late:
        with started("import torch" + CALLS, late) as worker:
            worker.ready()
        before = late.startup_seconds
        late.check_compiler()
        assert min(before[DYNAMO], before[INDUCTOR]) > 0.05
        assert late.startup_seconds[INDUCTOR] > before[INDUCTOR]
    assert any((tmp_path / "cache").rglob("*.cpp")), "Inductor asks the C++ compiler, and keeps that"
