"""What check says of the code that a run compiled, by one program that has each case, marked in its comments."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import breakscan

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """import time

import torch
from torch import nn

compiled = lambda function: torch.compile(function, backend="eager")
x = torch.ones(3)


def hides(x: torch.Tensor, n: int):
    y = x.cos()
    if n > 100:
        print("")  # before
    for _ in range(n):
        print("")  # hides
        if y.sum() > 100:  # hidden-in-loop
            y = y * 2
    return y * y.max().item()  # hidden


def branches(x: torch.Tensor, flag: bool):
    for _ in range(2):
        if flag:
            print("")  # taken
        else:
            x = x + x.sum().item()  # other-branch
    return x


def inner(x: torch.Tensor):
    y = x.sin()
    print("")  # inner
    return y


def calls(x: torch.Tensor):
    for _ in range(2):
        x = inner(x)  # call
    return x * x.max().item()  # hidden-by-call


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.debug = False

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None):
        self.calls += 1  # recompiles
        if mask is not None and mask.any():  # optional
            x = x + 1
        if self.debug:
            print("")  # off
            dumps(x)
        return x * 2


def compiles(x: torch.Tensor):
    return x * x.sum().item()  # compiled


def chooses(x: torch.Tensor):
    return x + 1 if x.shape[0] > 1 else x.sum().item()  # not-chosen


def unseen(x: torch.Tensor):
    getattr(time, "peels"[::-1])(0)  # unseen
    print("")  # breakscan: ignore[print]
    return x + 1


def chosen(x: torch.Tensor, mode):
    return x + 1 if mode == "a" else x - 1  # unseen-change


def dumps(x: torch.Tensor):
    print("")  # never-traced


def generates(x: torch.Tensor):  # generator
    yield x.sin()


def steps(x: torch.Tensor):  # steps
    yield x.cos()


def never(x: torch.Tensor):
    print("")  # never-compiled
    return x


compiled(hides)(x, 2)
compiled(branches)(x, True)
compiled(calls)(x)
net = Net()
net.compile(backend="eager")
for _ in range(2):
    net(x)
with torch._dynamo.config.patch(capture_scalar_outputs=True):
    compiled(compiles)(x)
compiled(chooses)(x)
compiled(unseen)(x)
for mode in ("a", "b"):
    compiled(chosen)(x, mode)
list(compiled(generates)(x))
list(torch.compile(steps, backend="eager")(x))  # given-generator
never(x)
"""


@dataclass
class Compared:
    """The agreement of a run of the program, as JSON, and the text of a report of it."""

    data: Any
    text: str

    def line(self, mark: str) -> int:
        return next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {mark}"))

    def outcome(self, mark: str) -> tuple[str, int | None]:
        """What is said of the finding at a line, and the line that it refers to."""
        line = self.line(mark)
        (found,) = (f for f in self.data["findings"] if f["site"]["line"] <= line <= f["site"]["end_line"])
        return found["outcome"], found["by"] and found["by"]["line"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    folder = tmp_path_factory.mktemp("agreement")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "breakscan", "explain", "--check", *options, "program.py"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True).stderr

    run("--format", "json", "--output", "report.json")
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    schema = Path(breakscan.__file__).parent / "schemas" / "explain.schema.json"
    jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(report)
    return Compared(report["agreement"], run().partition("Compared with breakscan check")[2])


@pytest.mark.parametrize("mark", ["hides", "taken", "inner", "recompiles"])
def test_what_the_run_did_is_confirmed(compared: Compared, mark: str) -> None:
    assert compared.outcome(mark) == ("confirmed", compared.line(mark))


def test_a_function_that_is_not_traced_is_told_where_it_is_given_to_the_compiler(compared: Compared) -> None:
    assert compared.outcome("given-generator") == ("confirmed", compared.line("steps"))


def test_what_stands_behind_a_break_in_a_given_up_function_is_hidden(compared: Compared) -> None:
    assert compared.outcome("hidden-in-loop") == ("hidden", compared.line("hides"))
    assert compared.outcome("hidden") == ("hidden", compared.line("hides"))


def test_the_break_may_lie_in_what_the_function_calls(compared: Compared) -> None:
    assert compared.outcome("hidden-by-call") == ("hidden", compared.line("inner"))


def test_what_was_compiled_without_a_break_is_contradicted(compared: Compared) -> None:
    assert compared.outcome("compiled") == ("contradicted", None)


@pytest.mark.parametrize("mark", ["optional", "off", "not-chosen", "before", "other-branch"])
def test_what_the_run_did_not_come_to_is_no_contradiction(compared: Compared, mark: str) -> None:
    assert compared.outcome(mark) == ("not-triggered", None)


def test_what_was_not_compiled_is_left_out(compared: Compared) -> None:
    lines = {finding["site"]["line"] for finding in compared.data["findings"]}
    assert lines.isdisjoint({compared.line("never-compiled"), compared.line("never-traced")})


def test_what_check_cannot_know_is_missed_and_what_it_may_not_say_is_silenced(compared: Compared) -> None:
    assert "recompiles" in {entry["kind"] for entry in compared.data["missed"]}
    missed = {entry["site"]["line"]: entry["silenced"] for entry in compared.data["missed"]}
    silenced = compared.line("breakscan: ignore[print]")
    unknown = ("unseen", "generator", "unseen-change")
    assert missed == {**dict.fromkeys(map(compared.line, unknown), False), silenced: True}


def test_people_are_told(compared: Compared) -> None:
    hides, inside, behind = (compared.line(mark) for mark in ("hides", "hidden-in-loop", "hidden"))
    assert (
        f"program.py:{hides} makes hides run eager, and hides line {inside} BRK101, line {behind} BRK201"
        in compared.text
    )
    assert f"program.py:{compared.line('compiled')}  BRK201 tensor-item" in compared.text
    assert f"program.py:{compared.line('unseen')}" in compared.text
    assert "only when" in compared.text


PRINTS = """import torch


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        print("in")  # print
        return x


torch.compile(Branches(), backend="eager")(torch.ones(3))
"""


def test_what_was_compiled_is_checked_for_that_whatever_the_target_is(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PRINTS, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.breakscan]\ntarget = "export"\n', encoding="utf-8")
    options = ("--check", "--format", "json", "-o", "report")
    command = [sys.executable, "-m", "breakscan", "explain", *options, "program.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    agreement = json.loads((tmp_path / "report").read_text(encoding="utf-8"))["agreement"]
    assert agreement["mode"] == "default"
    assert [(one["site"]["line"], one["outcome"]) for one in agreement["findings"]] == [(6, "confirmed")]
    assert not agreement["missed"]
