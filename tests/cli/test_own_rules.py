"""Rules that a project writes for itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

RULE = """+++
id = "BRK001"
name = "our-sync"
summary = "waits for the device"
message = "{callee} waits for the device"
why = "it does"
instead = "wait after the step"
kind = "performance"

[match]
event = "call"
callee = CALLEE
+++
## Breaks
```python
import lib

def f(x):
    return lib.sync(x)
```

## Compiles
```python
def f(x):
    return x
```
"""
TRAIN = """\
import lib
import torch
from lib import sync as wait

class Net(torch.nn.Module):
    def scale(self, x):
        return x * 2

    def forward(self, x):
        lib.sync(x)
        wait(x)
        lib.Timer(x)
        return self.scale(x).relu()
"""


@pytest.fixture
def project(folder: Path) -> Path:
    for path in folder.iterdir():
        path.unlink()
    for name in ("rules", "lib"):
        (folder / name).mkdir()
    (folder / "pyproject.toml").write_text('[tool.breakscan]\nrules = ["rules"]\n', encoding="utf-8")
    (folder / "lib" / "__init__.py").write_text("from lib.impl import sync, Timer\n", encoding="utf-8")
    impl = "def sync(x):\n    return x\n\n\nclass Timer:\n    def __init__(self, x):\n        pass\n"
    (folder / "lib" / "impl.py").write_text(impl, encoding="utf-8")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    return folder


def write_rule(project: Path, *callees: str) -> None:
    text = RULE.replace("CALLEE", str(list(callees)))
    (project / "rules" / "BRK001-our-sync.md").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("callee", "lines"),
    [
        ("lib.sync", [10, 11]),
        ("lib.impl.sync", [10, 11]),
        ("lib.impl.*", [10, 11, 12]),
        ("lib.Timer", [12]),
        ("train.Net.scale", [13]),
        ("torch.Tensor.relu", [13]),
        ("unknown.sync", []),
    ],
)
def test_a_rule_may_name_a_function_of_the_project(
    breakscan: Run, project: Path, callee: str, lines: list[int]
) -> None:
    write_rule(project, callee)
    data = breakscan("check", "train.py", "--select", "BRK0", "--format", "json").json
    assert [finding["site"]["line"] for finding in data["findings"]] == lines


def test_functions_of_a_library_that_cannot_be_read_are_found_by_the_name_of_the_import(
    breakscan: Run, project: Path
) -> None:
    for path in (project / "lib").iterdir():
        path.unlink()
    (project / "lib").rmdir()
    write_rule(project, "lib.sync")
    out = breakscan("check", "train.py", "--format", "concise").out
    assert out.startswith(
        "train.py:10:9: info BRK001 lib.sync waits for the device\ntrain.py:11:9: info BRK001 lib.sync"
    )


@pytest.mark.parametrize(
    ("callee", "message"),
    [
        ("torch.nonzerro", "is not known in torch 2.11 to 2.15: did you mean torch.nonzero?"),
        ("torch.Tensor.nonzerro", "is not known in torch 2.11 to 2.15: did you mean torch.Tensor.nonzero?"),
        ("torch.Tensor.qqq", "is not known in torch 2.11 to 2.15"),
        ("torch.nn.functional.reluu", "is not known in torch 2.11 to 2.15: did you mean torch.nn.functional.relu?"),
        (
            "torch.distributed.allreduce",
            "is not known in torch 2.11 to 2.15: did you mean torch.distributed.all_reduce?",
        ),
        ("numpy.uniqe", "is not known in NumPy: did you mean numpy.unique?"),
        ("torch.nn.funtional.relu", "is not known in torch 2.11 to 2.15: did you mean torch.nn.functional.relu?"),
        ("sortd", "is no builtin: did you mean sorted?"),
        ("sync", "is no builtin"),
    ],
)
@pytest.mark.parametrize("command", [["check", "train.py"], ["rules"], ["rule", "BRK001"]])
def test_a_mistyped_name_is_a_warning(
    breakscan: Run, project: Path, command: list[str], callee: str, message: str
) -> None:
    write_rule(project, callee)
    assert breakscan(*command).err == f"warning: rules/BRK001-our-sync.md: callee {callee} {message}\n"


@pytest.mark.parametrize(
    "callee",
    ["torch.cuda.synchronize", "torch.save", "torch.compile", "torch.xpu.foo", "lib.snc", "torch.*zerro", "sorted"],
)
def test_what_may_be_right_is_none(breakscan: Run, project: Path, callee: str) -> None:
    write_rule(project, callee)
    assert breakscan("check", "train.py").err == ""


def test_a_rule_is_tried_on_files(breakscan: Run, project: Path) -> None:
    write_rule(project, "lib.sync")
    done = breakscan("rule", "our-sync", "--check", "train.py", "--check", "lib")
    assert done.status == 0
    assert done.out == (
        "train.py:10:9: BRK001 lib.sync waits for the device\n"
        "train.py:11:9: BRK001 lib.sync waits for the device\n"
        "BRK001 our-sync: 2 findings in 3 files\n"
    )


def test_why_a_rule_finds_nothing_is_told(breakscan: Run, project: Path) -> None:
    write_rule(project, "lib.snyc")
    done = breakscan("rule", "BRK001", "--check", "train.py")
    assert done.status == 1
    assert done.out == (
        "BRK001 our-sync: 0 findings in 1 file\n"
        "  lib.snyc is not called in compiled code: did you mean lib.impl.sync (2 calls, the first at train.py:10:9)?\n"
        "rules/BRK001-our-sync.md:16: breaks/1 is not found, although it is under Breaks\n"
    )


def test_what_is_called_is_told_where_nothing_is_near(breakscan: Run, project: Path) -> None:
    write_rule(project, "other.thing")
    lines = breakscan("rule", "BRK001", "--check", "train.py").out.splitlines()
    assert lines[1] == "  other.thing is not called in compiled code"
    assert lines[2] == "  Called are lib.impl.sync, lib.impl.Timer, train.Net.scale, torch.Tensor.relu"


def test_an_example_that_contradicts_the_rule_is_told(breakscan: Run, project: Path) -> None:
    write_rule(project, "lib.sync")
    path = project / "rules" / "BRK001-our-sync.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("    return x\n", "    import lib\n    return lib.sync(x)\n"), encoding="utf-8")
    done = breakscan("rule", "BRK001", "--check", "train.py")
    assert done.status == 1
    assert done.out.endswith("rules/BRK001-our-sync.md:24: compiles/1 is found, although it is under Compiles\n")


def test_a_file_that_cannot_be_checked_is_status_2(breakscan: Run, project: Path) -> None:
    write_rule(project, "lib.sync")
    (project / "broken.py").write_text("def f(:\n", encoding="utf-8")
    done = breakscan("rule", "BRK001", "--check", "broken.py", "--check", "gone")
    assert done.status == 2
    assert "broken.py:1:7: not checked cannot be parsed" in done.out
    assert done.err == "Error: gone: there is no such file or folder\n"
    assert breakscan("rule", "BRK101", "--check", "train.py").status == 1
