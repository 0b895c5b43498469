"""Eager calls, exports and functions loaded compiled, in real runs: in gates, comparisons and reports."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import Valid

pytestmark = pytest.mark.torch


PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin()


@torch.compile(backend="eager")
def g(x):
    for _ in range(2):
        print("g")
    return x


f(torch.ones(3))
with torch.compiler.set_stance("force_eager"):
    for _ in range(4):
        f(torch.ones(3))
with torch.compiler.set_stance("eager_on_recompile"):
    f(torch.ones(3))
    f(torch.ones(3, 3))
for _ in range(3):
    g(torch.ones(3))
"""
FORCED = 'torch.compiler.set_stance("force_eager") was in force, under which nothing compiled runs'


def test_eager_calls_are_counted_with_the_reason(process: Run, breakscan: Run, folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = process("explain", "--save", "run", "--max-eager-calls", "6", "program.py")
    assert done.status == 1
    assert "5 of 8 calls ran eager" in done.err
    assert "--max-eager-calls 6 is not met: 7 eager calls at program.py:4:1, program.py:9:1" in done.err
    told = json.loads(breakscan("report", "run", "--format", "json").out)
    assert told["summary"]["eager_calls"] == 7
    eager = [one for one in told["problems"] if one["kind"] == "eager-calls"]
    assert {(one["functions"][0], one["reason"]): (one["count"], one["cause"]) for one in eager} == {
        ("f", "force_eager"): (4, None),
        ("f", "eager_on_recompile"): (1, None),
        ("g", "default"): (2, "function"),
    }
    assert breakscan("report", "run", "--max-eager-calls", "7").status == 0
    shown = " ".join(breakscan("report", "run").out.split())
    assert "program.py:4:1 ran eager 4× in f" in shown
    assert f"4 of 6 calls used no compiled code: {FORCED}. Called from program.py:19." in shown
    assert "1 of 6 calls used no compiled code: no version fitted, and" in shown
    assert "in g" not in shown.split("Around the compiler")[1].split("What was compiled")[0]
    assert "4 of 6 calls used no compiled code" in breakscan("report", "run", "--format", "html").out


EXPORTS = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


try:
    torch.export.export(Net(), (torch.ones(3),))
except RuntimeError:
    print("not exported")
"""
MENDED = "        return torch.where(x.sum() > 0, x + 1, x - 1)"
WHY = "it tests what depends on data, which an export does not know (torch: Eq(u0, 1))"


def test_a_report_says_what_stands_against_an_export(process: Run, breakscan: Run, folder: Path) -> None:
    program = folder / "program.py"
    program.write_text(EXPORTS, encoding="utf-8")
    done = process("explain", "--save", "run", "--max-breaks", "0", "program.py")
    assert done.status == 1
    assert done.out == "not exported\n"
    assert "1 of 1 export fails. Nothing was passed to torch.compile." in done.err
    assert "--max-breaks 0 is not met: 1 break site at program.py:6:12" in done.err
    shown = " ".join(breakscan("report", "run").out.split())
    assert "program.py:6:12 fails to export in Net.forward" in shown
    assert f"Why: {WHY}. It ends torch.export.export(Net). Called from program.py:12." in shown
    assert "it tests what depends on data" in breakscan("report", "run", "--format", "sarif").out
    told = json.loads(breakscan("report", "run", "--format", "json").out)
    assert (told["summary"]["exports"], told["summary"]["export_failures"]) == (1, 1)
    assert [one["reason"] for one in told["problems"]] == ["data-dependent-test"]

    lines = EXPORTS.splitlines()
    program.write_text("\n".join([*lines[:5], MENDED, *lines[8:], ""]), encoding="utf-8")
    done = process("explain", "--save", "mended", "--max-breaks", "0", "program.py")
    assert (done.status, done.out) == (0, "")
    assert "1 export succeeds." in done.err
    assert "Exports: Net by torch.export.export, 5 operations" in done.err
    worse = breakscan("diff", "mended", "run")
    assert worse.status == 1
    assert "New graph break: program.py:6" in worse.out
    assert "program.py:6  raises  data-dependent-test  in Net.forward" in worse.out
    assert "Gone graph break: program.py:6" in breakscan("diff", "run", "mended").out


PRECOMPILED = """import sys
import torch

torch._dynamo.config.caching_precompile = True
if sys.argv[1] == "load":
    with open("artifacts", "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())


@torch.compile
def f(x):
    return x.sin() + 1


print(f(torch.ones(4)).sum())
if sys.argv[1] == "save":
    with open("artifacts", "wb") as file:
        file.write(torch.compiler.save_cache_artifacts()[0])
"""


@pytest.mark.slow
def test_what_is_loaded_compiled_was_called(
    process: Run, breakscan: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "program.py").write_text(PRECOMPILED, encoding="utf-8")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "first"))
    saved = process("explain", "program.py", "save")
    assert "1 graph of 2 operations" in saved.err
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "second"))
    loaded = process("explain", "--save", "run", "program.py", "load")
    assert loaded.out == saved.out
    words = " ".join(loaded.err.split())
    assert "Nothing had to be compiled: 1 function was loaded compiled" in words
    assert "Loaded compiled: f (program.py:10)" in words
    told = json.loads(breakscan("report", "run", "--format", "json").out)
    assert [one["function"] for one in told["precompiled"]] == ["f"]
    assert [target["attempted"] for target in told["targets"]] == [True]


CACHED = """import random
import torch

CHANGES = random.random()

@torch.compile
def same(x):
    return x.sin() * 2

@torch.compile
def changing(x):
    y = x.cos()
    return y * CHANGES

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

@torch.compile
def bypassing(x):
    return Doubled.apply(x).sum()

for f in (same, changing, bypassing):
    f(torch.ones(3, requires_grad=f is bypassing))
"""


@pytest.mark.slow
def test_what_a_second_process_finds_in_caches_is_shown_with_a_file_for_others(
    process: Run, folder: Path, valid: Valid
) -> None:
    (folder / "program.py").write_text(CACHED, encoding="utf-8")
    done = process("explain", "--warm-up", "warm.bin", "--format", "json", "--output", "found.json", "program.py")
    assert done.status == 0, done.err
    told = valid((folder / "found.json").read_text("utf-8"), "caches")
    assert told["bundle_bytes"] == (folder / "warm.bin").stat().st_size > 0
    assert {one["function"]: one["found"] for one in told["functions"]} == {
        "same": ["aotautograd hit, fx_graph hit"] * 2,
        "changing": ["aotautograd miss, fx_graph miss"] * 2,
        "bypassing": ["aotautograd bypass, fx_graph hit"] * 2,
    }
    changed, bypassed = sorted(told["problems"], key=lambda one: one["site"]["line"])
    assert "program.py:13 (return y * CHANGES)" in changed["why"]
    assert bypassed["site"]["line"] == 26
    assert "autograd_cache_allow_custom_autograd_functions" in bypassed["remedy"]


def test_caches_are_not_shown_of_what_can_run_once_or_compiles_nothing(process: Run, folder: Path) -> None:
    (folder / "program.py").write_text("import torch\n", encoding="utf-8")
    assert process("explain", "--caches", "program.py").status == 2
    assert process("explain", "--caches", "--max-breaks", "0", "program.py").status == 2
    assert process("explain", "--caches", "-").status == 2
