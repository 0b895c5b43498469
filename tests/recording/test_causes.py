"""Which recompiles one change caused, and what is said of it, on small forms of what real programs do."""

import io
from dataclasses import replace
from typing import Any

import pytest
from programs import Folder, Zoo, explained_here

import breakscan
from breakscan.explanation.explanation import Explanation
from breakscan.model.problem import ProblemKind
from breakscan.recording.records import FrameEnded, Record
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.json import explain_object
from breakscan.report.formats import EXPLAIN

pytestmark = pytest.mark.torch


def report_of(folder: Folder, text: str) -> Any:
    """The report as JSON of a program."""
    return explain_object(explained_here(folder.path, f"import torch\n{text}"))


def remedies_of(report: Any) -> list[str]:
    """The names of the remedies for recompiles."""
    problems = (one for one in report["problems"] if one["kind"] == "recompiles")
    return [remedy["name"] for problem in problems for remedy in problem["remedies"]]


def told(folder: Folder, text: str) -> str:
    """The terminal report of a program."""
    return terminal_text(explained_here(folder.path, f"import torch\n{text}"))


def terminal_text(run: Explanation) -> str:
    """The terminal report, on one line."""
    stream = io.StringIO()
    EXPLAIN.write("terminal", ExplainReport(run), stream)
    return " ".join(stream.getvalue().split())


def test_what_comes_between_does_not_divide_a_cause(folder: Folder) -> None:
    report = report_of(
        folder,
        """
class Net(torch.nn.Module):
    steps = 0

    def forward(self, x):
        self.steps += 1
        y = x.sin()
        print("break")
        return y.cos()

net = Net()
net.steps = 0

@torch.compile(backend="eager")
def step(x):
    y = x + 1
    y.sum().item()
    return net(y).exp()

for size in (4, 4, 5):
    step(torch.ones(size))
""",
    )
    sizes = [r for r in report["recompiles"] if (r["old"], r["new"]) == ("4", "5")]
    counted = [r for r in report["recompiles"] if r["subject"] == "self.steps"]
    assert len(sizes) > 2
    assert counted
    assert len({r["cause"] for r in sizes}) == 1
    assert not {r["cause"] for r in counted} & {r["cause"] for r in sizes}


def test_another_call_is_another_cause(folder: Folder) -> None:
    """What an inner function met before its caller did is no part of what the caller met later."""
    report = report_of(
        folder,
        """
def inner(x):
    return x.cos()

def between(x, n):
    for _ in range(1):
        torch._dynamo.graph_break()
        inner(torch.ones(n))
    return x

@torch.compile(backend="eager")
def f(x, n):
    return between(x.sin(), n)

for size, n in ((4, torch.tensor(7)), (4, torch.tensor(8)), (5, torch.tensor(8))):
    f(torch.ones(size), n)
""",
    )
    sizes = {r["function"]: r["cause"] for r in report["recompiles"] if ".shape" in r["subject"]}
    assert sizes["inner"] != sizes["f"]


def test_other_keyword_arguments_are_no_growing_container(folder: Folder) -> None:
    report = report_of(
        folder,
        """
@torch.compile(backend="eager")
def f(**kwargs):
    return sum(kwargs.values())

f(a=torch.ones(3))
f(a=torch.ones(3), b=torch.ones(3))
""",
    )
    (recompile,) = report["recompiles"]
    assert recompile["subject"] == "len(kwargs)"
    assert recompile["rule"] is None
    assert remedies_of(report) == ["same-arguments"]


def test_a_parameter_that_was_frozen_is_not_to_be_detached(folder: Folder) -> None:
    text = told(
        folder,
        """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight


net = Net()
step = torch.compile(net, backend="eager")
step(torch.ones(3))
net.weight.requires_grad_(False)
step(torch.ones(3))
""",
    )
    assert "self.weight.requires_grad was True, then False." in text
    assert ":15 switches it). Of parameters that are frozen in stages" in text


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1)])
def test_a_size_of_one_is_compiled_apart(folder: Folder, sizes: tuple[int, int]) -> None:
    report = report_of(
        folder,
        f"""
@torch.compile(backend="eager")
def f(x):
    return x.sin()

for size in {sizes}:
    f(torch.ones(size, 3))
""",
    )
    assert len(report["recompiles"]) == 1
    assert remedies_of(report) == (["apart", "one-size"] if sizes[0] == 1 else ["apart"])


def test_the_recorders_own_frames_are_left_out(zoo: Zoo, report: Any) -> None:
    """Dynamo meets the recorder's functions where torch works for compiled code."""

    def as_ours(record: Record) -> Record:
        if isinstance(record, FrameEnded):
            return replace(record, frame=replace(record.frame, path=breakscan.__file__))
        return record

    assert report["frames"]
    assert not zoo.explain(as_ours)["frames"]


def test_a_recompile_in_a_library_names_the_users_line(folder: Folder) -> None:
    folder.write(
        "site-packages/trainer.py",
        """
import torch

class Trainer:
    def __init__(self, model):
        self.model = torch.compile(model, backend="eager")

    def run(self, batches):
        for batch in batches:
            self.model(batch)
""",
    )
    run = explained_here(
        folder.path,
        """
import torch, sys
sys.path.insert(0, "site-packages")
from trainer import Trainer

def double(x):
    return x * 2

Trainer(double).run([torch.ones(n) for n in (3, 4)])
""",
    )
    report = explain_object(run)
    (recompile,) = report["recompiles"]
    assert recompile["trigger"]["path"].endswith("trainer.py")
    assert (recompile["users_line"]["path"], recompile["users_line"]["line"]) == ("script.py", 9)
    assert recompile["seconds"] > 0
    assert "trainer.py:10, script.py:9." in terminal_text(run)


def test_a_break_that_comes_later_in_a_function_is_not_to_blame(folder: Folder) -> None:
    folder.write(
        "site-packages/layers.py",
        """
def checked(x):
    if x.sum() > 99:
        raise ValueError
    return x

def loss(x, y):
    total = checked(x).sum()
    total = total + checked(y).sum()
    for n in range(2):
        if total > n:
            total = total * 2
    return total
""",
    )
    run = explained_here(
        folder.path,
        """
import torch, sys
sys.path.insert(0, "site-packages")
from layers import loss
torch.compile(loss, backend="eager")(torch.ones(3), torch.ones(3, requires_grad=True))
""",
    )
    (problem,) = (one for one in run.problems if one.kind is ProblemKind.RECOMPILES)
    assert "layers.py:3," in problem.remedies[0].text


def test_a_logger_of_a_library_can_be_ignored_as_the_advice_says(folder: Folder) -> None:
    folder.write(
        "site-packages/layers.py",
        """
import logging

logger = logging.getLogger("layers.deep")

def double(x):
    logger.warning("doubling")
    return x * 2
""",
    )
    program = """
import logging, sys
sys.path.insert(0, "site-packages")
from layers import double
ADVICE
torch.compile(double, backend="eager")(torch.ones(3))
"""
    (found,) = report_of(folder, program.replace("ADVICE", ""))["breaks"]
    assert found["logging_method"] == "logging.getLogger('layers.deep').warning"
    call = found["advice"].removeprefix("call ").partition(" before ")[0]
    assert not report_of(folder, program.replace("ADVICE", call))["breaks"]


def test_a_version_that_did_not_fit_before_explains_no_later_recompile(folder: Folder) -> None:
    """The first version asks for ``kind is None`` for ever: what compiles again at the fourth call is the size."""
    report = report_of(
        folder,
        """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = None
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        if self.kind is None:
            self.kind = "sum"
        return y.sum() if self.kind == "sum" else y.mean()

net = torch.compile(Net(), backend="eager")
for rows in (4, 4, 4, 2):
    net(torch.ones(rows, 4))
""",
    )
    found = {r["subject"]: (r["old"], r["new"]) for r in report["recompiles"]}
    assert found == {"self.kind": ("None", "'sum'"), "x.shape[0]": ("4", "2")}


def test_a_view_that_is_none_later_is_told_as_one(folder: Folder) -> None:
    """torch's text is only what Python raised: 'NoneType' object has no attribute 'size'."""
    program = """
@torch.compile(backend="eager")
def f(x, y):
    return x.sin() + y.sum()

for rows in (4, 5):
    base = torch.ones(rows + 6, 3)
    f(base[:rows]COPY, torch.ones(rows))
f(torch.ones(6, 3), torch.ones(6))
"""
    text = told(folder, program.replace("COPY", ""))
    assert "BRK722 changing-layout in f x was a view of another tensor, then no view." in text
    assert "Instead: pass x.clone() in each call" in text
    (recompile,) = report_of(folder, program.replace("COPY", ".clone()"))["recompiles"]
    assert recompile["subject"] == "x.shape[0]"


def test_a_wrapper_that_passes_its_arguments_on_is_no_caller(folder: Folder) -> None:
    report = report_of(
        folder,
        """
def compiled(function):
    function = torch.compile(function, backend="eager")
    def wrapper(*args):
        return function(*args)
    return wrapper

@compiled
def f(x, n):
    return x * 2 if n == "a" else x * 3

f(torch.ones(2), "a")
f(torch.ones(2), "b")  # here
""",
    )
    (problem,) = report["problems"]
    assert [caller["line"] for caller in problem["called_from"]] == [14]


def test_layers_of_a_module_of_torchs_that_changed_at_once(folder: Folder) -> None:
    report = report_of(
        folder,
        """
class Scaled(torch.nn.Module):
    scale = 1.5

    def forward(self, x):
        return x * self.scale  # here

layers = torch.nn.Sequential(Scaled(), Scaled())
net = torch.compile(layers, backend="eager")
for scale in (1.5, 2.5):
    for layer in layers:
        layer.scale = scale
    net(torch.ones(2))
""",
    )
    (problem,) = report["problems"]
    assert problem["site"]["line"] == 7
    assert {change["subject"] for change in problem["changes"]} == {"self.0.scale", "self.1.scale"}


def test_a_state_of_torch_from_what_to_what_and_who_sets_it(folder: Folder) -> None:
    report = report_of(
        folder,
        """
def load(threads):
    torch.set_num_threads(threads)  # here
    return torch.ones(2)

@torch.compile(backend="eager")
def f(x):
    return x + 1

for threads in (1, 2):
    f(load(threads))
""",
    )
    (problem,) = report["problems"]
    (change,) = problem["changes"]
    assert (change["subject"], change["values"], change["switched_at"]["line"]) == ("num_threads", ["1", "2"], 4)


def test_what_a_call_makes_longer_is_written_outside(folder: Folder) -> None:
    """A tensor that is kept needs its full size, a container is written outside; size 1 has a mark of its own."""
    report = report_of(
        folder,
        """
class Cache:
    key = torch.ones(2, 4)

cache, seen = Cache(), []

@torch.compile(backend="eager")
def grow(cache, x):
    cache.key = torch.cat((cache.key, x), 0)
    return cache.key.sum()

@torch.compile(backend="eager")
def note(x):
    seen.append(x.sum())
    return x + 1

@torch.compile(backend="eager", dynamic=True)
def one(x):
    return x.sin().sum()

for _ in range(10):
    grow(cache, torch.ones(1, 4))
    note(torch.ones(2))
for size in (4, 1):
    one(torch.ones(size, 3))
""",
    )
    names = {
        change["subject"]: [one["name"] for one in problem["remedies"]]
        for problem in report["problems"]
        for change in problem["changes"]
    }
    assert names["cache.key.shape[0]"][0] == "fixed-size"
    assert names["len(seen)"] == ["written-outside"]
    assert names["x.shape[0]"] == ["apart", "unbacked"]


def test_a_wrapper_of_many_functions_is_one_cause(folder: Folder) -> None:
    """Wherever it is called, and with however many arguments."""
    report = report_of(
        folder,
        """
def checked(function):
    def wrapped(*args):
        return function(*args)
    return wrapped

@checked
def double(x):
    return x * 2

@checked
def plus(x, y):
    return x + y

@checked
def scale(x, y, z):
    return x * y + z

ops = [torch.compile(one, backend="eager") for one in (double, plus, scale)]
x = torch.ones(3)
ops[0](x)
ops[1](x, x)
ops[2](x, x, x)
""",
    )
    (problem,) = (one for one in report["problems"] if one["kind"] == "recompiles")
    assert problem["count"] == 2


def test_items_of_a_list_are_one_cause(folder: Folder) -> None:
    report = report_of(
        folder,
        """
@torch.compile(backend="eager")
def step(x, lengths):
    return sum(x[row, :length].sum() for row, length in enumerate(lengths))

for lengths in ([4, 4], [3, 4], [3, 2]):
    step(torch.ones(2, 8), lengths)
""",
    )
    (problem,) = (one for one in report["problems"] if one["kind"] == "recompiles")
    assert [remedy["name"] for remedy in problem["remedies"]] == ["dynamic-numbers", "one-tensor"]


NESTED = """
torch._dynamo.config.nested_graph_breaks = True

def item(x):
    return x * x.sum().item()

def looped(x):
    for _ in range(2):
        x = item(x)
    return x

@torch.compile(backend="eager")
def step(x):
    return looped(item(x.sin()).cos() + 1)

for n in (1.0, 2.0):
    step(torch.full((3,), n))
"""


def test_with_nested_graph_breaks_the_setting_is_no_remedy_and_its_names_are_not_shown(folder: Folder) -> None:
    report = report_of(folder, NESTED)
    assert [report["summary"][key] for key in ("break_events", "eager_frames", "graphs", "ops")] == [5, 1, 6, 13]
    names = [remedy["name"] for problem in report["problems"] for remedy in problem["remedies"]]
    assert "tensor-item" in names
    assert "nested_graph_breaks" not in names
    assert "__nested" not in str(report["problems"])
