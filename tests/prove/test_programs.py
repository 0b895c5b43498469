"""Verdicts on programs as people write them: data loaders with workers, optimizers, and what only a first call does."""

from typing import Any

import pytest

pytestmark = pytest.mark.torch

WORKERS = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(16, generator=g), i % 4

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(16, 32)
        self.b = torch.nn.Linear(32, 4)

    def forward(self, x):
        h = torch.relu(self.a(x))
        if torch.isnan(h).any():
            raise FloatingPointError("NaN in the hidden layer")
        if h.mean() > 0.4:
            h = h * 0.5
        return self.b(h)

def main():
    torch.manual_seed(0)
    net = Net()
    compiled = torch.compile(net, backend="aot_eager")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(Data(), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    for epoch in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(compiled(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, float(loss))

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_data_loaders_may_have_workers(verified: Any) -> None:
    told = verified(WORKERS, status=0)
    guard, where, both = told["proofs"]
    assert [proof["outputs_equal"] for proof in told["proofs"]] == [True, True, True]
    assert (guard["rewrite"], where["rewrite"], both["breaks"]["after"]) == ("assert-async", "where", 0)
    assert guard["unseen"] == []
    assert [(one["code"], one["outcomes"]) for one in where["unseen"]] in ([], [("h.mean() > 0.4", [True])])


SET_UP = """\
import torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            if x.sum() > 0:
                y = x * 2
            else:
                y = x * 3
            self.scale = y.abs().max()
        return x / self.scale


torch.manual_seed(0)
compiled = torch.compile(Scaled(), backend="aot_eager")
for step in range(4):
    compiled(torch.randn(8))
"""
LAZY = """\
import torch

net = torch.nn.LazyLinear(4)


def f(x):
    y = net(x)
    if y.sum() > 0:
        y = y * 2
    else:
        y = y * 3
    return y


compiled = torch.compile(f, backend="aot_eager")
for step in range(4):
    compiled(torch.randn(8, 3))
"""


@pytest.mark.slow
def test_a_break_in_what_the_first_call_sets_up_is_found_and_proved(verified: Any) -> None:
    told = verified(SET_UP, status=0)
    assert told["unreached"] == []
    (proof,) = told["proofs"]
    assert proof["label"] == "program.py:11 where"
    assert proof["verdict"] in ("accepted", "no-faster", "too-noisy"), proof["reasons"]
    assert (proof["breaks"]["before"], proof["breaks"]["after"]) == (1, 0)


def test_a_change_that_only_the_first_call_shows_is_rejected(verified: Any) -> None:
    told = verified(SET_UP, becomes=SET_UP.replace("y.abs().max()", "y.abs().max() + 0.01"), status=1)
    (proof,) = told["proofs"]
    assert proof["verdict"] == "rejected"
    assert any(reason.startswith("eager, output") for reason in proof["reasons"]), proof["reasons"]


SCORED = """\
import torch


class Net(torch.nn.Module):
    def __init__(self, sharp):
        super().__init__()
        self.fc, self.sharp, self.depth = torch.nn.Linear(8, 4), sharp, 0

    def forward(self, x):
        self.depth += 1
        y = self.fc(x) * self.sharp
        self.depth -= 1
        return y


def score(net, x):
    return net(x).tanh().sum(-1)


torch.manual_seed(0)
student, teacher = Net(1), Net(1)
teacher.sharp = 4
compiled = torch.compile(score, backend="aot_eager")
for step in range(8):
    try:
        compiled(teacher if step == 6 else student, torch.randn(5, 7 if step == 5 else 8))
    except RuntimeError:
        student.depth = 0
"""


@pytest.mark.slow
def test_later_calls_may_have_other_objects_and_fail(verified: Any) -> None:
    becomes = SCORED.replace(" * self.sharp\n        self.depth -= 1", "\n").replace("+= 1", "= 0")
    (proof,) = verified(SCORED, becomes=becomes)["proofs"]
    assert proof["reasons"] == []
    found = {(one["kind"], one["part"]) for one in proof["varied"]}
    assert {("later", "output"), ("later", "state")} <= found


@pytest.mark.slow
def test_a_change_may_compile_a_part_of_what_the_program_compiles(verified: Any) -> None:
    part = SET_UP.replace("        return x / self.scale", "        return self.part(x, self.scale)").replace(
        "    def forward",
        "    @torch.compile(backend='aot_eager')\n    def part(self, x, y):\n        return x / y\n\n    def forward",
    )
    part = part.replace('compiled = torch.compile(Scaled(), backend="aot_eager")', "compiled = scaled")
    whole = SET_UP.replace('torch.compile(Scaled(), backend="aot_eager")', 'torch.compile(scaled, backend="aot_eager")')
    whole, part = (text.replace("compiled = ", "scaled = Scaled()\ncompiled = ") for text in (whole, part))
    (proof,) = verified(whole, becomes=part)["proofs"]
    assert (proof["reasons"], proof["outputs_equal"]) == ([], True)
    (proof,) = verified(whole, becomes=part.replace("x / y", "x / y + 0.01"))["proofs"]
    assert any(reason.startswith("eager, output") for reason in proof["reasons"]), proof["reasons"]


STEPPED = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x.sin()

    def step(self, pair):
        x, y = pair
        return (self(x) - y).square().mean()


net = Net()
step = torch.compile(net.step, backend="aot_eager")
for _ in range(4):
    loss = step((torch.rand(3), torch.rand(3)))
"""


@pytest.mark.slow
def test_a_change_may_compile_the_module_in_place_of_its_method(verified: Any) -> None:
    module = STEPPED.replace('torch.compile(net.step, backend="aot_eager")', "net.step")
    module = module.replace("net = Net()\n", 'net = Net()\nnet.compile(backend="aot_eager")\n')
    (proof,) = verified(STEPPED, becomes=module)["proofs"]
    assert (proof["reasons"], proof["outputs_equal"]) == ([], True)
    (proof,) = verified(STEPPED, becomes=module.replace(".mean()", ".mean() + 0.01"))["proofs"]
    assert any(reason.startswith("eager, output") for reason in proof["reasons"]), proof["reasons"]


@pytest.mark.slow
def test_parameters_without_a_shape_are_left_to_the_later_calls(verified: Any) -> None:
    told = verified(LAZY, status=0)
    (proof,) = told["proofs"]
    assert proof["label"] == "program.py:8 where"
    assert proof["verdict"] in ("accepted", "no-faster", "too-noisy"), proof["reasons"]
