"""The other ways to run a program: ``-c``, ``--keep-going``, ``--compile``."""

import sys

import pytest
from programs import Folder

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]


def sites(report: object) -> list[tuple[str, int]]:
    return [(found["site"]["path"], found["site"]["line"]) for found in report["breaks"]]  # type: ignore[index]


class TestCode:
    """``-c``"""

    CODE = """import sys, torch
print(sys.argv, sys.orig_argv[1:], sys.path[0], __name__, __spec__, "__file__" in globals())
def f(x):
    print("breaks")
    return x + 1
torch.compile(f, backend="eager")(torch.ones(3))
raise ValueError("wrong")
"""

    @pytest.mark.slow
    def test_it_runs_as_under_python_and_shows_its_code(self, folder: Folder) -> None:
        plain = folder.python("-c", self.CODE, "-x", "a b")
        explained = folder.explain("-c", self.CODE, "-x", "a b")
        assert explained.out == plain.out
        assert explained.status == plain.status == 1
        assert explained.err.startswith(plain.err)
        assert "-c finished with exit status 1" in explained.report
        assert "<string>:4:5  splits the graph  BRK401 print  in f" in explained.report
        assert '4 │     print("breaks")' in explained.report


FULLGRAPH = """import torch
from torch import compile

def f(x):
    y = x * x.sum().item()
    print("first")
    z = y.cos()
    print("second")
    return z

def g(x):
    print("third")
    return x + 1

class Net(torch.nn.Module):
    def forward(self, x):
        print("fourth")
        return x * 2

def h(x):
    with torch._dynamo.error_on_graph_break(True):
        print("fifth")
        return x + 3

net = Net()
net.compile(fullgraph=True, backend="eager")
calls = [
    compile(f, fullgraph=True, backend="eager"),
    torch.compile(fullgraph=True, backend="eager")(g),
    net,
    torch.compile(h, backend="eager"),
]
for call in calls:
    try:
        print(call(torch.ones(3)).tolist())
    except Exception as error:
        print(type(error).__name__)
"""


class TestKeepGoing:
    """``--keep-going``"""

    def test_without_it_the_program_raises_and_the_break_is_told(self, folder: Folder) -> None:
        folder.write("script.py", FULLGRAPH)
        explained, report = folder.explain_json("script.py")
        assert explained.out == b"Unsupported\n" * 4
        assert sites(report) == [("script.py", line) for line in (6, 12, 17, 22)]
        assert {found["verdict"] for found in report["breaks"]} == {"raises"}

    @pytest.mark.slow
    def test_with_it_all_breaks_are_told_but_those_that_fullgraph_captures(self, folder: Folder) -> None:
        folder.write("script.py", FULLGRAPH)
        done, report = folder.explain_json("--keep-going", "script.py")
        assert b"Unsupported" not in done.out
        for word in (b"first", b"second", b"third", b"fourth", b"fifth"):
            assert done.out.count(word) == 1
        # The .item() of line 5 is captured under fullgraph=True: it must not be reported as a break.
        assert sites(report) == [("script.py", line) for line in (6, 8, 12, 17, 22)]
        (notice,) = [notice for notice in report["notices"] if "--keep-going" in notice]
        assert notice.endswith("torch.compile raises first at script.py:6:5, called from script.py:35")


MODEL = """import torch

class Net(torch.nn.Module):
    def forward(self, x):
        print("in Net")
        return x.sin()

    @staticmethod
    def scale(x):
        print("in scale")
        return x * 2

class Other(torch.nn.Module):
    def forward(self, x):
        print("in Other")
        return x.cos()

def step(x):
    print("in step")
    return x + 1

other = Other()
number = 3
"""


class TestCompile:
    """``--compile``"""

    USE = """import torch
from model import Net, other, step
x = torch.linspace(0, 1, 5)
print(step(x).tolist(), Net()(x).tolist(), other(x).tolist(), Net().scale(x).tolist(), Net.scale.__qualname__)
"""

    @pytest.mark.slow
    def test_what_a_module_defines(self, folder: Folder) -> None:
        folder.write("model.py", MODEL)
        folder.write("use.py", self.USE)
        plain = folder.python("use.py")
        asked = [f"--compile=model:{name}" for name in ("Net", "step", "other", "Net.scale")]
        done, report = folder.explain_json(*asked, "--compile-backend", "eager", "use.py")
        assert plain.status == 0
        assert (done.status, done.out) == (0, plain.out)
        assert sites(report) == [("model.py", line) for line in (5, 10, 15, 19)]
        assert not [notice for notice in report["notices"] if "--compile" in notice]

    def test_what_is_not_there_is_an_error(self, folder: Folder) -> None:
        folder.write("model.py", MODEL)
        folder.write("use.py", self.USE)
        asked = [f"--compile={name}" for name in ("model:Nett", "model:number", "elsewhere:f", "model:Net")]
        done, report = folder.explain_json(*asked, "--compile-backend", "eager", "use.py")
        assert done.status == 2
        assert sites(report) == [("model.py", 5)]
        for said in (
            "--compile model:Nett compiled nothing: model.py defines no Nett; nearest: Net",
            "--compile model:number compiled nothing: number is of type int, which cannot be compiled",
            "--compile elsewhere:f compiled nothing: the program never imported elsewhere",
        ):
            assert report["notices"].count(said) == 1
            assert done.err.decode().count(said) == 1
        assert len([notice for notice in report["notices"] if "--compile" in notice]) == 3

    def test_a_program_without_torch_is_told_so_and_the_error_stands(self, folder: Folder) -> None:
        folder.write("use.py", "import model\n")
        folder.write("model.py", "def f(x):\n    return x\n")
        done = folder.explain("--compile", "model:g", "use.py")
        assert done.status == 2
        assert "the program did not import torch" in done.report
        assert "--compile model:g compiled nothing: model.py defines no g" in done.report

    OWN = """import torch
step = None
def step(x):
    print("in step")
    return x + 1
class Net(torch.nn.Module):
    def forward(self, x):
        return step(x).sin()
net = Net()
def f(x):
    return x
f = torch.no_grad()(f)
if __name__ == "__main__":
    print(net(torch.ones(2)).tolist(), step(torch.ones(2)).tolist(), __name__)
    print(f(torch.ones(2)))
"""

    @pytest.mark.parametrize(
        "way", ["script", *(pytest.param(way, marks=pytest.mark.slow) for way in ("module", "code", "input"))]
    )
    def test_what_the_script_itself_defines(self, folder: Folder, way: str) -> None:
        folder.write("own.py", self.OWN)
        argv = {"script": ["own.py"], "module": ["-m", "own"], "code": ["-c", self.OWN], "input": ["-"]}[way]
        stdin = self.OWN.encode() if way == "input" else b""
        plain = folder.python(*argv, stdin=stdin)
        asked = ["--compile", "own:Net" if way == "module" else "__main__:Net", "--compile", ":step"]
        done, report = folder.explain_json(*asked, "--compile-backend", "eager", *argv, stdin=stdin)
        assert plain.status == 0
        assert (done.status, done.out) == (0, plain.out)
        # Both are compiled, so the break is met from within Net.forward, and in step alone.
        assert {found["site"]["line"] for found in report["breaks"]} == {4}
        assert sum(found["count"] for found in report["breaks"]) == 2

    def test_a_name_that_the_script_does_not_bind_is_reported(self, folder: Folder) -> None:
        folder.write("own.py", "print('runs')\nclass Net: pass\n")
        done = folder.explain("--compile", ":Nett", "own.py")
        assert (done.status, done.out) == (2, b"runs\n")
        assert "--compile :Nett compiled nothing: own.py defines no Nett; nearest: Net" in done.report

    def test_a_text_of_another_form_is_refused(self, folder: Folder) -> None:
        folder.write("own.py", "")
        done = folder.explain("--compile", "own.Net", "own.py")
        assert done.status == 2
        assert b"'own.Net' is not of the form module:name" in " ".join(done.err.decode().split()).encode()

    def test_a_module_that_fails_to_import_fails_as_it_would_alone(self, folder: Folder) -> None:
        folder.write("model.py", "def f(x):\n    return x\nraise ValueError('wrong')\n")
        folder.write("use.py", "import model\n")
        plain = folder.python("use.py")
        done = folder.explain("--compile", "model:f", "use.py")
        assert done.status == plain.status == 1
        assert done.err.startswith(plain.err)
