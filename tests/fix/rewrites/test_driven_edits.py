"""The benchmark that drives packages with the edits of ``fix`` sees an edit that is wrong, and what it states."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("benchmarks.driven_edits")
# It is the test of a benchmark, and starts many processes.
pytestmark = [pytest.mark.torch, pytest.mark.slow]

from benchmarks.driven_edits import sides as driven  # noqa: E402
from benchmarks.driven_edits.run_calls import NotRun, Ran, Why, run_call  # noqa: E402
from benchmarks.driven_edits.sides import CannotLoadError, Sides, compared, judged, make_sides  # noqa: E402
from benchmarks.driven_edits.variants import varied  # noqa: E402
from breakscan.fix.support.difference import Difference, Effect, assumes  # noqa: E402

PACKAGE = """import torch


def halved(x: torch.Tensor):
    y = x.sin()
    if y.sum() > 0:
        y = y / 2
    return y.cos()


def never_called(x: torch.Tensor):
    y = x.sin()
    if y.sum() > 0:
        y = y / 2
    return y.cos()
"""
DRIVER = """from common import *
import driven_package

J("halved", lambda: (driven_package.halved, torch.tensor([0.25, 2.0]), K()))
J("elsewhere", lambda: (torch.sin, torch.ones(2)))
"""


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sides:
    package = tmp_path / "driven_package"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    driver = tmp_path / "calls.py"
    driver.write_text(DRIVER)
    monkeypatch.setattr(driven, "VARIANTS", ("as given", "nan", "int64", "non-contiguous gradients"))
    (tmp_path / "sides").mkdir()
    return make_sides(package, tmp_path / "sides", driver, unsafe=False)


def test_the_edits_that_calls_reach_are_counted(sides: Sides) -> None:
    result = compared(sides)
    assert (result.files, result.edits, len(result.reached)) == (1, 2, 1)
    assert result.unreached == ["driven_package/__init__.py:13 where"]
    assert (result.calls, result.outcomes) == (1, 4)
    assert not result.faults


def test_a_planted_wrong_edit_is_a_fault(sides: Sides) -> None:
    text = sides.folder / "after/driven_package/__init__.py"
    assert "torch.where(y.sum() > 0, y / 2, y)" in text.read_text()
    text.write_text(text.read_text().replace("y / 2, y)", "y / 3, y)", 1))
    faults = compared(sides).faults
    assert {one.label for one in faults} == {
        ("halved", one) for one in ("as given", "int64", "non-contiguous gradients")
    }
    assert "value of first result" in faults[0].kinds
    assert faults[0].edits == ("driven_package/__init__.py:6 where",)


CRASHES = """from common import *
import os
import driven_package

def crashes(x):
    os.abort() if x.requires_grad or x.isnan().any() or x.dtype == torch.int64 else None
    return driven_package.halved(x)

J("crashes", lambda: (crashes, torch.tensor([0.25, 2.0])))
J("halved", lambda: (driven_package.halved, torch.tensor([0.25, 2.0]), K()))
J("has no file", lambda: (driven_package.halved, open("no such file")))
"""


def test_a_call_that_crashes_is_left_out_and_reported(sides: Sides) -> None:
    sides.driver.write_text(CRASHES)
    result = compared(sides)
    assert not result.faults
    assert (result.calls, result.outcomes) == (2, 5)
    found = {one.why: (one.detail, labels) for one, labels in result.not_run.items()}
    detail, crashed = found.pop(Why.CRASHED)
    assert detail.startswith("SIGABRT: File ")
    assert "calls.py" in detail
    _, skipped = found.pop(Why.SKIPPED)
    assert (len(crashed), len(skipped)) == (1, 2)
    assert {*crashed, *skipped} == {("crashes", one) for one in ("nan", "int64", "non-contiguous gradients")}
    assert found == {
        Why.NOT_BUILT: (
            "FileNotFoundError: [Errno 2] No such file or directory: 'no such file'",
            [("has no file", "as given")],
        ),
    }


def test_a_crash_of_the_rewritten_side_alone_is_a_difference(sides: Sides) -> None:
    text = sides.folder / "after/driven_package/__init__.py"
    text.write_text(text.read_text().replace("torch.where(", "__import__('os').abort() or torch.where(", 1))
    faults = compared(sides).faults
    assert [one.label[0] for one in faults] == ["halved"]
    assert faults[0].kinds.keys() == {"crashed"}
    assert faults[0].edits == ("driven_package/__init__.py:6 where",)


def test_a_rewritten_package_that_does_not_load_is_a_difference(sides: Sides) -> None:
    text = sides.folder / "after/driven_package/__init__.py"
    text.write_text(f"{text.read_text()}\nno_such_name\n")
    (fault,) = compared(sides).faults
    before, after = fault.kinds["exception"]
    assert before is None
    assert "NameError: name 'no_such_name' is not defined" in after


RETURNS_EARLY = """def halved(x: torch.Tensor, early: bool = False):
    if early:
        return x.cos()
    y = x.sin()
    if (
        y.sum() > 0
    ):
        y = y / 2
    return y.cos()"""


def test_an_edit_is_reached_when_its_line_runs_not_when_its_function_starts(tmp_path: Path) -> None:
    package = tmp_path / "driven_package"
    package.mkdir()
    text = f"import torch\n\n\n{RETURNS_EARLY}\n\n\n{RETURNS_EARLY.replace('halved', 'left')}\n"
    (package / "__init__.py").write_text(text)
    (tmp_path / "calls.py").write_text("""from common import *
import driven_package
J("early", lambda: (driven_package.left, torch.ones(2), True))
J("whole", lambda: (driven_package.halved, torch.ones(2)))
""")
    (tmp_path / "sides").mkdir()
    sides = make_sides(package, tmp_path / "sides", tmp_path / "calls.py", unsafe=False)
    result = compared(sides)
    assert result.edits == 2
    assert result.reached == {"driven_package/__init__.py:8 where"}
    assert result.calls == 1


def test_two_edits_of_one_line_are_two(tmp_path: Path) -> None:
    edit = SimpleNamespace(finding=SimpleNamespace(site=SimpleNamespace(line=1)), rewrite="where")
    text = "x = y[a > 0].sum() + y[a < 0].sum()\n"
    repair: Any = SimpleNamespace(before=text, after=text, applied=[edit, edit])
    assert Sides(tmp_path, tmp_path, {"a.py": repair}).unreached({}) == ["a.py:1 where", "a.py:1 where 2"]


def test_an_edit_is_reached_where_it_adds_lines_to_the_constructor(tmp_path: Path) -> None:
    before = """class A:
    def __init__(self):
        self.size = 4
    def forward(self, x):
        return Linear(self.size)(x)
class B:
    def __init__(self):
        self.size = 4
"""
    after = before.replace("= 4\n    def f", "= 4\n        self.linear = Linear(4)\n    def f")
    edit = SimpleNamespace(finding=SimpleNamespace(site=SimpleNamespace(line=5)), rewrite="hoist-module")
    repair: Any = SimpleNamespace(before=before, after=after, applied=[edit])
    sides = Sides(tmp_path, tmp_path, {"a.py": repair})
    file = str(tmp_path / "before" / "a.py")
    reached = {line: bool(sides.edits_in(Ran({}, frozenset({(file, line)})))) for line in range(1, 9)}
    assert [line for line, found in reached.items() if found] == [3, 5]


def test_an_edit_that_building_a_call_reaches_counts(sides: Sides) -> None:
    sides.driver.write_text("""from common import *
import driven_package
J("built", lambda: (torch.sin, driven_package.halved(torch.tensor([0.25, 2.0]))))
""")
    assert len(compared(sides).reached) == 1


def test_a_call_that_reaches_an_edit_with_some_inputs_alone_is_compared(sides: Sides) -> None:
    sides.driver.write_text("""from common import *
import driven_package
J("late", lambda: (lambda x: driven_package.halved(x) if x.isnan().any() else x, torch.tensor([0.25, 2.0])))
""")
    result = compared(sides)
    assert (result.calls, result.outcomes, len(result.reached)) == (1, 4, 1)


def test_a_variant_of_the_first_tensor_leaves_the_others() -> None:
    first, second = torch.ones(2), torch.ones(2)
    (changed, other), _ = varied(([first, second], {}), "zero first tensor")
    assert changed.tolist() == [0, 0]
    assert other is second


@pytest.mark.parametrize("variant", ["integers one", "zero first tensor", "one tensor for all that are alike"])
def test_a_variant_that_changes_nothing_is_no_call_of_its_own(variant: str) -> None:
    ran = run_call(lambda: (torch.sin, torch.ones(2)), False, variant, ())
    assert ran == NotRun(Why.SAME)


@pytest.mark.parametrize("given", ["default", "argument", "itself"])
def test_models_follow_the_dtype_of_their_inputs(given: str) -> None:
    model, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
    calls: dict[str, Any] = {
        "default": lambda: (lambda x, model=model: model(x), x),
        "argument": lambda: (lambda model, x: model(x), model, x),
        "itself": lambda: (model, x),
    }
    ran = run_call(calls[given], False, "float64", ())
    assert isinstance(ran, Ran)
    assert ran.outcome["dtype of first result"] == ["torch.float64"]


def test_sparse_and_freed_tensors_have_an_outcome() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        sparse = x.to_sparse_coo() if x.untyped_storage().nbytes() else torch.eye(1).to_sparse_csr()
        x.untyped_storage().resize_(0)
        return sparse

    ran = run_call(lambda: (call, torch.eye(2)), False, "as given", ())
    assert isinstance(ran, Ran)
    assert ran.outcome["input 0"] == ["freed"]
    assert ran.outcome["value of first result"][0][0] == "torch.sparse_coo"
    assert [value for value, _ in ran.outcome["value of first result"][0][1:]] == [1, 0, 0, 1]
    assert ran.outcome["value of second result"][0][0] == "torch.sparse_csr"


def test_an_unchanged_package_that_does_not_load_says_why(sides: Sides) -> None:
    sides.driver.write_text("import driven_package.no_such_module")
    with pytest.raises(CannotLoadError, match=r"No module named 'driven_package\.no_such_module'"):
        compared(sides)


@pytest.mark.parametrize(
    ("difference", "stated", "assumed"),
    [
        (Difference("other values", frozenset({Effect.VALUES})), True, False),
        (assumes("`y` is assumed to be a tensor"), True, True),
        (Difference("other strides", frozenset({Effect.STRIDES})), False, False),
    ],
)
def test_what_only_an_assumption_states_is_marked(difference: Difference, stated: bool, assumed: bool) -> None:
    raised = {"raised in the first call": (), "raised in the second call": ()}
    before, after = (Ran({"value of first result": [one], **raised}, frozenset()) for one in (1, 2))
    edit: Any = SimpleNamespace(differences=(difference,))
    found = judged(("f", "as given"), before, after, {"f.py:1 where": edit})
    assert found is not None
    assert (found.stated, found.assumed) == (stated, assumed)
