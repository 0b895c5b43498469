"""No file stops the others, whatever is in it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import breakscan
from breakscan.analysis.check import FileChecker, check_paths
from breakscan.config import Settings

SOURCES = sorted(p for p in Path(breakscan.__file__).parent.rglob("*.py") if p.stat().st_size > 2000)


def test_a_syntax_error_is_an_entry_and_the_rest_is_checked(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import torch\ndef f(:\n")
    (tmp_path / "good.py").write_text("import torch\n@torch.compile\ndef f(x): return x.sum().item()\n")
    result = check_paths(sorted(tmp_path.glob("*.py")), Settings(root=tmp_path, target_torch="2.13"))
    assert [(Path(e.path).name, e.line) for e in result.errors] == [("bad.py", 2)]
    assert [f.rule for f in result.findings] == ["BRK201"]


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
