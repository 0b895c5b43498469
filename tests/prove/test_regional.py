"""Regional compilation: which blocks there are, what is compiled by itself, and how it is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from briefly import BRIEFLY

from breakscan.prove.faster import Ratio
from breakscan.prove.observation import ObservationKind
from breakscan.prove.protocol import (
    AvailableChoices,
    BlockList,
    CallableBlocks,
    CompileChoice,
    OtherPart,
    RegionalCompile,
)
from breakscan.prove.variants import arguments_of, code_for, planned_parts, without_parts

SAME = Ratio(1.0, 0.99, 1.01)
MODES: dict[str, dict[str, Any]] = {"default": {}, "max-autotune": {"max_autotune": True}}
LAYERS = BlockList("encoder.layers", "Block", False, ("0", "1", "2"), True)
MIXED = BlockList("", "Stage", False, ("1", "3"), False)


def available(*blocks: CallableBlocks, choice: CompileChoice | None = None, nested: bool = True) -> AvailableChoices:
    return AvailableChoices((), (), MODES, (choice,) * len(blocks), blocks, nested)


FIRST = "# in place of torch.compile(model):"
MODEL = available(CallableBlocks(True, (LAYERS,), (OtherPart("embed", False), OtherPart("encoder.norm", True))))


# -- what is written ----------------------------------------------------------------------------------------------


def test_the_code_names_the_lists_of_blocks() -> None:
    assert code_for(RegionalCompile.BLOCKS_AND_REST, MODEL).splitlines() == [
        FIRST,
        "for block in model.encoder.layers: block.compile()",
        "model.embed.compile()",
        "model.encoder.norm.forward = torch.compile(model.encoder.norm.forward)",
    ]
    assert code_for(RegionalCompile.NESTED, MODEL).splitlines() == [
        "Block.forward = torch.compiler.nested_compile_region(Block.forward)",
        "torch.compile(model)",
    ]


def test_the_code_names_blocks_among_other_modules_one_by_one() -> None:
    code = code_for(RegionalCompile.BLOCKS, available(CallableBlocks(True, (MIXED,))))
    assert code == f"{FIRST}\nfor block in (model[1], model[3]): block.compile()"
    named = BlockList("a-b.0", "Block", False, ("0", "1"), True)
    code = code_for(RegionalCompile.BLOCKS, available(CallableBlocks(True, (named,))))
    assert code == f"{FIRST}\nfor block in model.get_submodule('a-b')[0]: block.compile()"


@pytest.mark.parametrize(
    ("choice", "arguments"),
    [
        (None, ""),
        (CompileChoice("inductor", 0, {}, None, False), ""),
        (
            CompileChoice("inductor", 0, {"max_autotune": True}, True, True),
            'mode="max-autotune", dynamic=True, fullgraph=True',
        ),
        (CompileChoice("inductor", 0, {"max_fusion_size": 8}, None, False), 'options={"max_fusion_size": 8}'),
        (CompileChoice("eager", 0, {}, False, False), 'backend="eager", dynamic=False'),
    ],
)
def test_the_code_has_the_arguments_of_the_program(choice: CompileChoice | None, arguments: str) -> None:
    assert arguments_of(choice, MODES) == arguments
    of_torch = replace(LAYERS, of_torch=True)
    code = code_for(RegionalCompile.BLOCKS, available(CallableBlocks(True, (of_torch,)), choice=choice))
    more = f", {arguments}" if arguments else ""
    assert code.endswith(f"model.encoder.layers: block.forward = torch.compile(block.forward{more})")
    code = code_for(RegionalCompile.BLOCKS, available(CallableBlocks(True, (LAYERS,)), choice=choice))
    assert code == f"{FIRST}\nfor block in model.encoder.layers: block.compile({arguments})"


# -- what is not run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "reasons"),
    [
        (available(CallableBlocks(False)), {"regional": ObservationKind.NO_MODULE}),
        (available(CallableBlocks(True)), {"regional": ObservationKind.NO_BLOCKS}),
        (available(CallableBlocks(False), CallableBlocks(True)), {"regional": ObservationKind.NO_BLOCKS}),
        (available(CallableBlocks(True, (LAYERS,))), {"blocks + rest": ObservationKind.NO_REST}),
        (replace(MODEL, nested=False), {"nested_compile_region": ObservationKind.NO_NESTED_REGIONS}),
        (
            available(CallableBlocks(True, (replace(LAYERS, of_torch=True),), (OtherPart("head", True),))),
            {"nested_compile_region": ObservationKind.BLOCKS_OF_TORCH},
        ),
        (MODEL, {}),
    ],
)
def test_what_is_not_there_is_not_run(offered: AvailableChoices, reasons: dict[str, ObservationKind]) -> None:
    variants = planned_parts(offered)
    assert len(variants) == (1 if "regional" in reasons else 3)
    rows = [row for variant in variants if (row := without_parts(variant, offered)) is not None]
    assert {row.label: row.problem.observation.kind for row in rows if row.problem} == reasons


# -- programs -----------------------------------------------------------------------------------------------------

PROGRAM = """\
import torch
from torch._dynamo import register_backend


@register_backend
def wrong(graph, inputs):
    return lambda *args: [one + 0.1 for one in graph(*args)]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x):
        return x + self.fc(x).relu()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(9, 8)
        self.drop = torch.nn.Dropout(0.0)
        self.layers = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        x = self.drop(self.embed(x))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


torch.manual_seed(0)
compiled = torch.compile(Net(), backend="BACKEND")
for step in range(50):
    compiled(torch.arange(8)).sum().backward()
"""


def bench(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "it.py").write_text(text, encoding="utf-8")
    words = (*BRIEFLY, "bench", "--backends", "eager", "--regional", *words, "it.py")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.torch
@pytest.mark.slow
def test_blocks_are_compiled_by_themselves(tmp_path: Path, valid: Callable[..., Any]) -> None:
    text = PROGRAM.replace("BACKEND", "aot_eager")
    told = valid(bench(tmp_path, text, "--format", "json").stdout, "bench")
    ways = {way["regional"]: way for way in told["ways"] if way["way"] != 'backend="eager"'}
    assert {way["standing"] for way in ways.values()} == {"measured"}
    # The whole is one graph; all blocks share one; so do the embedding and the head, each.
    assert {region: way["graphs"] for region, way in ways.items()} == {
        None: 1,
        "blocks": 1,
        "blocks-and-rest": 3,
        "nested": 1,
    }
    assert all(way["compile_seconds"]["aot_autograd"] > 0 for way in ways.values())
    assert ways["blocks"]["compile_seconds"]["total"] < ways[None]["compile_seconds"]["total"]


@pytest.mark.torch
@pytest.mark.slow
def test_the_results_of_blocks_are_compared(tmp_path: Path) -> None:
    told = json.loads(bench(tmp_path, PROGRAM.replace("BACKEND", "wrong"), "--format", "json").stdout)
    ways = {way["regional"]: way for way in told["ways"] if way["way"] != 'backend="eager"'}
    assert set(ways) == {None, "blocks", "blocks-and-rest", "nested"}
    nested = ways.pop("nested")
    assert {region: way["standing"] for region, way in ways.items()} == dict.fromkeys(ways, "differs")
    # Torch cannot run the graph of a region without AOTAutograd here.
    assert nested["standing"] in ("differs", "failed")


FUNCTION = """\
import torch

layer = torch.nn.Linear(4, 4)


@torch.compile(backend="eager")
def step(x):
    return layer(x).relu()


for _ in range(9):
    step(torch.ones(2, 4))
"""


@pytest.mark.torch
@pytest.mark.slow
def test_a_function_has_no_blocks(tmp_path: Path) -> None:
    told = json.loads(bench(tmp_path, FUNCTION, "--format", "json").stdout)
    row = told["ways"][-1]
    assert (row["way"], row["standing"]) == ("regional", "skipped")
    assert row["problem"]["error"] == "what is compiled is a function, not a module: its blocks are not known"
