"""Rules that a project writes for itself."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run

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
