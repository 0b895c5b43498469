"""The repeated blocks of modules, and the code that compiles them by themselves."""

import pytest

from breakscan.prove.program_run import blocks_of, inner_modules
from breakscan.prove.protocol import ModulePart
from breakscan.prove.tune_changes import lines_for

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
    blocks = [(".stages[0]", ".stages[1]"), (".alone[0].experts",)]
    assert [(one.codes, one.repeated) for one in found] == [(codes, True) for codes in blocks]
    assert [one.codes for one in inner_modules(Net())] == [(".stem",), blocks[0], (".alone[0]",)]


def test_parts_that_run_other_code_are_no_blocks() -> None:
    from torch import nn

    unlike = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.LayerNorm(2))])
    shared = nn.TransformerEncoderLayer(8, 2)
    for inner in ([nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)], [unlike], [shared, shared]):
        assert not blocks_of(nn.Sequential(*inner))
    parts = inner_modules(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())))
    assert parts == (ModulePart(("[1]",), of_torch=True),)
    assert blocks_of(nn.TransformerEncoder(shared, 2)) == (ModulePart((".layers",), True, repeated=True),)


@pytest.mark.parametrize(
    ("blocks", "line"),
    [
        (ModulePart((".layers",), False, True), "for block in net.layers:\n    block.compile(dynamic=True)"),
        (ModulePart(("[1]", "[3]"), False, True), "for block in (net[1], net[3]):\n    block.compile(dynamic=True)"),
        (
            ModulePart((".get_submodule('a-b')[0]",), True, True),
            "for block in net.get_submodule('a-b')[0]:\n    block.forward = torch.compile(block.forward, dynamic=True)",
        ),
    ],
)
def test_the_code_names_the_blocks(blocks: ModulePart, line: str) -> None:
    rest = "net.norm.forward = torch.compile(net.norm.forward, dynamic=True)"
    assert list(lines_for((blocks, ModulePart((".norm",), True)), "dynamic=True", "net")) == [line, rest]
