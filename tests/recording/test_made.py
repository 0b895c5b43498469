"""What the compiler made: guards, phases, caches, kernels, AOTAutograd's graphs, specialised sizes."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from programs import Explain

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.graphs import Generated, Kernel, KernelKind, kernel_calls
from breakscan.recording.parsers.graphs import phase_of
from breakscan.recording.parsers.guards import guards_of_tree
from breakscan.recording.recording import read_recording
from breakscan.recording.records import Record

pytestmark = pytest.mark.torch

DATA = Path(__file__).parent / "data"

TRAINING = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 16)

    def forward(self, x):
        h = self.linear(x)
        y = torch.relu(h) * 2
        r = torch.linalg.qr(h.detach())[1]
        return (y.sin() + r).cos()


net = torch.compile(Net())
net(torch.randn(16, 8)).sum().backward()
"""

SIZES = """import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 7)
        self.norm = torch.nn.LayerNorm(7)

    def forward(self, x, one):
        return self.norm(self.linear(x)) + one


def number(x):
    return x * [1, 2, 3, 4, 5][int(x.shape[0])]


def comparison(x, y):
    if y.shape[0] == 6:
        y = y + 1
    return x.sum() + y.sum()


def loop(x):
    for i in range(x.shape[1]):
        x = x + i
    return x


def kept(x):
    return x.reshape(-1)[: x.shape[0] // 2] * x.shape[0]


for function, inputs in (
    (Net(), (torch.randn(4, 5), torch.randn(1, 7))),
    (number, (torch.randn(4, 3),)),
    (comparison, (torch.randn(4, 3), torch.randn(6))),
    (loop, (torch.randn(4, 3),)),
    (kept, (torch.randn(4, 3),)),
):
    torch.compile(function, backend="eager", dynamic=True)(*inputs)
marked = torch.randn(4, 3)
torch._dynamo.maybe_mark_dynamic(marked, 0)
torch.compile(lambda x: x + len(range(x.shape[0])), backend="eager")(marked)
"""

GUARDED = """import torch

SCALE = 3


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.mode = "fast"

    def forward(self, x, flag):
        y = self.linear(x)
        if flag:
            y = y * SCALE
        if self.mode == "fast":
            y = y + 1
        return y


torch.compile(Net(), backend="eager")(torch.randn(5, 4), True)
"""

NO_CUDA_GRAPH = """import torch


def f(x):
    x = x + 1
    return x * 2


compiled = torch.compile(f, backend="cudagraphs")
compiled(torch.randn(4))
compiled(torch.randn(4))
"""


@pytest.fixture(scope="module")
def trained(explained: Explain, tmp_path_factory: pytest.TempPathFactory) -> list[Explanation]:
    """A training step, with an empty cache, with a full one, and with a full one after the lines have moved."""
    cache, folder = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("trained")
    runs = (TRAINING, TRAINING, "# moved\n# down\n" + TRAINING)
    return [explained(program, folder, TORCHINDUCTOR_CACHE_DIR=str(cache)) for program in runs]


def phases(explanation: Explanation) -> dict[str, Generated]:
    (graph,) = explanation.graphs
    return {generated.phase: generated for generated in graph.generated}


def line_of(program: str, text: str) -> int:
    (found,) = (number for number, line in enumerate(program.splitlines(), 1) if text in line)
    return found


def lines(kernel: Kernel) -> list[int]:
    return [site.line for site in kernel.lines]


def test_kernels_with_their_lines(trained: list[Explanation]) -> None:
    product, qr, pointwise = phases(trained[0])["forward"].kernels
    assert (product.name, product.kind, product.calls) == ("extern_kernels.addmm", KernelKind.EXTERN, 1)
    assert product.operators == ("aten.addmm",)
    assert lines(product) == [line_of(TRAINING, "self.linear(x)")]
    assert (qr.name, qr.kind) == ("torch.ops.aten.linalg_qr.default", KernelKind.FALLBACK)
    assert qr.operators == ("aten.linalg_qr",)
    assert lines(qr) == [line_of(TRAINING, "linalg.qr")]
    assert pointwise.kind is KernelKind.CPP
    assert pointwise.name.startswith("cpp_fused_add_cos_mul_")
    assert {"aten.add", "aten.cos", "aten.mul", "aten.relu", "aten.sin"} <= set(pointwise.operators)
    assert set(lines(pointwise)) == {line_of(TRAINING, "torch.relu(h)"), line_of(TRAINING, "y.sin()")}


def test_stages_show_what_became_of_a_line(trained: list[Explanation]) -> None:
    graph = next(graph for graph in trained[0].graphs if graph.generated)
    by_line = {stage.line.line: stage for stage in graph.stages if stage.line}
    product, relu = by_line[line_of(TRAINING, "self.linear(x)")], by_line[line_of(TRAINING, "torch.relu(h)")]
    assert product.operations == {"linear": 1}
    assert product.operators["aten.addmm"] == 1
    assert product.backward["aten.mm"] >= 1
    assert {"extern_kernels.addmm", "extern_kernels.mm"} <= set(product.kernels)
    assert relu.operators["aten.relu"] == 1
    assert sum(sum(stage.operations.values()) for stage in graph.stages) == graph.ops


def test_the_backward_is_told_apart(trained: list[Explanation]) -> None:
    made = phases(trained[0])
    assert list(made) == ["forward", "backward"]
    backward = made["backward"]
    assert (backward.ops or 0) > (made["forward"].ops or 0) > 8
    (product,) = (kernel for kernel in backward.kernels if kernel.name == "extern_kernels.mm")
    assert lines(product) == [line_of(TRAINING, "self.linear(x)")]
    assert any("aten.threshold_backward" in kernel.operators for kernel in backward.kernels)
    assert "cpp_fused" in (backward.code or "")
    assert (backward.path or "").endswith(".py")


def test_what_is_saved_for_the_backward(trained: list[Explanation]) -> None:
    made = phases(trained[0])
    assert "f32[16, 16] addmm" in made["forward"].saved
    assert any(one.startswith("f32[16, 8] ") for one in made["forward"].saved)
    assert made["backward"].saved == ()


def test_a_warm_cache_shows_the_same_kernels(trained: list[Explanation]) -> None:
    cold, warm, _ = trained
    assert [use.outcome for use in cold.compiles[0].caches].count("miss") == 3
    assert {use.outcome for use in warm.compiles[0].caches} == {"hit"}
    for phase, generated in phases(cold).items():
        assert phases(warm)[phase].kernels == generated.kernels
        assert phases(warm)[phase].saved == generated.saved


def test_cost_of_a_compilation(trained: list[Explanation]) -> None:
    cold, warm, _ = trained
    (compiled,) = cold.compiles
    assert compiled.function == "Net.forward"
    assert compiled.at > 0
    assert compiled.parts.keys() == {"inductor", "dynamo", "aot_autograd"}
    assert min(compiled.parts.values()) > 0
    assert sum(compiled.parts.values()) <= 1.01 * (compiled.seconds + compiled.backward_seconds)
    assert compiled.backward_seconds > 0
    assert 0 < (compiled.guard_seconds or 0) < 0.01
    assert (compiled.guard_count or 0) > 10
    assert compiled.parts["inductor"] > warm.compiles[0].parts.get("inductor", 0.0)
    assert not cold.notices


def test_cuda_graphs_that_did_not_come_about(explained: Explain) -> None:
    explanation = explained(NO_CUDA_GRAPH)
    (skip,) = explanation.cudagraph_skips
    assert skip.reason.startswith("cpu device")
    assert skip.site
    assert skip.site.line == line_of(NO_CUDA_GRAPH, "x = x + 1")
    assert (skip.compile_ids, skip.count) == (("0/0",), 1)


def test_guards_with_the_lines_that_asked_for_them(explained: Explain) -> None:
    (compiled,) = explained(GUARDED).compiles
    told = {guard.text: guard.site.line if guard.site else None for guard in compiled.guards}
    assert told["flag == True"] == line_of(GUARDED, "if flag:")
    assert told["self.mode == 'fast'"] == line_of(GUARDED, "if self.mode")
    assert told["SCALE == 3"] == line_of(GUARDED, "y * SCALE")
    tensors = [guard for guard in compiled.guards if guard.kind == "TENSOR_MATCH"]
    assert {guard.text.partition(" ")[0] for guard in tensors} == {"x", "self.linear.weight", "self.linear.bias"}
    (x,) = (guard.text for guard in tensors if guard.text.startswith("x "))
    assert x == "x is a float32 Tensor on cpu of size [5, 4] and stride [4, 1], with requires_grad=False"
    # Inlined code of torch is reported at the line that leads there.
    assert {guard.site.line for guard in tensors if guard.site} == {line_of(GUARDED, "self.linear(x)")}
    assert not any("_dynamo_" in words or "0x" in words for words in told)


def test_the_tree_of_guards() -> None:
    tree = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state() against {"grad_mode":true}
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=1)
| | +- TYPE_MATCH: ___check_type_id(L['x'], 94409588865120), type=<class '__main__.M'>  #   # a.py:7 in f (HINT: type M)
| | +- DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['x'], '_dynamo_static_indices') == False  # a.py:7 in f
| | +- GuardManager: source=L['x'].mode, accessed_by=GetAttrGuardAccessor(mode)
| | | +- EQUALS_MATCH: L['x'].mode == 'a'  # if self.mode  # a.py:8 in f
| +- LAMBDA_GUARD: 2 <= L['x'].size()[0]  # a.py:9 in f

Guard latency = 1.00 us
"""
    assert [(guard.kind, guard.subject, guard.text) for guard in guards_of_tree(tree)] == [
        ("GLOBAL_STATE", None, '___check_global_state() against {"grad_mode":true}'),
        ("TYPE_MATCH", "L['x']", "___check_type_id(L['x'], 0), type=<class '__main__.M'>"),
        ("EQUALS_MATCH", "L['x'].mode", "L['x'].mode == 'a'"),
        ("LAMBDA_GUARD", None, "2 <= L['x'].size()[0]"),
    ]


def test_sizes_that_became_constants(explained: Explain) -> None:
    told = {
        found.site.line: (found.sources, found.value, found.reason)
        for found in explained(SIZES).specialisations
        if found.site
    }
    number = "the code needs it as a Python number"
    assert told.pop(line_of(SIZES, "int(x.shape[0])")) == (("x.shape[0]",), "4", number)
    assert told.pop(line_of(SIZES, "range(x.shape[1])")) == (("x.shape[1]",), "3", number)
    assert told.pop(line_of(SIZES, "lambda x")) == (("x.shape[0]",), "4", number)
    assert told.pop(line_of(SIZES, "y.shape[0] == 6")) == (
        ("y.shape[0]",),
        "6",
        "the code compares it with a number, and goes on as the comparison said",
    )
    # What a weight demands, a size of 1 and torch's own floats are no choice of the program.
    assert told == {}


def test_code_for_a_gpu() -> None:
    """Triton's kernels say which of AOTAutograd's nodes they are."""
    code = (DATA / "generated_for_cuda.txt").read_text(encoding="utf-8")
    assert phase_of(code) == "inference"
    calls = list(kernel_calls(code))
    assert [(call.kernel, call.kind) for call in calls] == [
        ("triton_poi_fused_add_copy__1", KernelKind.TRITON),
        ("extern_kernels.mm", KernelKind.EXTERN),
        ("triton_poi_fused_add_relu_2", KernelKind.TRITON),
        ("cpp_fused_0", KernelKind.CPP),
    ]
    assert calls[0].nodes == ("add_",)
    assert calls[0].autograd_nodes == ("add",)
    assert calls[2].operators == ("aten.relu", "aten.add")


def test_hooks_come_off_modules_that_were_loaded_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from breakscan.recording.recorder import Recorder

    torch = importlib.import_module("torch")
    utils = importlib.import_module("torch._inductor.cudagraph_utils")
    importlib.import_module("torch._dynamo").reset()
    original = utils.log_cudagraph_skip_and_bump_counter
    with Recorder(tmp_path):
        torch.compile(lambda x: x + 1, backend="cudagraphs")(torch.ones(3))
        assert utils.log_cudagraph_skip_and_bump_counter is not original
        late: Any = ModuleType("torch._inductor.cudagraph_trees")
        late.log_cudagraph_skip_and_bump_counter = utils.log_cudagraph_skip_and_bump_counter
        monkeypatch.setitem(sys.modules, late.__name__, late)
    monkeypatch.undo()
    importlib.import_module("torch._dynamo").reset()
    assert utils.log_cudagraph_skip_and_bump_counter is original
    assert late.log_cudagraph_skip_and_bump_counter is original
    assert importlib.import_module("torch._dynamo.backends.cudagraphs").log_cudagraph_skip_and_bump_counter is original
    records: list[Record] = [record for process in read_recording(tmp_path) for record in process]
    assert "CudaGraphSkipped" in {type(record).__name__ for record in records}
