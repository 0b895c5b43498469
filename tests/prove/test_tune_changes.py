"""Changes of programs that ``tune`` tries: each is made from a recorded run, and the changed text runs as it says."""

import runpy
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import breakscan
from breakscan.explanation.explanation import Explanation
from breakscan.prove.proof import Goal, ProgramChange
from breakscan.prove.protocol import ModulePart, RunReport
from breakscan.prove.tune_changes import FASTER, TunedProgram, changes_of

pytestmark = pytest.mark.torch


Parts = tuple[ModulePart, ...]


class Counts(NamedTuple):
    """The breaks, the recompiles and the functions that run eager, and the graphs."""

    breaks: int
    recompiles: int
    eager: int
    graphs: int


class Ran(NamedTuple):
    """A program that ran, and its changes by name."""

    path: str
    text: str
    counts: Counts
    changes: dict[str, ProgramChange]
    program: TunedProgram

    def becomes(self, *names: str) -> str:
        """The text with changes, one after another."""
        text = self.text
        for name in names:
            texts = self.changes[name].write({self.path: text})
            assert texts is not None, name
            text = texts[self.path]
        return text


def recorded(path: Path) -> Explanation:
    import torch

    config: Any = torch._dynamo.config
    torch._dynamo.reset()
    kept = config.get_config_copy()
    try:
        with breakscan.record() as recording:
            runpy.run_path(str(path), run_name="__main__")
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config.load_config(kept)
    return recording.explain().explanation


def ran(folder: Path, text: str, *blocks: Parts, cuda: bool = False, inner: tuple[Parts, ...] = ()) -> Ran:
    path = folder / "program.py"
    text = text if "import torch" in text else f"import torch\n\n{text}"
    path.write_text(text, encoding="utf-8")
    run = recorded(path)
    report = RunReport((), (), 0.0, None, None, cuda, True, blocks, inner, ())
    program = TunedProgram(run, {str(path): text}, report, Goal.STEP)
    counts = Counts(run.break_events, len(run.recompiles), run.eager_frames, len(run.graphs))
    return Ran(str(path), text, counts, {one.name: one for one in changes_of(program)}, program)


def counts_of(folder: Path, text: str) -> Counts:
    return ran(folder, text).counts


SCALAR = '''\
"""Docstring."""
from __future__ import annotations
import torch as th  # the framework
from torch import nn

@th.compile(backend="eager")
def f(x):
    return x + x.max().item()

for _ in range(2):
    f(th.rand(3))
'''
GENERATE = """\
class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.head(x)

    @torch.no_grad()
    def generate(self, x):
        for _ in range(8):
            x = self(x)
            if x.max() > 100:
                break
        return x

model = Decoder()
generate = torch.compile(model.generate, backend="eager")  # decoding
generate(torch.rand(2, 4))
"""
LOOPED = """\
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
for layer in net:
    layer.compile(backend="eager")
net(torch.rand(2, 4))
"""
INNER = """\
class Net(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)

class Task(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x).sum()

def main():
    net = Net(800, 800)
    task = Task(net)
    task = torch.compile(task, backend="eager")
    for _ in range(40):
        task(torch.rand(800, 800))
        net(torch.rand(800, 800))

main()
"""
FOREIGN = """\
def query(x):
    return x.tolist()

def neighbours(x):
    found = query(x)
    return torch.tensor(found) * x.sum().item()

class Net(torch.nn.Module):
    def forward(self, x):
        near = neighbours(x)
        return near + x

net = Net()
net.compile(backend="eager")
net(torch.rand(4))
"""
LAYERS = """\
class Layer(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name

    @torch.compile(backend="eager")
    def forward(self, x):
        return x + len(self.name)

class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer("a" * n) for n in range(1, 5)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

Tower()(torch.rand(4))
"""
MODES = """\
@torch.inference_mode()
def references():
    return torch.rand(4)

@torch.compile(backend="eager")
def f(x):
    return x + 1

with torch.no_grad():
    f(torch.rand(4))
    f(references())
"""
BUCKETS = """\
TABLE = torch.rand(64)

def positions(n):
    for size in (8, 16, 32, 64):
        if n <= size:
            return TABLE[:size]

@torch.compile(backend="eager", dynamic=True)
def f(x):
    n = x.shape[0]
    return x + positions(n)[:n]

for n in (40, 20, 10, 5):
    f(torch.rand(n))
"""
RATE = """\
import torch
from torch.optim import SGD

net = torch.nn.Linear(3, 3)
opt = SGD(net.parameters(), 0.1)
step = torch.compile(opt.step, backend="eager")
for _ in range(4):
    net(torch.ones(2, 3)).sum().backward()
    step()
    opt.param_groups[0]["lr"] *= 0.5
"""
LOADER = """\
import torch
from torch.utils.data import DataLoader

@torch.compile(backend="eager")
def collate(items):
    return torch.stack(items) * 2

loader = DataLoader([torch.ones(2)] * 2, num_workers=1, collate_fn=collate)
for _ in range(2):
    list(loader)
"""
ROUNDS = """\
def step(x):
    return x * 2

@torch.compile(backend="eager")
def rounds(x):
    for _ in range(8):
        x = step(x)
        if x.max() > 100:
            break
    return x

rounds(torch.ones(4))
"""
MARKED = """\
@torch.compile(backend="eager")
def f(x):
    return x + 1

def main():
    for n in (5, 10, 20):
        x = torch.rand(n)
        # one step
        y = f(x)

main()
"""
SIZES = """\
class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2

net = Net()
fast = torch.compile(
    net,
    backend="eager",  # no code
    dynamic=False,
)
for n in (2, 3, 4, 5):
    x = torch.rand(n, 4)
    y = fast(x)
"""
METHOD = """\
class Coder(torch.nn.Linear):
    def encode(self, x):
        return torch.relu(self(x))

on = True
coder = Coder(4, 4)
coder = torch.compile(coder, backend="eager") if on else coder
coder.encode(torch.rand(4))
"""
COUNTER = """\
state = {"step": 0, "steps": 0}

@torch.compile(backend="eager", dynamic=False)
def update(x, state):
    state["step"] += 1
    return x / state["step"]

for _ in range(4):
    update(torch.ones(3), state)
"""
ABSENT = """\
class Batch:
    def __init__(self, x, names=None):
        'Some values.'
        self.x = x
        if names:
            self._names = names

@torch.compile(backend="eager")
def f(batch):
    return batch.x + (1 if getattr(batch, "_names", None) is None else 2)

for step in range(4):
    batch = Batch(torch.ones(3), ("time",))
    batch._names = None
    f(batch if step % 2 else Batch(torch.ones(3)))
"""
MEMO = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask, self.size = None, None

    def forward(self, x):
        if self.mask is None or (self.training and self.size != len(x)):
            self.mask = torch.ones(len(x))  # of ones
            self.size = len(x)
        return x + self.mask

net = torch.compile(Net(), backend="eager", dynamic=False)
for n in (4, 4, 6, 4, 6):
    net(torch.rand(n))
"""
GIVEN = """\
class Batch:
    def __init__(self, phase, tokens):
        self.phase, self.tokens = phase, tokens

class State:
    batch = None

state = State()

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x / state.batch.tokens ** 0.5

for n in range(4, 8):
    state.batch = Batch("decode", n)
    f(torch.rand(4))
"""
NOTED = """\
noted = {}

def note(name, value):
    noted[name] = value

class Layer(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name

    @torch.compile(backend="eager")
    def forward(self, x):
        note(self.name, x.mean())
        return x * 2

for layer in [Layer(f"layer{n}") for n in range(10)]:
    layer(torch.rand(4))
"""
CHECKED = """\
import functools
import torch

def checked(function):
    @functools.wraps(function)
    def wrapper(self, *args):
        print([tuple(one.shape) for one in args])
        return function(self, *args)
    return wrapper

class Net(torch.nn.Module):
    @checked
    def forward(self, x):
        return x.sin()

net = torch.compile(Net(), backend="eager")
for _ in range(2):
    net(torch.rand(3))
"""
STEP = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.up(x).relu()

@torch.compile(backend="eager")
def step(x):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()

model = Net().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    step(torch.rand(2, 4))
"""
PIPELINE = """\
class Net(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)

class Pipeline:
    def __init__(self):
        self.net = Net(4, 4)

    def run(self, x):
        y = self.net(x)
        return y, y.max().item()

pipeline = Pipeline()
pipeline.run = torch.compile(pipeline.run, backend="eager")
pipeline.run(torch.rand(2, 4))
"""
TIMED = """\
import time

class Timer:
    def __enter__(self):
        began = time.perf_counter()
        self.began = began + 0.0

    def __exit__(self, *_):
        self.spent = time.perf_counter() - self.began

@torch.compile(backend="eager")
def f(x):
    with Timer():
        return x + 1

print(time.time(), f(torch.rand(4)))
"""
ASKED = """\
from contextvars import ContextVar

scale = ContextVar("scale", default="half")

def factor():
    return {"half": 0.5}[scale.get()]

def null(name):
    with open(name) as file:
        return len(file.read())

@torch.compile(backend="eager")
def f(x, mask):
    if mask.all() or mask.any():
        x = x + 1
        return x
    x = x * factor() + null("/dev/null")
    return torch.where(mask, x + 1, x)

for n in range(2):
    f(torch.rand(3), torch.arange(3) > 3)
"""
EXITS = """\
@torch.compile(backend="eager")
def f(rows):
    total = 0.0
    for row in rows:
        if not (row > 0).any():
            total = total + 0.0
            continue
        total = total + row.clamp(min=0.0).sum()
    return total

for _ in range(2):
    f(torch.rand(3, 4) - 0.5)
"""
HOOKED = """\
class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self, module, inputs):
        self.calls += 1

net = torch.nn.Sequential(torch.nn.Linear(3, 3))
net[0].register_forward_pre_hook(Counter())
net = torch.compile(net, backend="eager")
for n in range(4):
    net(torch.rand(2, 3))
"""


RANKS = """\
class Steps:
    @torch.compile(backend="eager", dynamic=True)
    def rounded(self, x, *, high=6.0):
        \"\"\"To whole numbers.\"\"\"
        return x.clamp(-high, high).round()

steps = Steps()
for shape in ((4,), (2, 4), (2, 2, 4), (1, 2, 2, 4)):
    steps.rounded(torch.rand(shape), high=2.0)
"""
NORMS = """\
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(5))

    def forward(self, x):
        return x * x.square().mean(-1, keepdim=True).rsqrt() * self.weight

norm = torch.compile(Norm(), backend="eager", dynamic=True)
for shape in ((3, 5), (2, 2, 5), (2, 2, 2, 5)):
    norm(torch.rand(shape))
"""
STRIDES = """\
@torch.compile(backend="eager")
def f(x, y):
    return x.sin() + y

x, y = torch.rand(4, 4), torch.rand(4, 4)
for _ in range(2):
    f(x, y), f(x.T, y)
"""
PICKED = """\
@torch.compile(backend="eager", dynamic=True)
def f(x, out, t):
    out[..., t + 1, :] = x[:, t, :2].sin()
    return x[:, t] * 2

for t in range(2, 6):
    f(torch.rand(3, 8, 4), torch.zeros(3, 9, 2), t)
"""
NUMBERED = """\
class Layer(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return x[:, self.number, :] * 2

for layer in [torch.compile(Layer(number), backend="eager") for number in range(5)]:
    layer(torch.rand(3, 8, 4))
"""
CHOSEN = """\
@torch.compile(backend="eager")
def f(x, parts):
    y = x + 1
    if y.sum() > 0:
        parts.append(y * 2)
    else:
        parts.append(y / 2)
    return parts[0] + 1

f(torch.ones(3), [])
"""


@pytest.mark.parametrize(
    ("program", "name", "before", "after"),
    [
        (SCALAR, "capture_scalar_outputs = True", Counts(1, 1, 0, 3), Counts(0, 0, 0, 1)),
        (GENERATE, "compile the module of Decoder.generate in its place", Counts(2, 0, 1, 1), Counts(0, 0, 0, 1)),
        (ROUNDS, "compile step in place of rounds", Counts(1, 0, 1, 1), Counts(0, 0, 0, 1)),
        (INNER, "compile Net in place", Counts(0, 0, 0, 1), Counts(0, 0, 0, 2)),
        (INNER, "compile Net in place, and not Task", Counts(0, 0, 0, 1), Counts(0, 0, 0, 1)),
        (FOREIGN, "torch.compiler.disable at neighbours", Counts(4, 0, 0, 3), Counts(1, 0, 0, 1)),
        (LAYERS, "compile Tower.forward in place of Layer.forward", Counts(0, 3, 0, 4), Counts(0, 0, 0, 1)),
        (MODES, "torch.no_grad in place of torch.inference_mode", Counts(0, 1, 0, 2), Counts(0, 0, 0, 1)),
        (BUCKETS, "torch.compiler.disable at positions", Counts(0, 3, 0, 4), Counts(1, 1, 0, 3)),
        (MARKED, "program.py:11 torch._dynamo.mark_dynamic(x, 0)", Counts(0, 1, 0, 2), Counts(0, 0, 0, 1)),
        (RATE, "the learning rate as a tensor", Counts(1, 1, 0, 2), Counts(1, 0, 0, 1)),
        (METHOD, "compile Coder.encode, too", Counts(0, 0, 0, 0), Counts(0, 0, 0, 1)),
        (COUNTER, "step as a tensor", Counts(0, 3, 0, 4), Counts(0, 0, 0, 1)),
        (ABSENT, "_names is None where it is not set", Counts(0, 1, 0, 2), Counts(0, 0, 0, 1)),
        (MEMO, "mask computed in each call", Counts(0, 3, 0, 4), Counts(0, 1, 0, 2)),
        (GIVEN, "tokens as a tensor", Counts(0, 3, 0, 4), Counts(0, 0, 0, 1)),
        (NOTED, "torch.compiler.disable at note", Counts(0, 7, 1, 8), Counts(1, 0, 0, 2)),
        (CHECKED, "compile Net.forward below its decorators", Counts(1, 0, 0, 1), Counts(0, 0, 0, 1)),
        (STEP, "compile the modules, and not step", Counts(2, 0, 0, 2), Counts(0, 0, 0, 1)),
        (STEP, "compile optimizer.step, and not step", Counts(2, 0, 0, 2), Counts(1, 0, 0, 1)),
        (PIPELINE, "compile the modules, and not Pipeline.run", Counts(1, 0, 0, 1), Counts(0, 0, 0, 1)),
        (TIMED, "no time taken by compiled Timer.__enter__", Counts(1, 0, 1, 0), Counts(0, 0, 0, 1)),
        (CHOSEN, "at `y.sum() > 0`, torch.where", Counts(1, 0, 0, 2), Counts(0, 0, 0, 1)),
        (FOREIGN, "capture_scalar_outputs = True", Counts(4, 0, 0, 3), Counts(3, 0, 0, 2)),
        (HOOKED, "allow_unspec_int_on_nn_module = True", Counts(0, 3, 0, 4), Counts(0, 1, 0, 2)),
        (ASKED, "no early exit", Counts(4, 0, 0, 4), Counts(2, 0, 0, 2)),
        (EXITS, "no early exit", Counts(1, 0, 1, 0), Counts(0, 0, 0, 1)),
        (ASKED, "scale.get() as a constant", Counts(4, 0, 0, 4), Counts(3, 0, 0, 4)),
        (ASKED, "torch.compiler.assume_constant_result at null", Counts(4, 0, 0, 4), Counts(3, 0, 0, 3)),
        (RANKS, "x.flatten() for compiled Steps.rounded", Counts(0, 3, 0, 4), Counts(0, 0, 0, 1)),
        (NORMS, "x.flatten(0, -2) for compiled Norm.forward", Counts(0, 2, 0, 3), Counts(0, 0, 0, 1)),
        (STRIDES, "x.contiguous() for compiled f", Counts(0, 1, 0, 2), Counts(0, 0, 0, 1)),
        (PICKED, "select by t", Counts(0, 3, 0, 4), Counts(0, 0, 0, 1)),
        (NUMBERED, "select by self.number", Counts(0, 4, 0, 5), Counts(0, 1, 0, 2)),
        (SIZES, "torch.compile(..., dynamic=None)", Counts(0, 3, 0, 4), Counts(0, 1, 0, 2)),
        (SIZES, "torch.compile(..., dynamic=True)", Counts(0, 3, 0, 4), Counts(0, 0, 0, 1)),
        (SIZES, "without torch.compile", Counts(0, 3, 0, 4), Counts(0, 0, 0, 0)),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and "\n" not in value else "",
)
def test_a_change_does_what_it_says(program: str, name: str, before: Counts, after: Counts, tmp_path: Path) -> None:
    run = ran(tmp_path, program)
    name = next(full for full in run.changes if full.endswith(name))
    assert run.counts == before
    assert counts_of(tmp_path, run.becomes(name)) == after


BLOCKS = (ModulePart((".layers",), False, repeated=True),)
STACKED = """\
class Layer(torch.nn.Module):
    def forward(self, x):
        return x * 2

class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer() for _ in range(4)])

    def forward(self, x):
        for block in self.layers:
            x = block(x)
        return x

if __name__ == "__main__":
    tower, x = Tower().eval(), torch.rand(4)
    fast = torch.compile(tower, backend="eager")  # the whole
    for x in (x, torch.rand(6)):
        fast(x)
"""


def test_blocks_are_compiled_one_by_one(tmp_path: Path) -> None:
    text = ran(tmp_path, STACKED, BLOCKS).becomes("repeated blocks", "torch.compile(..., dynamic=True)")
    assert text.endswith(
        """\
    tower, x = Tower().eval(), torch.rand(4)
    for block in tower.layers:
        block.compile(backend="eager", dynamic=True)
    fast = tower  # the whole
    for x in (x, torch.rand(6)):
        fast(x)
"""
    )
    assert counts_of(tmp_path, text) == Counts(0, 0, 0, 1)


def test_an_inner_module_is_compiled_as_a_whole(tmp_path: Path) -> None:
    run = ran(tmp_path, INNER, inner=((ModulePart((".net",), False),),))
    assert '    task.net.compile(backend="eager")\n' in run.becomes("inner modules")


def test_cuda_graphs_come_before_blocks(tmp_path: Path) -> None:
    """On a GPU, they gain where blocks do not, and the time that is left is for what is tried first."""
    program = ran(tmp_path, STACKED.replace('"eager"', '"inductor"'), BLOCKS, cuda=True).program
    changes = [one.name for one in changes_of(program, FASTER)]
    tried = [name for name in changes if name.startswith(("torch.compile(..., mode", "repeated"))]
    modes = ("reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
    first, *others = (f'torch.compile(..., mode="{mode}")' for mode in modes)
    assert tried == [first, "repeated blocks", *others]
    assert "enable_cudnn_sdp(False)" not in changes


def test_attention_of_cudnn_is_left_out_on_a_gpu(tmp_path: Path) -> None:
    text = STACKED.replace('"eager"', '"inductor"') + "# attention\n"
    program = ran(tmp_path, text, BLOCKS, cuda=True).program
    (change,) = [one for one in changes_of(program, FASTER) if one.name == "enable_cudnn_sdp(False)"]
    assert "\ntorch.backends.cuda.enable_cudnn_sdp(False)\n" in "".join((change.write(program.texts) or {}).values())


DISABLED = """\
class Scaled:
    @torch.compiler.disable
    def __init__(self, x):
        self.x = x * 2

def halved(x):
    return x / 2

halved = torch._dynamo.disable(halved, recursive=False)

@torch.compile(backend="eager")
def f(x):
    return Scaled(halved(x)).x + 1

f(torch.rand(3))
"""


def test_a_disable_that_compiled_code_meets_is_taken_away(tmp_path: Path) -> None:
    run = ran(tmp_path, DISABLED)
    assert run.counts.breaks == 2
    names = [f"without torch.compiler.disable at {one}" for one in ("Scaled.__init__", "halved")]
    text = run.becomes(*names)
    assert "disable" not in text
    assert counts_of(tmp_path, text) == Counts(0, 0, 0, 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch import compile as C\n@C(backend='eager')", "@C(backend='eager', dynamic=True)"),
        ("C = torch.compile\n@C(backend='eager', dynamic=None)", "@C(backend='eager', dynamic=True)"),
        ("@partial(torch.compile, backend='eager')", "@partial(torch.compile, backend='eager', dynamic=True)"),
        ("C = partial(torch.compile, backend='eager')\n@C", "@C(dynamic=True)"),
        ("C = partial(torch.compile, backend='eager')\n@C(fullgraph=True)", "@C(fullgraph=True, dynamic=True)"),
        ("C = torch.compile(backend='eager')\n@C", "C = torch.compile(backend='eager', dynamic=True)"),
    ],
)
def test_settings_are_written_at_other_names_of_the_compiler(tmp_path: Path, before: str, after: str) -> None:
    text = f"""import torch
from functools import partial

{before}
def f(x):
    return x + 1

for size in (3, 4, 5):
    f(torch.rand(size))
"""
    run = ran(tmp_path, text)
    assert run.counts.recompiles == 1
    changed = run.becomes("torch.compile(..., dynamic=True)")
    assert after in changed.splitlines()
    assert not counts_of(tmp_path, changed).recompiles


def test_blocks_are_compiled_by_a_partial_and_what_no_call_compiles_is_named(tmp_path: Path) -> None:
    text = STACKED.replace('torch.compile(tower, backend="eager")', "maker(tower)").replace(
        "if __name__", 'from functools import partial\nmaker = partial(torch.compile, backend="eager")\nif __name__'
    )
    run = ran(tmp_path, text, BLOCKS)
    assert '        block.compile(backend="eager")\n' in run.becomes("repeated blocks")
    assert not run.program.elsewhere
    other = ran(tmp_path, text.replace("maker(tower)", "next(map(maker, [tower]))"), BLOCKS)
    assert len(other.program.elsewhere) == 1
    eager = other.becomes("without torch.compile")
    assert 'torch.compiler.set_stance("force_eager")\n' in eager
    # It holds for the whole process.
    assert not counts_of(tmp_path, eager + 'torch.compiler.set_stance("default")\n').graphs


@pytest.mark.parametrize(
    ("program", "names", "head"),
    [
        (
            SCALAR,
            ["capture_scalar_outputs = True", "torch.compile(..., dynamic=True)"],
            '"""Docstring."""\nfrom __future__ import annotations\nimport torch as th  # the framework\n'
            "from torch import nn\n\nth._dynamo.config.capture_scalar_outputs = True\n\n"
            '@th.compile(backend="eager", dynamic=True)\n',
        ),
        (SIZES, ["torch.compile(..., dynamic=None)"], '    backend="eager",  # no code\n    dynamic=None,\n)\n'),
        (LOADER, ["DataLoader(..., persistent_workers=True)"], "collate,\n    persistent_workers=True,\n)\n"),
        (GENERATE, ["without torch.compile"], "generate = model.generate  # decoding\n"),
        (LOOPED, ["without torch.compile"], "torch.nn.Linear(4, 4))\nnet(torch.rand(2, 4))\n"),
    ],
    ids=["setting", "argument", "argument-of-another", "not-compiled", "loop-not-compiled"],
)
def test_what_is_written(program: str, names: list[str], head: str, tmp_path: Path) -> None:
    run = ran(tmp_path, program)
    text = run.becomes(*names)
    assert head in text
    again = run.changes[names[0]].write({run.path: text})
    assert again is None
