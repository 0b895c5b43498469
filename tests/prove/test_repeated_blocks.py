"""The repeated blocks of modules, and the code that compiles them by themselves."""

import pytest

from breakscan.prove.program_run import blocks_of
from breakscan.prove.protocol import BlockList, CallableBlocks, OtherPart
from breakscan.prove.tune_regions import lines_for

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
    assert [(one.path, one.names, one.whole) for one in found.lists] == [
        ("stages", ("0", "1"), False),
        ("alone.0.experts", ("0", "1"), True),
    ]
    assert [one.path for one in found.rest] == ["stages.2", "stem", "heads.a", "heads.b"]


def test_parts_that_run_other_code_are_no_blocks() -> None:
    from torch import nn

    assert not blocks_of(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))).lists
    unlike = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.LayerNorm(2))])
    assert not blocks_of(nn.Sequential(unlike)).lists
    shared = nn.TransformerEncoderLayer(8, 2)
    assert not blocks_of(nn.Sequential(shared, shared)).lists
    # Where there are none, the modules that are no single layers.
    parts = blocks_of(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))).rest
    assert parts == (OtherPart("1", of_torch=True),)
    (one,) = blocks_of(nn.TransformerEncoder(shared, 2)).lists
    assert (one.path, one.of_torch) == ("layers", True)


@pytest.mark.parametrize(
    ("blocks", "line"),
    [
        (
            BlockList("layers", False, ("0", "1"), True),
            "for block in net.layers:\n    block.compile(dynamic=True)",
        ),
        (
            BlockList("", False, ("1", "3"), False),
            "for block in (net[1], net[3]):\n    block.compile(dynamic=True)",
        ),
        (
            BlockList("a-b.0", True, ("0", "1"), True),
            "for block in net.get_submodule('a-b')[0]:\n    block.forward = torch.compile(block.forward, dynamic=True)",
        ),
    ],
)
def test_the_code_names_the_blocks(blocks: BlockList, line: str) -> None:
    parts = CallableBlocks((blocks,), (OtherPart("norm", True),))
    rest = "net.norm.forward = torch.compile(net.norm.forward, dynamic=True)"
    assert list(lines_for(parts, "dynamic=True", "net")) == [line, rest]
