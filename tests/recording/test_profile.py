"""Where a step's time goes, on programs that run."""

from typing import Any

import pytest
from programs import Done, Folder

pytestmark = pytest.mark.torch

STEPS = """import sys, torch

torch.manual_seed(0)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
compiled = torch.compile(model, backend=sys.argv[1])
own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
x = torch.arange(32.0).reshape(1, 32) / 32
for step in range(14):
    if step == int(sys.argv[2]):
        own.start()
    loss = compiled(x).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.linalg.svd(torch.eye(300) + model.weight.sum().detach())
    print(loss.item())
if int(sys.argv[2]) < 14:
    own.stop()
    print(len(own.events()) > 10)
"""


def explained(folder: Folder, *arguments: str) -> tuple[Done, Done, Any]:
    """A run under Python, one with --profile, and its report."""
    folder.write("steps.py", STEPS)
    plain = folder.python("steps.py", *arguments)
    return plain, *folder.explain_json("--profile", "steps.py", *arguments)


@pytest.mark.slow
def test_the_time_of_a_step_is_told_by_what_it_goes_to(folder: Folder) -> None:
    plain, done, report = explained(folder, "inductor", "99")
    assert (done.status, done.out) == (plain.status, plain.out)
    assert b"profiler" not in done.err
    profile = report["profile"]
    assert (profile["function"], profile["steps"]) == ("Linear.forward", 5)
    assert (profile["waiting"], profile["device"]) == (0, None)
    parts = [profile[part] for part in ("graphs", "eager", "entering")]
    assert all(part > 0 for part in parts)
    assert sum(parts) <= profile["profiled"] * 1.01
    assert profile["eager"] > max(profile["graphs"], profile["entering"]), "a decomposition that takes milliseconds"
    assert profile["calls"][0]["name"] == "aten::_linalg_svd"
    assert profile["calls"][0]["calls"] == 1


@pytest.mark.parametrize(("own", "steps"), [(0, None), (9, 1)], ids=["before", "meanwhile"])
def test_a_program_may_run_a_profiler_itself(folder: Folder, own: int, steps: int | None) -> None:
    plain, done, report = explained(folder, "eager", str(own))
    assert (done.status, done.out) == (plain.status, plain.out)
    assert (report["profile"] and report["profile"]["steps"]) == steps
    assert any("no steps were profiled" in notice for notice in report["notices"]) == (steps is None)
