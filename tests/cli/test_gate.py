"""The gates of ``explain``: what they count, what they say, and the exit status."""

import re
from pathlib import Path
from typing import Any

import pytest

from breakscan.explanation.gates import selectors
from breakscan.rulebook.library import load_library
from tests.cli.conftest import Run

PROGRAM = """import sys
import torch


def splits(x):
    y = x.sin()
    print("splits")
    return y.cos()


def loops(x):
    for _ in range(2):
        x = x + x.sum().item()
    return x


def generates(x):
    yield x.sin()


def sized(x):
    return x * 2


compiled = [torch.compile(f, backend="eager") for f in (splits, loops, generates, sized)]
x = torch.ones(3)
compiled[0](x)
compiled[1](x)
list(compiled[2](x))
for size in (3, 4):
    compiled[3](torch.ones(size))
sys.exit(int(sys.argv[1]))
"""

needs_torch = pytest.mark.torch


def said(done: Any) -> list[str]:
    """The lines after the report, without columns, which Python 3.10 does not have."""
    lines = [line.removeprefix("breakscan: ") for line in done.err.splitlines() if line.startswith("breakscan: ")]
    return [re.sub(r"(py:\d+):\d+", r"\1", line) for line in lines]


@needs_torch
class TestARun:
    @pytest.fixture(autouse=True)
    def program(self, folder: Path) -> None:
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")

    def test_what_is_not_met_is_told_with_its_places(self, process: Run) -> None:
        gates = "--max-breaks 2 --max-recompiles 0 --fail-on BRK401,BRK2xx --fail-on changing-size".split()
        done = process("explain", *gates, "program.py", "0")
        assert done.status == 1
        assert done.out == "splits\n"
        assert said(done) == [
            "--max-breaks 2 is not met: 3 break sites at program.py:13, program.py:7, program.py:17",
            "--max-recompiles 0 is not met: 1 recompile at program.py:21",
            "--fail-on BRK401 is not met: 1 site at program.py:7",
            "--fail-on BRK2xx is not met: 1 site at program.py:13",
            "--fail-on changing-size is not met: 1 site at program.py:21",
        ]

    @pytest.mark.slow
    def test_what_is_met_is_not_told(self, process: Run) -> None:
        gates = ("--max-breaks", "3", "--max-recompiles", "1", "--fail-on", "BRK101,BRK9")
        done = process("explain", *gates, "program.py", "0")
        assert (done.status, said(done)) == (0, [])

    @pytest.mark.parametrize(
        ("word", "problem"),
        [
            ("BRK1010", "no rule is called 'BRK1010': did you mean BRK101?"),
            ("printt", "no rule is called 'printt': did you mean print?"),
            ("GB01", "no graph break of PyTorch's is called 'GB01'"),
        ],
    )
    def test_a_word_that_names_nothing_is_told_before_the_program_runs(
        self, breakscan: Run, word: str, problem: str
    ) -> None:
        done = breakscan("explain", "--fail-on", f"BRK101,{word}", "program.py", "0")
        assert (done.status, done.out) == (2, "")
        assert f"--fail-on: {problem}" in done.err

    @pytest.mark.parametrize("status", [0, 7])
    def test_a_run_that_compiles_nothing_meets_no_gate_and_the_programs_own_status_wins(
        self, process: Run, folder: Path, status: int
    ) -> None:
        (folder / "exits.py").write_text(f"raise SystemExit({status})", encoding="utf-8")
        done = process("explain", "--max-breaks", "9", "exits.py")
        assert done.status == (status or 1)
        assert said(done) == ["nothing was compiled, so the gates are not met"]


def test_a_family_can_be_written_with_crosses() -> None:
    library = load_library()
    (family,), (start,) = selectors(["BRK2xx"], library), selectors(["BRK2"], library)
    assert family.ids == start.ids
    assert family.ids is not None
    assert all(rule.startswith("BRK2") for rule in family.ids)


@needs_torch
def test_what_is_compiled_after_a_step_is_named_also_if_it_is_compiled_anew_in_each(process: Run, folder: Path) -> None:
    program = """import torch

def f(x):
    return x.sin()

class Late(torch.nn.Module):
    def __eq__(self, other):
        return self is other

    def forward(self, x):
        return x.cos()

def sized(x):
    return x.tan()

block = torch.compile(f, backend="aot_eager")
for step in range(1, 6):
    x = torch.ones(3, requires_grad=True)
    y = block(x)
    torch.compile(sized, backend="eager")(torch.ones(3 if step < 4 else 5))
    if step == 4:
        y.sum().backward()
        torch.compile(Late(), backend="eager")(x)
"""
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = process("explain", "--no-compile-after", "3", "--save", "run", "program.py")
    assert done.status == 1
    assert said(done)[1:] == [
        "--no-compile-after 3 is not met: f at program.py:3 was compiled in step 4",
        "--no-compile-after 3 is not met: sized at program.py:13 was recompiled in step 4, "
        "because x.shape[0] was 3, then 5",
        "--no-compile-after 3 is not met: Late.forward at program.py:10 was compiled in step 4",
    ]
    assert process("report", "run", "--no-compile-after", "4").status == 0


@needs_torch
def test_recompiles_of_torchs_own_functions_count_and_an_eager_call_that_is_meant_does_not(
    process: Run, folder: Path
) -> None:
    program = """import torch

linear = torch.compile(torch.nn.Linear(4, 4), backend="eager", dynamic=False)
for size in (2, 3, 5):
    linear(torch.ones(size, 4))
with torch.compiler.set_stance("eager_then_compile"):
    sine = torch.compile(lambda x: x.sin(), backend="eager")
    for size in (2, 3):
        sine(torch.ones(size))
"""
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = process("explain", "--max-recompiles", "1", "--max-eager-calls", "0", "program.py")
    assert done.status == 1
    assert said(done) == ["--max-recompiles 1 is not met: 2 recompiles at program.py:5"]
    assert 'torch.compiler.set_stance("eager_then_compile") was in force' in " ".join(done.err.split())
