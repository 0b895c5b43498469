"""The pytest plugin, in real sessions of pytest."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import environment

pytestmark = pytest.mark.torch

CODE = """import pytest, torch
from breakscan.pytest_plugin import assert_compiles as imported

def good(x):
    return x.sin() + 1

def bad(x):
    y = x.sin()
    print("breaks")
    return y.cos()

def sized(x):
    return x * x.shape[0]

def limited(x, text):
    return x + len(text)

x = torch.ones(3)
compiled = torch.compile(bad, backend="eager")
"""


def run(folder: Path, tests: str, *options: str) -> str:
    (folder / "test_it.py").write_text(CODE + tests, encoding="utf-8")
    plugins = ["-p", "no:cacheprovider", "--show-capture=no", "-rA"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options],
        cwd=folder,
        env=environment() | {"PYTEST_ADDOPTS": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


def outcomes(output: str) -> dict[str, str]:
    """How each test ended."""
    lines = (line.split() for line in output.splitlines() if line.startswith(("PASSED ", "FAILED ", "ERROR ")))
    return {line[1].partition("::")[2]: line[0] for line in lines}


def test_assert_compiles(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
def test_good(assert_compiles):
    assert torch.equal(assert_compiles(good, x), good(x))
def test_again():
    assert torch.equal(imported(good, x, then=[(x + 1,)]), good(x + 1))
def test_bad(assert_compiles):
    assert_compiles(bad, x)
def test_allowed(assert_compiles):
    assert torch.equal(assert_compiles(bad, x, breaks=1), bad(x))
def test_size():
    imported(sized, x, then=[(torch.ones(4),)])
def test_allowed_size():
    imported(sized, x, then=[(torch.ones(4),)], recompiles=1)
def test_fullgraph():
    imported(bad, x, breaks=1, fullgraph=True)
def test_nothing():
    imported(lambda n: n + 1, 3)
def test_own_error():
    imported(lambda x: {}[len(x)], x)
def test_limit():
    with torch._dynamo.config.patch(recompile_limit=2):
        imported(limited, x, "", then=[(x, n * "a") for n in range(1, 5)], recompiles=9)
def test_stance():
    with torch.compiler.set_stance("eager_on_recompile"):
        imported(good, x, then=[(torch.ones(2, 2),)])
def test_module():
    imported(torch.nn.Linear(3, 3), x)
def test_module_again():
    imported(torch.nn.Linear(3, 3), torch.ones(2, 3), then=[(torch.ones(4, 3),)])
def test_eager_first():
    with torch.compiler.set_stance("eager_then_compile"):
        imported(good, x, then=[(x + 1,)])
def test_compiled():
    imported(compiled, x)
""",
    )
    passed = {"test_good", "test_again", "test_allowed", "test_allowed_size", "test_module", "test_eager_first"}
    ended = outcomes(output)
    assert {name for name, outcome in ended.items() if outcome == "PASSED"} == passed
    assert len(ended) == 15
    assert (
        "bad is not compiled as it should be:\n"
        "1 site breaks the graph:\n"
        "test_it.py:9:5  splits the graph  BRK401 print  in bad\n"
        '   print("breaks")\n'
        "   Why: a graph cannot write to the console, "
    ) in output
    assert "after it.\n   Instead: guard it: if not torch.compiler.is_compiling(): " in output
    assert "sized is not compiled as it should be:\n1 recompile:\n" in output
    assert "test_it.py:12:11  recompiled 1×  BRK711 changing-size  in sized\n" in output
    assert "x.shape[0] was 3, then 4. Called from test_it.py:" in output
    assert "Linear is not compiled as it should be:\n1 recompile:" in output
    assert "test_it.py:9:5  raises  BRK401 print  in bad" in output
    assert "Nothing was compiled." in output
    assert "KeyError: 3" in output
    assert "limited runs eager" in output
    assert "good ran eager\n   Why: 2 of 2 calls used no compiled code" in output
    summary = output.partition(" graph breaks of torch.compile ")[2]
    told = summary.partition("splits the graph  BRK401 print  in bad\n")[2].splitlines()[0]
    assert {word.strip(",").partition("::")[2] for word in told.split()} == {"test_allowed", "test_bad"}
    assert "torch.__trace" not in output


MARKED = """
@pytest.mark.fullgraph
def test_good():
    torch.compile(good, backend="eager")(x)
def test_unmarked():
    compiled(x)
@pytest.mark.fullgraph
def test_bad():
    compiled(x)
@pytest.mark.fullgraph(breaks=1)
def test_allowed():
    compiled(x)
@pytest.mark.fullgraph(recompiles=0)
def test_size():
    for n in (3, 4):
        torch.compile(sized, backend="eager")(torch.ones(n))
@pytest.mark.fullgraph
def test_any_size():
    for n in (3, 4):
        torch.compile(sized, backend="eager")(torch.ones(n))
@pytest.mark.fullgraph
def test_nothing():
    pass
@pytest.mark.fullgraph
def test_fails():
    compiled(x)
    assert x is None
"""


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_the_marker(tmp_path: Path, workers: str) -> None:
    output = run(tmp_path, MARKED, "-n", workers, "--strict-markers", "-W", "error::pytest.PytestUnknownMarkWarning")
    ended = outcomes(output)
    assert {name for name, outcome in ended.items() if outcome == "PASSED"} == {
        "test_good",
        "test_unmarked",
        "test_allowed",
        "test_any_size",
    }
    assert len(ended) == 8
    assert "the test is marked fullgraph:\n1 site breaks the graph:\ntest_it.py:9:5  splits the graph" in output
    assert "the test is marked fullgraph:\n1 recompile:\n" in output
    assert "the test is marked fullgraph:\nNothing was compiled." in output
    assert "assert x is None" in output
    summary = output.partition(" graph breaks of torch.compile ")[2]
    assert summary.count("test_it.py:9:5  splits the graph  BRK401 print  in bad") == 1
    told = summary.partition("in bad\n")[2].splitlines()[0]
    names = {word.strip(",").partition("::")[2] for word in told.split()}
    assert names == {"test_allowed", "test_bad", "test_fails"}


@pytest.mark.slow
def test_a_summary_of_all_tests_can_be_asked_for(tmp_path: Path) -> None:
    tests = "def test_one():\n    compiled(x)\ndef test_two():\n    torch.compile(good, backend='eager')(x)\n"
    output = run(tmp_path, tests, "--breakscan-summary")
    assert set(outcomes(output).values()) == {"PASSED"}
    assert "in bad\n   test_it.py::test_one\n   Instead: guard it" in output
    tests = "def test_two():\n    torch.compile(good, backend='eager')(x)\n"
    assert "\nnone in the tests that were recorded\n" in run(tmp_path, tests, "--breakscan-summary")


def test_where_it_is_not_used_it_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\ndef test_modules():\n"
        "    known = [name for name in sys.modules if name.startswith(('torch', 'breakscan.'))]\n"
        "    assert known == ['breakscan.pytest_plugin']\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout
    assert "graph breaks" not in done.stdout


LIBRARIES = re.findall(r"```python\n(import pytest\n.*?)```", Path("docs/pytest.md").read_text("utf-8"), re.S)


def test_the_examples_for_libraries_pass_and_what_is_expected_is_held(tmp_path: Path) -> None:
    assert len(LIBRARIES) == 3
    for number, text in enumerate(LIBRARIES):
        (tmp_path / f"test_{number}.py").write_text(text, encoding="utf-8")
    listed = tmp_path / "known.csv"
    listed.write_text("name,accuracy,graph_breaks,recompiles\nclamped,pass,1,0\n", encoding="utf-8")
    tests = """
@pytest.mark.parametrize("f", [bad, sized, good], ids=["bad", "sized", "clamped"])
@pytest.mark.fullgraph(expected="known.csv")
def test_f(f):
    for size in (3, 4):
        torch.compile(f, backend="eager", dynamic=False)(torch.ones(size))
"""
    output = run(tmp_path, tests)
    ended = {name: outcome for name, outcome in outcomes(output).items() if outcome != "PASSED"}
    assert ended == {"test_f[bad]": "FAILED", "test_f[clamped]": "FAILED"}
    assert "expects more of clamped than there is: graph_breaks 1 → 0" in output
    run(tmp_path, tests, "--breakscan-update-expected")
    assert listed.read_text("utf-8").splitlines()[1:3] == ["bad,pass,1,2", "clamped,pass,0,1"]
    assert "FAILED" not in run(tmp_path, tests, "--junitxml", "junit.xml")
    assert '<property name="graph_breaks" value="1" />' in (tmp_path / "junit.xml").read_text("utf-8")


def test_the_marker_takes_what_it_says(tmp_path: Path) -> None:
    output = run(tmp_path, "@pytest.mark.fullgraph(break_=1)\ndef test_it():\n    compiled(x)\n")
    assert outcomes(output) == {"test_it": "FAILED"}
    assert "unexpected keyword argument 'break_'" in output
