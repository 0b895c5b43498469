"""The process of a program, from outside."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from breakscan.prove.call_runs import CallRuns
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.process import WorkerProcess, _take_any_port
from breakscan.prove.protocol import Stage, StepKind
from breakscan.prove.state import read_file
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import WorkerError

pytestmark = pytest.mark.torch

SCRIPT = """\
import os

for name in ("TORCHINDUCTOR_CACHE_DIR", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
    print(os.environ[name])
"""


def test_arms_have_caches_and_an_allocator_of_which_no_chance_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Any
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "shared")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "12345")
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    with ForkServerProcess() as server, started(SCRIPT, server) as worker:
        worker.ready()
    cache, mapped, trimmed = worker.output().split()
    assert cache == os.fspath(tmp_path / "workers1" / "worker1" / "cache" / "inductor")
    assert mapped == "33554432"
    assert trimmed == "12345", "what the user has set, stays"


MODULE = """\
import torch

def told(graph, inputs):
    def run(*values):
        print("compiled")
        return graph(*values)

    return run

class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1

net = torch.compile(Net(), backend=told)
net.register_forward_hook(lambda *_: print("hooked"))
for step in range(9):
    net(torch.ones(2))
"""


def test_the_module_around_what_is_compiled_is_timed_with_it_and_not_eager(started: Any) -> None:
    with started(MODULE) as worker:
        worker.ready()

        def told(kind: StepKind) -> tuple[int, int]:
            before = worker.output()
            assert worker.block(6, kind).seconds > 0
            now = worker.output()[len(before) :]
            return now.count("hooked"), now.count("compiled")

        worker.ask(StepTimer.prepare, StepKind.COMPILED)
        assert told(StepKind.COMPILED) == (6, 6)
        worker.ask(StepTimer.prepare, StepKind.EAGER)
        assert told(StepKind.EAGER) == (0, 0)
        assert told(StepKind.COMPILED) == (6, 6)
        worker.ask(WorkerProcess.compile, {"backend": "aot_eager"})
        worker.ask(StepTimer.prepare, StepKind.COMPILED)
        assert told(StepKind.COMPILED) == (6, 0)
        worker.ask(StepTimer.prepare, StepKind.EAGER)
        assert told(StepKind.EAGER) == (0, 0)
        assert worker.block(6).compiles == 0, "eager steps between do not make it compile again"
        with pytest.raises(WorkerError, match=r"^InvalidBackend: Invalid backend: 'unheard-of'") as raised:
            worker.ask(WorkerProcess.compile, {"backend": "unheard-of"})
        assert raised.value.stage is Stage.DYNAMO
        assert "Traceback" in worker.output()


TRAINS = """\
import torch

net = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(net.weight, 2.0)
compiled = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
for step in range(9):
    print("step", step)
    optimizer.zero_grad()
    compiled(torch.full((1, 1), 3.0)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("calls", [1, 2])
def test_the_backward_pass_of_captured_calls_is_seen_if_there_is_only_one(
    tmp_path: Path, calls: int, started: Any
) -> None:
    with started(TRAINS, calls=calls) as worker:
        assert worker.ready().callables[0].backward
        results = str(tmp_path / "results.pt")
        worker.ask(CallRuns.reference, results)
        first = read_file(results).results[0]
    assert "step 2" not in worker.output(), "no more calls than two are waited for"
    # It runs with the weight that it had, before the optimizer changed it.
    assert [one.item() for one in first.outputs.values()] == [6.0]
    assert len(first.gradients) == 1


def test_without_gradients_the_program_ends_within_the_only_captured_call(started: Any) -> None:
    text = TRAINS.replace(".sum().backward()", "").replace("import torch\n", NO_GRAD)
    with started(text, calls=1) as worker:
        assert not worker.ready().callables[0].backward
    assert "step 1" not in worker.output()


NO_GRAD = "import torch\n\ntorch.set_grad_enabled(False)\n"


def test_a_process_that_is_alone_in_its_group_takes_any_port() -> None:
    ports: list[int] = []
    rendezvous = SimpleNamespace(TCPStore=lambda **given: ports.append(given["port"]))
    _take_any_port(rendezvous)
    for size in (1, 2):
        rendezvous.TCPStore(port=29500, world_size=size, is_master=True)
    assert ports == [0, 29500]
