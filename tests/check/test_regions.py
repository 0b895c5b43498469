"""Code that counts as compiled."""

from pathlib import Path

import pytest

from breakscan.check.pipeline.check import check_paths
from breakscan.model.findings import Confidence, Verdict
from breakscan.rulebook.config import Settings


@pytest.mark.parametrize(
    "root",
    [
        "@torch.compile\ndef step(x): return x.sum().item()  # ! BRK201",
        "@torch.compile(mode='max-autotune')\ndef step(x): return x.sum().item()  # ! BRK201",
        "from functools import partial\nfast = partial(torch.compile, dynamic=True)\n@fast\n"
        "def step(x): return x.sum().item()  # ! BRK201",
        "jit = torch.compile\n@jit\ndef step(x): return x.sum().item()  # ! BRK201",
        "from functools import partial\n@partial(torch.compile, dynamic=True)\n"
        "def step(x): return x.sum().item()  # ! BRK201",
        "def step(x): return x.sum().item()  # ! BRK201\nfast = torch.compile(step)",
        "def step(x): return x.sum().item()  # ! BRK201\nfast = torch.compile(dynamic=True)(step)",
        "def step(x): return x.sum().item()  # ! BRK201\nfast = torch.compile(model=step)",
        "from torch import compile as c\n@c\ndef step(x): return x.sum().item()  # ! BRK201",
        *(
            f"class Net(nn.Module):\n    def forward(self, x):\n        return x.sum().item()  # ! BRK201\n{use}"
            for use in ("net = torch.compile(Net())", "net = Net().cuda()\nnet.compile()", "f = torch.compile(Net())")
        ),
        "def lazy(f):\n    def run(*a): return torch.compile(f)(*a)\n    return run\n@lazy\n"
        "def step(x): return x.sum().item()  # ! BRK201",
        "def fast(**options):\n    def of(f): return torch.compile(f, **options)\n    return of\n@fast(dynamic=True)\n"
        "def step(x): return x.sum().item()  # ! BRK201",
        "@torch.compile\nclass Scale:\n    def __call__(self, x): return x.sum().item()  # ! BRK201",
    ],
)
def test_roots_in_all_their_spellings(marked, root: str) -> None:
    """A file that compiles something itself says what is compiled: its other modules are not assumed to be."""
    other = """
class Other(nn.Module):
    def forward(self, x):
        return x.sum().item()
"""
    marked(root + "\n" + other)


@pytest.mark.parametrize(
    ("calls", "is_known"),
    [
        ("def main(x):\n    net = Net().cuda()\n    step = torch.compile(loss)\n    step(net, x)", True),
        ("net = Net()\nstep = torch.compile(loss)\nstep(model=net, x=torch.ones(2))", True),
        ("class Run:\n    def __init__(self, x):\n        self.net, self.step = Net(), torch.compile(loss)\n"
         "        self.step(self.net, x)", True),
        ("def main(net, x):\n    step = torch.compile(loss)\n    step(net, x)\nmain(Net(), torch.ones(2))", True),
        ("step = torch.compile(loss)\nstep(Net(), x)\nstep(Other(), x)", False),
        ("step = torch.compile(loss)\nstep(Net(), x)\nstep(made(), x)", False),
        ("nets = [Net()]\nstep = torch.compile(loss)\nstep(nets, x)", False),
        ("step = torch.compile(loss)\nfor net in [Net(), made()]:\n    step(net, x)", False),
    ],
)  # fmt: skip
def test_objects_that_all_calls_of_compiled_code_pass(marked, calls: str, is_known: bool) -> None:
    marked(f"""
class Net(nn.Module):
    def forward(self, x):
        return x.sum().item(){"  # ! BRK201" if is_known else ""}
class Other(nn.Module):
    def forward(self, x):
        return x
def loss(model, x):
    return model(x)
{calls}
""")


@pytest.mark.parametrize(("base", "mark"), [("torch.autograd.Function", "# ! BRK812"), ("object", "")])
def test_a_compiled_class_is_compiled_where_it_is_called(marked, base: str, mark: str) -> None:
    forward = "    @staticmethod\n    def forward(ctx, x): return x.sum().item()"
    marked(f"@torch.compile  {mark}\nclass Scale({base}):\n{forward}")


def test_finding_names_the_region_it_is_compiled_from(check) -> None:
    [finding] = check("""
        def helper(t):
            return t.sum().item()

        @torch.compile
        def step(x):
            return helper(x)
    """).findings
    assert finding.function == "helper"
    assert finding.region is not None
    assert (finding.region.line, finding.region.how) == (8, "@torch.compile")


NET = """
import functools
class Block(nn.Module):
    def forward(self, x):
        return x.sum().item()  # ! BRK201

class Other(nn.Module):
    def forward(self, x):
        return x.sum().item()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.layers = nn.ModuleList([Block() for _ in range(3)])
"""


@pytest.mark.parametrize(
    "use",
    [
        "net.block.compile()",
        "for layer in net.layers:\n    layer.compile()",
        "for i, layer in enumerate(net.layers):\n    net.layers[i] = torch.compile(layer)",
        "for name, layer in net.layers.named_children():\n    layer.compile()",
        "for part in net.children():\n    part.compile()",
        "compiler = functools.partial(torch.compile, dynamic=True)\nfast = compiler(net.block)",
        "def speed_up(module):\n    module.compile()\n    return module\nfast = speed_up(net.block)",
        "for part in net.modules():\n    if isinstance(part, Block):\n        part.compile()",
        "kinds = {'a': Block, 'b': Block}\nfast = torch.compile(kinds[name]())",
    ],
)
def test_parts_of_a_module_that_are_compiled(marked, use: str) -> None:
    marked(f"{NET}net = Net()\n{use}")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("fullgraph=True", {("BRK402", "error", "fullgraph")}),
        ("fullgraph=False", {("BRK201", "warning", "default"), ("BRK402", "warning", "default")}),
        ("disable=True", set()),
    ],
)
def test_the_options_of_a_call_decide_the_verdict(check, options: str, found: set[tuple[str, str, str]]) -> None:
    """With fullgraph=True, ``.item()`` is in the graph, and a log call raises."""
    result = check(f"""
        import logging
        log = logging.getLogger()

        @torch.compile({options})
        def step(x):
            log.warning("step")
            return x * x.sum().item()
    """)
    assert {(one.rule, one.severity.value, one.mode.value) for one in result.findings} == found


MODEL = """import torch
from torch import nn
class Block(nn.Module):
    def forward(self, x):
        return x.sum().item()
class Loss(nn.Module):
    def forward(self, x):
        return x.sum().item()
"""
MAKER = "class Net:\n    def compiled(self, m): return torch.compile(m)\n"
SPEED_UP = f"import torch\n{MAKER}def speed_up(model):\n    model.compile()\n"
HELPER = "import torch\n@torch.compile\ndef scale(x):\n    return x * 2\n"


@pytest.mark.parametrize(
    ("train", "shown", "elsewhere"),
    [
        ("from model import Block\nimport torch\nfast = torch.compile(Block())", {5}, {8}),
        ("import torch\ndef fit(model):\n    return torch.compile(model)", {5, 8}, set()),
        ("import torch\nfrom model import Block\nfrom tools import speed_up\nspeed_up(Block())", {5}, {8}),
        (
            "import torch\nfrom model import Block\nfrom tools import Net\ndef f(n: Net):\n    n.compiled(Block())",
            {5},
            {8},
        ),
        ("from tools import speed_up\ndef run(model):\n    speed_up(model)", {5, 8}, set()),
        ("pass", {5, 8}, set()),
        ("import torch\nfrom lib import load\nnet = load('a').half()\nfast = torch.compile(net)", set(), {5, 8}),
        ("import torch, lib\ndef load(net):\n    return net\nnet = torch.compile(load(lib.Net()))", set(), {5, 8}),
        ("import torch, lib\nf = torch.compile(lib.f)\ndef test():\n    return torch.compile(lib.g)", set(), {5, 8}),
        (
            "import torch, lib, model as m\nf = torch.compile(lib.f)\ndef test(): return torch.compile(m.Block())",
            set(),
            {5, 8},
        ),
        ("import torch\nfrom lib import f\nf = torch.compile(f)\ndef fit(m):\n    m.compile()", set(), {5, 8}),
        (f"{HELPER}{HELPER}", set(), {5, 8}),
        (HELPER, {5, 8}, set()),
        (
            "import torch, lib\ndef wrap(n):\n    return lib.fx(n)(n)\ndef make(n):\n    m = wrap(n)\n    return m\n"
            "net = make(1)\nfast = torch.compile(net)",
            set(),
            {5, 8},
        ),
        ("import torch\nfrom model import Block\nimport tests.nets\nfast = torch.compile(Block())", {5}, {8, 4}),
        (f"{HELPER}{HELPER}def fit(model):\n    return torch.compile(model)", {5, 8}, set()),
    ],
)
def test_what_a_project_that_compiles_by_name_does_not_compile_is_apart(
    project, train: str, shown: set[int], elsewhere: set[int]
) -> None:
    tools = SPEED_UP if "tools" in train else ""
    nets = HELPER.replace("x * 2", "x.sum().item()") if "tests" in train else ""
    files = {"model.py": MODEL, "train.py": train, "tools.py": tools, "tests/nets.py": nets}
    result = project(files, regions="auto")
    assert {one.site.line for one in result.findings} == shown
    assert {one.site.line for one in result.elsewhere} == elsewhere


def test_modules_of_tests_are_not_assumed_to_be_compiled(project) -> None:
    assert not project({"tests/models.py": MODEL}, regions="auto").findings


@pytest.mark.parametrize(
    ("before", "after_split"), [("print(x)", True), ("if len(x.shape) > 1: print(x)", False), ("x = x + 1", False)]
)
def test_code_before_an_earlier_break_is_compiled(check, before: str, after_split: bool) -> None:
    found = check(f"""
        @torch.compile
        def step(x):
            {before}
            for i in range(2):
                print(i)
            return x
    """).findings
    assert [one.after_split for one in found if one.verdict is Verdict.EAGER] == [after_split]


def test_a_setting_that_a_function_makes_holds(check) -> None:
    text = """
        @torch.compile
        def step(x):
            return x * x.sum().item()

        def main():
            torch._dynamo.config.capture_scalar_outputs = {}
            step(torch.rand(3))
    """
    assert [len(check(text.format(value)).findings) for value in (True, False)] == [0, 1]


def test_the_options_of_a_wrapper_are_not_compiled(check) -> None:
    found = check("""
        class Ranks:
            @property
            def buffers(self): return torch.ones(3).sum().item()

        class Net(nn.Module):
            def forward(self, x): return x.sum().item()

        def train(ranks: Ranks):
            model = torch.nn.parallel.DistributedDataParallel(Net(), broadcast_buffers=ranks.buffers)
            return torch.compile(model)
    """).findings
    assert [one.function for one in found if one.rule == "BRK201"] == ["Net.forward"]


@pytest.mark.parametrize(
    "body",
    [
        "n = x.shape[0]\n    if n == -1:\n        return x * x.sum().item()\n    return x",
        "if torchvision._is_tracing():\n        return x * x.sum().item()\n    return x",
        "if key in info:\n        return info[key]\n    return x",
        "import numba\n    @numba.jit\n    def kernel(x):\n        return x * x.sum().item()\n    return kernel(x)",
    ],
)
def test_what_a_reader_need_not_know(body: str, tmp_path: Path) -> None:
    """Code that no compiler reaches, and a mapping that is asked for a key."""
    path = tmp_path / "steps.py"
    path.write_text(f"import torch, torchvision\n@torch.compile\ndef step(x, key=None, info=None):\n    {body}\n")
    assert not check_paths([path], Settings(root=tmp_path, confidence=Confidence.POSSIBLE)).findings
