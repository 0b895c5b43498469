"""The changes that recompile a function, as data, by the smallest program of each kind under the installed torch."""

from pathlib import Path
from typing import NamedTuple

import pytest
from programs import explained_here

from breakscan.model.findings import ChangeKind, Holder, Severity
from breakscan.model.problem import Problem, ProblemKind, ValueChange

pytestmark = pytest.mark.torch
F = '@torch.compile(backend="eager")\ndef f('


class Case(NamedTuple):
    program: str
    changes: tuple[tuple[ChangeKind, Holder, str, tuple[str, ...]], ...]
    """Those of the first problem, or of all, if each has one."""
    rule: str | None = None


CASES = {
    "branch on an open size": Case(
        """
@torch.compile(dynamic=True, backend="eager")
def f(x):
    if x.shape[0] <= 64:  # asked
        x = x * 2
    return x + 1
f(torch.randn(100, 8)); f(torch.randn(50, 8))
""",
        ((ChangeKind.BRANCH_ON_SIZE, Holder.ARGUMENT, "x.shape[0]", ("within 65 <= x.shape[0]", "50")),),
        "BRK718",
    ),
    "branch on two sizes": Case(
        """
@torch.compile(dynamic=True, backend="eager")
def f(x):
    h, w = x.shape[-2:]
    if h > w:  # asked
        x = x.transpose(-1, -2)
    return x + 1
f(torch.randn(2, 3, 10, 20)); f(torch.randn(2, 3, 20, 10))
""",
        ((ChangeKind.BRANCH_ON_SIZE, Holder.ARGUMENT, "x.shape[2]", ("within x.shape[2] <= x.shape[3]", "20")),),
        "BRK718",
    ),
    "a size, then a branch on it": Case(
        F
        + """x):
    if x.shape[0] <= 64:  # asked
        x = x * 2
    return x + 1
for n in (100, 90, 50):
    f(torch.randn(n, 8))
""",
        (
            (ChangeKind.SIZE, Holder.ARGUMENT, "x.shape[0]", ("100", "90")),
            (ChangeKind.BRANCH_ON_SIZE, Holder.ARGUMENT, "x.shape[0]", ("within 65 <= x.shape[0]", "50")),
        ),
    ),
    "two sizes that were equal": Case(
        """
@torch.compile(dynamic=True, backend="eager")
def f(x, y):
    return x.sum() + y.sum()
f(torch.randn(6), torch.randn(6)); f(torch.randn(6), torch.randn(7))
""",
        ((ChangeKind.EQUAL_SIZES, Holder.ARGUMENT, "y.shape[0]", ("x.shape[0]", "7")),),
        "BRK718",
    ),
    "two inputs at once": Case(
        F
        + """image, text):
    return image.sum(1), text.sum(1)
for n in (4, 3, 5):
    f(torch.rand(n, 8), torch.rand(n, 6))
""",
        (
            (ChangeKind.SIZE, Holder.ARGUMENT, "text.shape[0]", ("4", "3")),
            (ChangeKind.SIZE, Holder.ARGUMENT, "image.shape[0]", ("4", "3")),
        ),
        "BRK711",
    ),
    "an attribute that is set, then changed": Case(
        """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None
    def forward(self, x):
        y = x * 2 if self.last is None or self.last[0] < 9 else x * 3
        self.last = (len(x.shape) + 7, 8)
        return y
net = torch.compile(Net(), backend="eager")
for shape in ((2,), (2,), (2, 2), (2, 2)):
    net(torch.ones(shape))
""",
        (
            (ChangeKind.SET_LATER, Holder.ATTRIBUTE, "self.last", ("None", "(8, 8)")),
            (ChangeKind.RANK, Holder.ARGUMENT, "x.dim()", ("1", "2")),
            (ChangeKind.NUMBER, Holder.ATTRIBUTE, "self.last", ("(8, 8)", "(9, 8)")),
        ),
    ),
    "an expanded tensor": Case(
        """
@torch.compile(dynamic=True, backend="eager")
def f(x):
    return x * 2
for n in (1, 2):
    f(torch.ones(1).expand(n))
""",
        (
            (ChangeKind.SIZE, Holder.ARGUMENT, "x.shape[0]", ("1", "2")),
            (ChangeKind.LAYOUT, Holder.ARGUMENT, "x.stride()[0]", ("1", "0")),
        ),
        "BRK711",
    ),
    "an attribute that some objects lack": Case(
        """
class Batch:
    def __init__(self, x, name):
        self.x = x
        if name: self.name = name
"""
        + F
        + """b):
    return b.x * (2 if getattr(b, "name", None) else 3)
for name in ("a", None, ""):
    f(Batch(torch.ones(3), name))
""",
        ((ChangeKind.SET_LATER, Holder.ATTRIBUTE, "b.name", ("'a'", "missing")),),
        "BRK721",
    ),
    "an attribute that a class has and an object gets": Case(
        """
class Net(torch.nn.Module):
    last = None
    def forward(self, x):
        y = x * 2 if self.last is None else x * 3
        self.last = 4
        return y
net = torch.compile(Net(), backend="eager")
for _ in range(3):
    net(torch.ones(2))
""",
        ((ChangeKind.SET_LATER, Holder.ATTRIBUTE, "self.last", ("missing", "4")),),
        "BRK721",
    ),
    "a closed-over number": Case(
        F
        + """x, g):
    return g(x)
def make(n):
    return lambda x: x + n
for n in (0, 1):
    f(torch.rand(2), make(n))
""",
        ((ChangeKind.NUMBER, Holder.CLOSURE, "n", ("0", "1")),),
        "BRK715",
    ),
    "a number that the compiled function closes over": Case(
        """
def main():
    @torch.compile(backend="eager")
    def f(x):
        return x * n
    for n in (2, 3):
        f(torch.rand(2))
main()
""",
        ((ChangeKind.NUMBER, Holder.CLOSURE, "n", ("2", "3")),),
        "BRK712",
    ),
    "a default": Case(
        F
        + """x, g):
    return g(x)
def make(n):
    def g(x, by=n):
        return x * by
    return g
for n in (3, 4):
    f(torch.rand(2), make(n))
""",
        ((ChangeKind.NUMBER, Holder.DEFAULT, "by", ("3", "4")),),
        "BRK715",
    ),
    "what functools.partial holds": Case(
        "import functools\n"
        + F
        + """x, g):
    return g(x)
def scale(x, *, by):
    return x * by
for n in (3, 4):
    f(torch.rand(2), functools.partial(scale, by=n))
""",
        ((ChangeKind.NUMBER, Holder.DEFAULT, "by", ("3", "4")),),
        "BRK715",
    ),
    "another length": Case(
        F
        + """d):
    return sum(d.values())
f({"a": torch.rand(2)}); f({"a": torch.rand(2), "b": torch.rand(2)}); f({"c": torch.rand(2)})
""",
        (
            (ChangeKind.LENGTH, Holder.ARGUMENT, "len(d)", ("1", "2")),
            (ChangeKind.KEYS, Holder.ARGUMENT, "list(d)[0]", ("'a'", "'c'")),
        ),
    ),
    "one tensor twice": Case(
        F
        + """x, y):
    return x + y
x = torch.rand(3)
f(x, torch.rand(3)); f(x, x)
""",
        ((ChangeKind.ALIAS, Holder.ARGUMENT, "x and y", ()),),
        "BRK724",
    ),
    "autocast": Case(
        F
        + """x):
    return x @ x
f(torch.rand(3, 3))
with torch.autocast("cpu"):  # switched
    f(torch.rand(3, 3))
""",
        ((ChangeKind.GLOBAL_STATE, Holder.NONE, "autocast(cpu)_enabled", ("False", "True")),),
        "BRK714",
    ),
    "inference tensors": Case(
        F
        + """x):
    return x * 2
def make():
    with torch.inference_mode():
        return torch.rand(3)
f(make()); f(torch.rand(3))
""",
        ((ChangeKind.INFERENCE, Holder.ARGUMENT, "x.is_inference()", ("True", "False")),),
        "BRK716",
    ),
    "grad mode": Case(
        F
        + """x):
    return x * 2
f(torch.rand(3))
with torch.no_grad():  # switched
    f(torch.rand(3))
""",
        ((ChangeKind.GRAD_MODE, Holder.NONE, "grad_mode", ("True", "False")),),
        "BRK714",
    ),
    "grad mode, on again": Case(
        F
        + """x):
    return x * 2
@torch.no_grad()  # switched
def evaluate():
    return f(torch.rand(3))
evaluate()
f(torch.rand(3))
""",
        ((ChangeKind.GRAD_MODE, Holder.NONE, "grad_mode", ("False", "True")),),
        "BRK714",
    ),
    "a memo": Case(
        """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}
    def forward(self, x):
        key = (x.shape[0], x.shape[1])
        if key not in self.cache:  # asked
            self.cache[key] = torch.ones(key)
        return x + self.cache[key]
net = torch.compile(Net(), backend="eager", dynamic=False)
for _ in range(3):
    net(torch.rand(4, 4))
""",
        ((ChangeKind.KEYS, Holder.ATTRIBUTE, "(4, 4) in self.cache", ("False", "True")),),
        "BRK720",
    ),
    "a key that comes": Case(
        F
        + """x, options):
    bias = options.get("bias")
    return x.sin() if bias is None else x + bias
f(torch.rand(2), {}); f(torch.rand(2), {"bias": torch.rand(2)})
""",
        ((ChangeKind.KEYS, Holder.ARGUMENT, "'bias' in options", ("False", "True")),),
        "BRK720",
    ),
    "a number that is an option": Case(
        F
        + """x, dim):
    return x.mean(dim=dim, keepdim=True)
f(torch.rand(4, 4), -1); f(torch.rand(4, 4), -2)
""",
        ((ChangeKind.NUMBER, Holder.ARGUMENT, "dim", ("-1", "-2")),),
        "BRK712",
    ),
    "dtypes of a helper": Case(
        F
        + """t, i):
    return t[i]
i = torch.tensor([1, 2])
f(torch.rand(4, 4), i); f(torch.ones(4, 4, dtype=torch.bool), i)
""",
        ((ChangeKind.DTYPE, Holder.ARGUMENT, "t.dtype", ("float32", "bool")),),
        "BRK716",
    ),
    "a number that crosses a break": Case(
        F
        + """x, pos):
    y = x.sin()
    top = pos.max().item()  # switched
    return y[:top]
for n in (2, 3):
    f(torch.rand(8), torch.tensor([n]))
""",
        ((ChangeKind.NUMBER, Holder.RESULT, "top", ("2", "3")),),
    ),
    "a list of the object whose method is called at a break": Case(
        """
class Meter:
    def __init__(self):
        self.values = [0.0]
    def update(self, value):
        self.values.append(value)  # asked
class Step:
    def __init__(self):
        self.meter = Meter()
    @torch.compile(backend="eager")
    def f(self, x):
        self.meter.update(x.sum().item())
        return x + 1
step = Step()
for _ in range(6):
    step.f(torch.ones(4))
""",
        ((ChangeKind.LENGTH, Holder.ATTRIBUTE, "len(self.meter.values)", ("1", "2", "3", "4", "5", "6")),),
        "BRK720",
    ),
    "a list of such an object, beside one of which nothing may be read": Case(
        """
class Lazy:
    __dict__ = property(lambda self: 1 / 0)
class Meter:
    def __init__(self):
        self.values = [0.0]
    def update(self, value):
        self.values.append(value)  # asked
class Step:
    def __init__(self):
        self.meter = Meter()
@torch.compile(backend="eager")
def f(lazy, step, x):
    step.meter.update(x.sum().item())
    return x + 1
lazy, step = Lazy(), Step()
for _ in range(6):
    f(lazy, step, torch.ones(4))
""",
        ((ChangeKind.LENGTH, Holder.ATTRIBUTE, "len(step.meter.values)", ("1", "2", "3", "4", "5", "6")),),
        "BRK720",
    ),
    "a part that crosses a break": Case(
        """
def inner(x, pos):
    torch._dynamo.graph_break()
    return x.sin(), pos.item()
"""
        + F
        + """x, pos):
    y, count = inner(x, pos)
    return y[:count]
for n in (2, 3):
    f(torch.rand(8), torch.tensor([n]))
""",
        ((ChangeKind.NUMBER, Holder.RESULT, "count", ("2", "3")),),
    ),
    "a break in a callee": Case(
        """
def inner(pos):
    return pos.item()  # switched
"""
        + F
        + """x, pos):
    top = inner(pos)
    return x[:top]
for n in (2, 3):
    f(torch.rand(8), torch.tensor([n]))
""",
        ((ChangeKind.NUMBER, Holder.RESULT, "top", ("2", "3")),),
    ),
}


def recompiled(folder: Path, program: str) -> list[Problem]:
    problems = explained_here(folder, f"import torch\n{program}").problems
    return [problem for problem in problems if problem.kind is ProblemKind.RECOMPILES]


def facts(change: ValueChange) -> tuple[ChangeKind, Holder, str, tuple[str, ...]]:
    return change.kind, change.holder, change.subject, change.values


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_changed(case: Case, tmp_path: Path) -> None:
    problems = recompiled(tmp_path, case.program)
    changes = [change for problem in problems for change in problem.changes]
    assert {facts(change) for change in changes} == set(case.changes)
    if case.rule is not None:
        assert [problem.rule for problem in problems] == [case.rule]
    for mark, lines in (
        ("# asked", {change.asked_at.line for change in changes if change.asked_at}),
        ("# switched", {change.switched_at.line for change in changes if change.switched_at}),
    ):
        marked = {n for n, line in enumerate(f"import torch\n{case.program}".splitlines(), 1) if line.endswith(mark)}
        assert marked <= lines, mark


def test_objects_that_share_code(tmp_path: Path) -> None:
    """Past the limit, the calls are counted by the value that has no version."""
    program = """
class Layer(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
    def forward(self, x):
        return x + 1 if self.index % 2 else x * self.index
torch._dynamo.config.recompile_limit = 3
layers = [Layer(index) for index in range(5)]
for layer in layers:
    layer.compile(backend="eager")
for _ in range(3):
    for layer in layers:
        layer(torch.rand(2))
torch._dynamo.config.recompile_limit = 8
"""
    (problem,) = recompiled(tmp_path, program)
    (change,) = problem.changes
    assert facts(change) == (ChangeKind.NUMBER, Holder.MODULE, "self.index", ("0", "1", "2"))
    assert (change.owner, change.objects) == ("self", 3)
    assert problem.shared is not None
    assert (problem.shared.versions, problem.shared.limit, problem.shared.objects) == (3, 3, 4)
    assert (problem.shared.eager_calls, problem.shared.eager_values) == (6, ("3", "4"))


def test_values_that_cross_a_break_have_the_name_that_stores_them(tmp_path: Path) -> None:
    program = """
@torch.compile(backend="eager")
def f(x, t):
    parts = t.tolist()
    return x[: parts[0]], x[: parts[1]], x[: parts[2]]
for parts in ((2, 3, 4), (5, 6, 7)):
    f(torch.ones(8), torch.tensor(parts))
"""
    changes = [change.subject for problem in recompiled(tmp_path, program) for change in problem.changes]
    assert len(changes) > 1
    assert all(subject.startswith("parts[") for subject in changes)


def test_the_value_of_a_call_is_that_before_it(tmp_path: Path) -> None:
    program = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
    def forward(self, x):
        self.step += 1
        return x * self.step
torch._dynamo.config.recompile_limit = 2
net = torch.compile(Net(), backend="eager")
for _ in range(5):
    net(torch.ones(2))
torch._dynamo.config.recompile_limit = 8
"""
    (problem,) = recompiled(tmp_path, program)
    assert problem.shared is not None
    assert (problem.shared.eager_calls, problem.shared.eager_values) == (3, ("2", "3", "4"))


def test_an_attribute_that_one_object_changes_is_no_value_of_each(tmp_path: Path) -> None:
    program = """
class Net(torch.nn.Module):
    def forward(self, x):
        return x * self.step
net = Net()
compiled = torch.compile(net, backend="eager")
for net.step in (1, 2, 3):
    compiled(torch.ones(2))
"""
    (problem,) = recompiled(tmp_path, program)
    assert [change.objects for change in problem.changes] == [0]
    assert problem.shared is not None
    assert problem.shared.objects == 1


def test_parameters_that_share_code(tmp_path: Path) -> None:
    program = """
@torch.compile(backend="eager")
def decay(p):
    p.mul_(0.9)
with torch.no_grad():
    for size in ((4, 4), (4,), (5,)):
        decay(torch.nn.Parameter(torch.rand(size)))
"""
    problems = recompiled(tmp_path, program)
    changes = {change.kind: change for problem in problems for change in problem.changes}
    assert {kind: (one.owner, one.values, one.is_parameter) for kind, one in changes.items()} == {
        ChangeKind.RANK: ("p", ("2", "1"), True),
        ChangeKind.SIZE: ("p", ("4", "5"), True),
    }
    assert all(change.objects == 2 for change in changes.values())
    assert {problem.shared and problem.shared.objects for problem in problems} == {3}


def test_the_cause_that_meets_the_limit_says_so(tmp_path: Path) -> None:
    program = """
@torch.compile(backend="eager", dynamic=False)
def f(x, flag):
    return x * 2 if flag == "a" else x * 3
torch._dynamo.config.recompile_limit = 4
for flag in "abc":
    f(torch.rand(4), flag)
f(torch.rand(2, 2), "c")
for _ in range(2):
    f(torch.rand(2, 2, 2), "c")
    f(torch.rand(2, 2, 2, 2), "c")
torch._dynamo.config.recompile_limit = 8
"""
    problems = {problem.changes[0].subject: problem for problem in recompiled(tmp_path, program)}
    assert {subject: one.severity for subject, one in problems.items()} == {
        "flag": Severity.WARNING,
        "x.dim()": Severity.ERROR,
    }
    assert {subject: one.shared and one.shared.eager_values for subject, one in problems.items()} == {
        "flag": (),
        "x.dim()": ("3", "4"),
    }
    assert {one.shared and one.shared.limit for one in problems.values()} == {4}


def test_all_calls_of_torchs_wrapper_count_past_the_limit(tmp_path: Path) -> None:
    program = """
torch._dynamo.config.recompile_limit = 2
for _ in range(4):
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    step = torch.compile(torch.optim.SGD([weight]).step, backend="eager")
    for _ in range(3):
        step()
torch._dynamo.config.recompile_limit = 8
"""
    problem = next(one for one in recompiled(tmp_path, program) if one.reason == "args[0]")
    assert problem.shared is not None
    assert problem.shared.eager_calls == 6
    assert [one.name for one in problem.remedies] == ["isolate_recompiles", "recompile_limit"]


def test_settings_for_what_a_thread_calls_are_set_there(tmp_path: Path) -> None:
    program = """
import threading
torch._dynamo.config.recompile_limit = 64
@torch.compile(backend="eager", dynamic=False)
def f(x):
    return x * 2
thread = threading.Thread(target=lambda: [f(torch.ones([2] * n)) for n in range(12)])
thread.start()
thread.join()
torch._dynamo.config.recompile_limit = 8
"""
    (problem,) = recompiled(tmp_path, program)
    (limit,) = (one for one in problem.remedies if one.name == "recompile_limit")
    assert limit.settings == ()
    assert "thread" in limit.text
