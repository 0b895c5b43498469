"""A step is timed as the program runs it: an iteration of its loop, from the same state each time."""

from __future__ import annotations

from typing import Any

import pytest

from breakscan.prove.protocol import StepKind
from breakscan.prove.step_timer import StepTimer

pytestmark = pytest.mark.process

NET = """\
import torch

net = torch.nn.Linear(2, 2)
compiled = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
losses = []
"""
SCALED = """\
for step in range(9):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = compiled(torch.ones(2, 2)).float().sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
    assert len(losses) < 5 and torch.is_autocast_enabled("cpu") is False
"""
ACCUMULATED = """\
for step in range(9):
    for part in range(2):
        compiled(torch.ones(2, 2)).sum().backward()
    optimizer.step()
"""
RETURNS = """\
def train_one():
    for part in range(3):
        loss = compiled(torch.ones(2, 2)).sum()
        loss.backward()
        if part == 2:
            optimizer.step()
            return loss

for step in range(9):
    train_one()
"""
SAMPLER = """\
class Schedule:
    at = 0
    def __init__(self):
        self.sigmas = torch.linspace(1, 0, 4)
        self.at = 0
    def step(self, noise, x):
        self.at += 1
        return x + noise * self.sigmas[self.at]

@torch.no_grad()
def sample(x):
    schedule = Schedule()
    for at in range(3):
        x = schedule.step(compiled(x), x)
    return x

sample(torch.ones(2, 2))
"""
LISTED = "with torch.no_grad():\n    out = [compiled(torch.ones(2, 2)) for _ in range(9)]\n"
FAILS = """\
batches = iter(torch.ones(3, 2, 2))
with torch.no_grad():
    for step in range(3):
        compiled(next(batches))
"""


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (SCALED, (8, 1, True, True)),
        (ACCUMULATED, (8, 2, True, True)),
        (RETURNS, (16, 3, True, True)),
        (SAMPLER, (20, 1, False, False)),
        (LISTED, (None, 1, False, False)),
        (FAILS, (None, 1, False, False)),
    ],
)
def test_the_step_is_the_innermost_iteration_that_is_whole_and_can_be_repeated(
    started: Any, loop: str, expected: tuple[object, ...]
) -> None:
    with started(NET + loop) as worker:
        worker.ready()
        step = worker.ask(StepTimer.choose)
        line = int(step.loop.rpartition(":")[2]) if step.loop else None
        assert (line, step.calls, step.backward, step.optimizer) == expected
        for kind in (StepKind.COMPILED, StepKind.EAGER):
            worker.ask(StepTimer.prepare, kind)
            assert worker.block(20, kind).seconds > 0


def test_each_iteration_starts_from_the_state_in_which_the_program_was_stopped(started: Any) -> None:
    count = "    count = count + 1\n    held.append(count)\n"
    count += "    print('step', count, len(held), optimizer.param_groups[0]['lr'])\n"
    decay = "    optimizer.param_groups[0]['lr'] *= 0.5\n"
    loop = "for step in range(9):\n    compiled(torch.ones(2, 2)).sum().backward()\n    optimizer.step()\n"
    with started(f"{NET}count, held = 0, []\n{loop}{count}{decay}") as worker:
        worker.ready()
        worker.ask(StepTimer.choose)
        worker.ask(StepTimer.prepare, StepKind.EAGER)
        worker.block(5, StepKind.EAGER)
        steps = [line for line in worker.output().splitlines() if line.startswith("step")]
        assert set(steps[2:]) == {"step 3 3 0.025"}
        assert len(steps) > 6


def test_another_process_times_the_same_step_or_none(started: Any) -> None:
    with started(NET + ACCUMULATED) as worker:
        worker.ready()
        step = worker.ask(StepTimer.choose)
    with started(NET + ACCUMULATED.replace("range(2)", "range(1)")) as other:
        other.ready()
        assert not other.ask(StepTimer.use, step)
