"""Programs that reproduce one finding of a run."""

from __future__ import annotations

import html
import json
import re

import pytest
from programs import Done, Folder

pytestmark = pytest.mark.torch

PROGRAM = """import dataclasses
import torch
import helpers as h
from helpers import FACTOR as factor
from torch import nn

@dataclasses.dataclass
class Config:
    k: int = 3

    def double(self):
        return self.k * 2

class Base(nn.Module):
    def lifted(self, x):
        return x.relu() + self.offset

class Block(Base):
    limit = 0.5

    def __init__(self, size):
        super().__init__()
        self.register_buffer("offset", torch.ones(size))
        self.weight = nn.Parameter(torch.randn(size, size))
        self.layers = nn.Sequential(nn.Linear(size, size, bias=False), nn.LayerNorm(size))
        self.config = Config()

    def forward(self, x, mask=None):
        x = self.lifted(self.layers(x) @ self.weight) * self.config.double()
        if x.mean() > self.limit:  # MEAN
            x = x + factor
        return h.scaled(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(4) for _ in range(2))

    @torch.no_grad()
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

net = torch.compile(Net().eval(), backend="eager")
net(torch.randn(2, 4))

class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 1

    def forward(self, x, n):
        return x * self.step + n  # COUNTER

counter = Counter()
compiled = torch.compile(counter, backend="eager", dynamic=False)
for number in range(2):
    counter.step = number + 5
    compiled(torch.ones(3), 0)
compiled(torch.ones(7), 0)

def make(scale):
    @torch.compile(backend="eager")
    def inner(x, *rest, flag=True, **more):
        y = x * scale
        print(end="")  # PRINT
        return y + rest[0] + more["bias"] if flag else y
    return inner

make(2.5)(torch.ones(3, dtype=torch.float64), torch.ones(3), bias=torch.zeros(3))

@torch.compile(backend="eager")
def fails(x):
    return torch.ones(3, 4) @ x  # FAILS

try:
    fails(torch.ones(3))
except RuntimeError:
    pass

@torch.compile(backend=lambda graph, inputs: graph.forward)
def optional(x, mask):
    if mask is not None:
        x = x[mask]  # MASK
    return x + 1

optional(torch.ones(3), None)
optional(torch.ones(3), torch.ones(3).bool())
raise SystemExit(5)
"""
HELPERS = """import torch

FACTOR = 2.0

def scaled(x):
    return torch.clamp(x, max=FACTOR)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    pytest.importorskip("torch")
    folder = Folder(tmp_path_factory.mktemp("repro"))
    folder.write("src/script.py", PROGRAM)
    folder.write("src/helpers.py", HELPERS)
    done = folder.explain("--save", "kept", "--repro", "script.py:1", "src/script.py")
    # The exit status of the program comes first.
    assert done.status == 5, done.err.decode()
    assert b"nothing is reported at script.py:1" in done.err
    return folder


def line(mark: str) -> int:
    return next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {mark}"))


def repro(folder: Folder, mark: str, *options: str) -> tuple[Done, str]:
    """What ``report --repro`` did for the line of a mark, and the program that it wrote."""
    name = f"repro_{mark}.py"
    (folder.path / name).unlink(missing_ok=True)
    done = folder.python(
        *("-m", "breakscan", "report", "--repro", f"script.py:{line(mark)}", "--repro-output", name, *options, "kept")
    )
    return done, (folder.path / name).read_text(encoding="utf-8")


def test_a_break_that_depends_on_its_caller(recorded: Folder) -> None:
    done, text = repro(recorded, "MEAN", "--format", "json")
    assert done.status == 0, done.err.decode()
    made = json.loads(done.out)["reproduction"]
    assert (made["status"], made["kind"], made["error"], made["not_recorded"]) == ("reproduced", "break", None, [])
    # Alone, Block.forward splits; in the loop of Net.forward, that runs eager.
    assert "torch.nn.ModuleList([Block(), Block()])" in text
    assert "stand_in.eval()" in text
    assert "torch.compile(stand_in, backend='eager')\ncompiled(torch.randn(2, 4))" in text
    assert "import helpers" not in text
    assert "FACTOR = 2.0" in text
    # It stands alone, and does the same under torch's own eyes.
    alone = recorded.python("repro_MEAN.py", env={"TORCH_LOGS": "graph_breaks"})
    assert alone.status == 0
    assert b"gb0170" in alone.err


@pytest.mark.parametrize(
    ("mark", "kind", "parts"),
    [
        ("COUNTER", "recompiles", ["stand_in.step = 6", "backend='eager', dynamic=False"]),
        ("FAILS", "failure", ["torch.compile(fails, backend='eager')", "compiled(torch.randn(3))"]),
        ("MASK", "break", ["(torch.rand(3) > 0.5)", "own backend, <lambda>, is replaced by eager"]),
    ],
)
def test_each_kind_is_reproduced(recorded: Folder, mark: str, kind: str, parts: list[str]) -> None:
    done, text = repro(recorded, mark, "--format", "json")
    made = json.loads(done.out)["reproduction"]
    assert (made["status"], made["kind"], done.status) == ("reproduced", kind, 0)
    for part in parts:
        assert part in text


def test_a_site_can_be_an_id_and_no_file_is_overwritten(recorded: Folder) -> None:
    recorded.write(f"repro_script_{line('PRINT')}.py", "mine")
    done = recorded.python("-m", "breakscan", "report", "--repro", "gb0059", "kept")
    made = recorded.path / f"repro_script_{line('PRINT')}_2.py"
    assert done.status == 0
    said = " ".join(done.out.decode().split())
    assert f"Reproduction: {made.name} reproduces src/script.py:{line('PRINT')}" in said
    text = made.read_text(encoding="utf-8")
    assert "scale = 2.5" in text
    assert "(torch.randn(3, dtype=torch.float64), torch.randn(3), bias=torch.randn(3))" in text
    assert (recorded.path / f"repro_script_{line('PRINT')}.py").read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_done_is_said(recorded: Folder) -> None:
    report = ("-m", "breakscan", "report", "--format", "github")
    done = recorded.python(*report, "--repro", "script.py:1", "kept")
    assert (done.status, b"nothing is reported at script.py:1: there is src/script.py:" in done.err) == (2, True)
    done = recorded.python(*report, "--repro", "src/script.py:30", "--repro-output", "src/script.py", "kept")
    assert (done.status, b"src/script.py exists already" in done.err) == (2, True)
    done = recorded.python(*report, "--repro-output", "new.py", "kept")
    assert (done.status, b"goes with --repro SITE" in done.err) == (2, True)


def test_what_does_not_break_alone_is_no_reproduction(folder: Folder) -> None:
    """What the program has set is not recorded."""
    pytest.importorskip("torch")
    folder.write(
        "script.py",
        "import torch\n"
        "torch._dynamo.config.enable_faithful_generator_behavior = False\n"
        "LIMITS = {}\n"
        "LIMITS.update(low=1)\n"
        '@torch.compile(backend="eager")\n'
        "def f(x):\n"
        "    y = x + LIMITS['low']\n"
        "    print(end='')\n"
        "    return y\n"
        "f(torch.ones(3))\n"
        "print('done')\n",
    )
    done, report = folder.explain_json("--repro", "script.py:8", "script.py")
    assert done.status == 1
    assert done.out == b"done\n"
    made = report["reproduction"]
    assert (made["path"], made["status"]) == ("repro_script_8.py", "failed")
    assert "KeyError" in made["error"]
    assert re.search(rb"repro_script_8.py does not reproduce script.py:8: run alone, it ends with .*KeyError", done.err)


def test_a_library_gets_a_text_for_its_issue_tracker(folder: Folder) -> None:
    pytest.importorskip("torch")
    installed = folder.path / "site-packages"
    folder.write("site-packages/some_layers/__init__.py", "__version__ = '1.2.3'\n")
    folder.write("site-packages/some_layers/const.py", "LIMIT = 3\n")
    folder.write(
        "site-packages/some_layers/gate.py",
        "from .const import LIMIT\n"
        "\n"
        "class Gate:\n"
        "    def __init__(self, scale):\n"
        "        self.scale = scale\n"
        "\n"
        "    def apply(self, x):\n"
        "        if x.sum() > LIMIT:\n"
        "            return x * self.scale\n"
        "        return x\n",
    )
    folder.write(
        "script.py",
        "import torch\n"
        "from some_layers.gate import Gate\n"
        "gate = Gate(2)\n"
        "@torch.compile(backend='eager')\n"
        "def f(x):\n"
        "    return gate.apply(x + 1) - 1\n"
        "f(torch.ones(3))\n",
    )
    done, report = folder.explain_json("--repro", "script.py:6", "script.py", env={"PYTHONPATH": str(installed)})
    assert done.status == 0, done.err.decode()
    assert report["libraries"] == {"some_layers": "1.2.3"}
    made = report["reproduction"]
    assert (made["path"], made["issue"], made["status"]) == ("repro_gate_8.py", "repro_gate_8.md", "reproduced")
    program = (folder.path / "repro_gate_8.py").read_text(encoding="utf-8")
    assert "from some_layers.const import LIMIT" in program
    text = html.unescape((folder.path / "repro_gate_8.md").read_text(encoding="utf-8"))
    assert text.startswith(
        "# torch.compile: graph break in `Gate.apply`, `Data-dependent branching`\n\nsome_layers 1.2.3, torch "
    )
    assert "**Where:** `some_layers/gate.py:8`, in `Gate.apply`" in text
    assert "gb/gb0170.html)" in text
    assert f"````python\n{program.rstrip()}\n````" in text
