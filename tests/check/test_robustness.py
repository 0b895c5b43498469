"""No file stops the others, whatever is in it."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import breakscan
from breakscan.check.pipeline.check import check_paths
from breakscan.check.pipeline.check_file import FileChecker
from breakscan.rulebook.config import Settings

SOURCES = sorted(p for p in Path(breakscan.__file__).parent.rglob("*.py") if p.stat().st_size > 2000)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx = " + "(" * 150 + ")" * 150,
        "import torch\ndef f(x):\n    return " + "-" * 3000 + "x",
        "import torch\ndef f(x):\n    return " + " + ".join(["x"] * 5000),
        "import torch\nclass A(A): pass\nclass B(C): pass\nclass C(B):\n    def forward(self, x): return x.y.z()",
        "import torch\ndef f(x): return g(x)\ndef g(x): return f(x)\n",
        "import torch\ndef f(x):\n    x = [x]\n    for _ in x:\n        x = [x, x]\n    return f(x)\n",
        "import torch\nf = lambda x: f(f)(x)\ng = torch.compile(f)\n",
    ],
    ids=["parentheses", "unary", "binary", "cyclic bases", "recursion", "growing", "self-application"],
)
def test_hard_programs_end(tmp_path: Path, source: str) -> None:
    path = tmp_path / "hard.py"
    path.write_text(source)
    result = check_paths([path], Settings(root=tmp_path, target_torch="2.13", regions="all"))
    assert not [e for e in result.errors if "bug" in e.message]


def test_calls_through_many_files_end(tmp_path: Path) -> None:
    body = (
        "def f(x):\n    for y in x:\n        if y.ndim:\n            x = [part{}.f(one) for one in y]\n    return x\n"
    )
    for number in range(80):
        (tmp_path / f"part{number}.py").write_text(f"import part{number + 1}\n{body.format(number + 1)}")
    path = tmp_path / "first.py"
    path.write_text("import torch, part0\n@torch.compile\ndef g(x):\n    return part0.f(x), x.sum().item()")
    result = check_paths([path], Settings(root=tmp_path, target_torch="2.13"))
    assert [finding.rule for finding in result.findings] == ["BRK201"]
    assert not result.errors


@pytest.mark.parametrize("regions", ["auto", "all"])
def test_a_fault_costs_one_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, regions: Literal["auto", "all"]
) -> None:
    def fails(*_: object) -> None:
        raise IndexError("made up")

    monkeypatch.setattr("breakscan.check.interpreter.expressions.subscript", fails)
    path = tmp_path / "faulty.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        self.w = sizes[0]\n"
        "    def forward(self, x: torch.Tensor):\n        return x.item() + part(x)\n"
        "def part(x: torch.Tensor):\n    return x[0]\nnet = torch.compile(Net())\n"
    )
    result = check_paths([path], Settings(root=tmp_path, target_torch="2.13", regions=regions))
    assert [finding.site.line for finding in result.findings] == [6]
    assert [error.line for error in result.errors] == [2, 7]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), source=st.sampled_from(SOURCES))
def test_mutated_programs_are_analysed_or_named(
    tmp_path_factory: pytest.TempPathFactory, seed: int, source: Path
) -> None:
    """Lines of real programs, dropped, doubled, swapped and dedented."""
    rng = random.Random(seed)
    lines = ["import torch", *source.read_text(encoding="utf-8").splitlines()]
    for _ in range(rng.randrange(1, 12)):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                del lines[i]
            case 1:
                lines.insert(i, lines[j])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case _:
                lines[i] = lines[i].removeprefix("    ")
    folder = tmp_path_factory.mktemp("mutated")
    checker = FileChecker(Settings(root=folder, target_torch="2.13", regions="all"))
    path = folder / "mutated.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert not [e for e in checker.check_file(path).errors if "bug in breakscan" in e.message]


def many(folder: Path, count: int = 60) -> list[Path]:
    source = "import torch\n@torch.compile\ndef f(x): return x.sum().item()\n"
    paths = [folder / f"m{i}.py" for i in range(count)]
    for path in paths:
        path.write_text(source)
    return paths


@pytest.mark.process
def test_many_files_in_processes_give_the_same_as_one_by_one(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, target_torch="2.13")
    done: list[int] = []
    parallel = check_paths(many(tmp_path), settings, jobs=2, on_progress=lambda n, _: done.append(n))
    assert parallel == check_paths(many(tmp_path), settings, jobs=1)
    assert len(parallel.findings) == 60
    assert done[-1] == 60


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.process
def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    body = "".join(f"    y{i} = x.sin() + {i}\n" for i in range(3000))
    for i in range(60):
        (tmp_path / f"m{i}.py").write_text(f"import torch\n@torch.compile\ndef f(x):\n{body}    return x\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "breakscan", "check", "--jobs", "2", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 130
    assert b"Traceback" not in errors
