"""The text that edits write: it compiles, with every comment; and edits that are called safe."""

from dataclasses import replace
from pathlib import Path

import pytest
from libcst import parse_statement

from breakscan.fix import planner
from breakscan.fix.planner import INVALID, WantedRewrites, repair_file
from breakscan.fix.result import FileRepair
from breakscan.fix.support.context import Edit, RewriteContext
from breakscan.rulebook.config import load_settings


def repaired(folder: Path, text: str, *roots: Path) -> FileRepair:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    settings = replace(load_settings(folder, None, target_torch="2.13", no_cache=True), regions="all")
    return repair_file(path, roots, settings, WantedRewrites())


def test_what_python_does_not_compile_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_out(context: RewriteContext) -> Edit:
        return Edit({context.line(): [parse_statement("break")]})  # type: ignore[list-item]

    monkeypatch.setattr(planner, "load_rewrite", lambda _: breaks_out)
    found = repaired(tmp_path, "import torch\n\n\ndef f(x: torch.Tensor):\n    print(x)\n    return x.sin()\n")
    assert not found.changed
    assert INVALID in {reason.text for one in found.refused for reason in one.reasons}


def test_an_import_goes_behind_those_of_the_future(tmp_path: Path) -> None:
    text = """from __future__ import annotations
import logging
from torch import nn

logger = logging.getLogger(__name__)


class Net(nn.Module):
    def forward(self, x):
        logger.info("called")
        return x + 1
"""
    found = repaired(tmp_path, text)
    assert "from __future__ import annotations\nimport logging\nimport torch\n" in found.after
    compile(found.after, "program.py", "exec")


COMMENTS = {
    "between the lines of an expression": """def f(x: torch.Tensor):
    z = (
        x * 2  # twice
        if x.sum() > 0  # usual
        # or else
        else x * 3  # thrice
    )
    return torch.maximum(
        z,
        # both
        x,
    )
""",
    "in the sides of a branch": """def f(x: torch.Tensor):
    y = x * 2
    # above
    if y.sum() > 0:  # behind
        # inside
        y = y + 1  # at the end
        # below
    else:  # other
        y = y - 1
        # last
    return y.cos()
""",
    "of a return that goes": """def f(x: torch.Tensor):
    # above
    if x.sum() > 0:  # why
        # first
        return x.cos()  # early
    # second
    return x.sin()  # late
""",
}


@pytest.mark.parametrize("function", COMMENTS.values(), ids=COMMENTS)
def test_no_comment_is_lost(tmp_path: Path, function: str) -> None:
    text = f"import torch\n\n\n{function}"
    found = repaired(tmp_path, text)
    assert found.changed
    comments = [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]
    written = [line.partition("#")[2].strip() for line in found.after.splitlines() if "#" in line]
    assert sorted(comments) == sorted(written)


UPDATE = """def f(x: torch.Tensor):
    diff = x * 2
    diff[diff < -1] += 3
    return diff.cos()
"""
REACHED = {
    "an attribute holds it": "    kept.tensor = diff\n",
    "a list holds it": "    kept = [diff]\n",
    "a view holds it": "    kept = diff.view(-1)\n",
    "part of it has a name": "    kept = diff[1:]\n",
    "another name holds it": "    kept = diff\n",
    "an unknown function gets it": "    keep(diff)\n",
    "an inner function reads it": "    kept = lambda: diff\n",
    "a caller gets it before": "    yield diff\n",
}


def test_what_only_a_local_name_reaches_is_bound_again(tmp_path: Path) -> None:
    found = repaired(tmp_path, f"import torch\n\n\n{UPDATE}")
    assert "    diff = torch.where(diff < -1, diff + 3, diff)\n" in found.after


@pytest.mark.parametrize("line", REACHED.values(), ids=REACHED)
def test_what_more_may_reach_is_changed_in_place(tmp_path: Path, line: str) -> None:
    found = repaired(tmp_path, f"import torch\n\n\n{UPDATE.replace('    diff[', line + '    diff[')}")
    assert "    diff.copy_(torch.where(diff < -1, diff + 3, diff))\n" in found.after


SAFE = """def f(x: torch.Tensor):
    return pow(x * 2, 2)
"""
READS_CODE = ("import inspect\n\nprint(inspect.getsource(f))", "from torch.overrides import TorchFunctionMode")


def test_the_operator_of_a_builtin_is_safe(tmp_path: Path) -> None:
    repair = repaired(tmp_path, f"import torch\n\n\n{SAFE}")
    assert repair.safe != repair.before


@pytest.mark.parametrize("line", READS_CODE)
def test_in_a_file_that_reads_code_or_operations_no_edit_is_safe(tmp_path: Path, line: str) -> None:
    text = f"import torch\n\n\n{SAFE}\n\n{line}\n"
    repair = repaired(tmp_path, text)
    assert repair.safe == repair.before
    (one,) = repaired(tmp_path, text).applied
    assert len(one.differences) == 1


SHOWN = """import torch


class Counter:
    @property
    def size(self):
        self.count = 1
        return 3


COUNTER = Counter()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x: torch.Tensor):
        print({})
        return x.sin()
"""


@pytest.mark.parametrize(
    ("code", "safe"), [("self.steps", True), ("x.shape, torch.pi", True), ("COUNTER.size", False), ("self.size", False)]
)
def test_a_print_is_safe_to_skip_if_it_reads_no_property(tmp_path: Path, code: str, safe: bool) -> None:
    found = repaired(tmp_path, SHOWN.format(code))
    assert [not one.differences for one in found.applied] == [safe]


def test_a_print_whose_exception_is_caught_is_not_safe_to_skip(tmp_path: Path) -> None:
    caught = SHOWN.replace(
        "        print({})", "        try:\n            print(x[9])\n        except IndexError:\n            x = x + 1"
    )
    found = repaired(tmp_path, caught)
    assert [bool(one.differences) for one in found.applied] == [True]


@pytest.mark.parametrize(
    "setup",
    [
        "def setup():\n    global pow\n    pow = max\n",
        "exec('def pow(a): return a')\n",
        "vars()['pow'] = max\n",
        "setattr(sys.modules[__name__], 'pow', max)\n",
        "builtins.__dict__['pow'] = max\n",
    ],
)
def test_a_name_that_may_be_another_is_left_alone(tmp_path: Path, setup: str) -> None:
    assert not repaired(tmp_path, f"import torch\n\n\n{setup}\n\n{SAFE}").changed


def test_a_file_without_torch_gets_none(tmp_path: Path) -> None:
    root = tmp_path / "net.py"
    root.write_text("import torch, program\n\n\n@torch.compile\ndef f(x):\n    program.it(x)\n    return x\n", "utf-8")
    found = repaired(tmp_path, "def it(x):\n    print(x)\n", root)
    assert len(found.refused) == 1
