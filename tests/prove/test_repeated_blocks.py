"""The repeated blocks of modules, and regions that a worker compiles by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.prove.candidate import UNCHANGED
from breakscan.prove.commands import CommandHandler
from breakscan.prove.protocol import OtherPart, RegionalCompile, StepKind
from breakscan.prove.regions import RegionalCompiler, blocks_of
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import UserProgram, Worker

pytestmark = pytest.mark.torch


def test_blocks_are_the_outermost_siblings_of_a_class() -> None:
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(2))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
            self.stages = nn.ModuleList([Block(), Block(), nn.LayerNorm(2)])
            self.alone = nn.ModuleList([Block()])
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
            self.drop = nn.Dropout()

    found = blocks_of(Net())
    # Experts of a block that is alone are the outermost there.
    assert list(found.blocks) == ["stages.0", "stages.1", "alone.0.experts.0", "alone.0.experts.1"]
    assert [(one.path, one.kind, one.names, one.whole) for one in found.lists] == [
        ("stages", "Block", ("0", "1"), False),
        ("alone.0.experts", "Sequential", ("0", "1"), True),
    ]
    assert list(found.rest) == ["stages.2", "stem", "heads.a", "heads.b"]


def test_parts_that_run_other_code_are_no_blocks() -> None:
    from torch import nn

    assert not blocks_of(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))).blocks
    unlike = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.LayerNorm(2))])
    assert not blocks_of(nn.Sequential(unlike)).blocks
    shared = nn.TransformerEncoderLayer(8, 2)
    assert not blocks_of(nn.Sequential(shared, shared)).blocks
    (one,) = blocks_of(nn.TransformerEncoder(shared, 2)).lists
    assert (one.path, one.of_torch) == ("layers", True)


PROGRAM = """\
import torch


def told(graph, inputs):
    def run(*values):
        print("compiled")
        return graph(*values)

    return run


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        if not torch.compiler.is_compiling():
            marked = hasattr(type(self).forward, "__marked_compile_region_fn__")
            print("through" if self._compiled_call_impl is not None or marked else "as written")
        return x * self.scale


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.norm = torch.nn.LayerNorm(2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


net = torch.compile(Net(), backend=told, fullgraph=True)
for step in range(9):
    net(torch.ones(2))
"""


@pytest.mark.parametrize(
    ("regional", "runs"),
    [(RegionalCompile.BLOCKS, 3), (RegionalCompile.BLOCKS_AND_REST, 4), (RegionalCompile.NESTED, 1)],
)
def test_a_region_is_compiled_and_left_out_of_eager_steps(tmp_path: Path, regional: RegionalCompile, runs: int) -> None:
    script = tmp_path / "it.py"
    script.write_text(PROGRAM, encoding="utf-8")
    with Worker(UserProgram((str(script),)), UNCHANGED, tmp_path / "arm") as worker:
        worker.ready()

        def told(kind: StepKind) -> int:
            before = worker.output()
            assert worker.block(6, kind).seconds > 0
            lines = worker.output()[len(before) :].split("\n")
            assert "through" not in lines, "eager code calls through what was compiled"
            assert lines.count("as written") == (18 if kind is StepKind.EAGER else 0)
            return lines.count("compiled")

        choices = worker.ask(CommandHandler.choices)
        (its,) = choices.blocks
        assert (its.is_module, [one.names for one in its.lists], its.rest) == (
            True,
            [("0", "1", "2")],
            (OtherPart("norm", True),),
        )
        worker.ask(RegionalCompiler.compile, regional)
        worker.ask(StepTimer.prepare, StepKind.COMPILED)
        assert told(StepKind.COMPILED) == 6 * runs
        worker.ask(StepTimer.prepare, StepKind.EAGER)
        assert told(StepKind.EAGER) == 0
        assert told(StepKind.COMPILED) == 6 * runs
        assert worker.block(6).compiles == 0, "eager steps between do not make it compile again"
