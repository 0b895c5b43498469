"""New texts stand in for files, without touching the disk, and what of them runs is recorded."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breakscan.prove.overlay import ExecutedCode, plain_code, recording_code

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

RUN = """\
import json, sys
from breakscan.prove.overlay import Overlay, run_module, run_script
sys.path.insert(0, "")
overlay = Overlay(json.loads(sys.argv[1]))
overlay.install()
how, name, *arguments = sys.argv[2:]
run_script(name, arguments, overlay) if how == "script" else run_module(name, arguments)
print("loaded", sorted(overlay.loaded))
"""


def run(folder: Path, texts: dict[str, str], how: str, name: str, *arguments: str) -> str:
    words = [sys.executable, "-c", RUN, json.dumps(texts), how, name, *arguments]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("def f():\n    return 'old'\n", encoding="utf-8")
    (tmp_path / "main.py").write_text("import helper\nprint('main', helper.f())\n", encoding="utf-8")
    return tmp_path


def test_an_imported_module_is_made_of_the_new_text(program: Path) -> None:
    path = str(program / "helper.py")
    assert "main old" in run(program, {}, "script", "main.py")
    told = run(program, {path: "def f():\n    return 'new'\n"}, "script", "main.py")
    assert "main new" in told
    assert f"loaded ['{path}']" in told
    assert "old" in (program / "helper.py").read_text(encoding="utf-8")
    # The compiled file that the first run left is neither read nor replaced.
    assert "main old" in run(program, {}, "script", "main.py")


def test_the_script_itself_runs_as_python_runs_it(program: Path) -> None:
    path = str(program / "main.py")
    text = (
        "import inspect, sys\n"
        "def f():\n"
        "    return 1\n"
        "print(__name__, __file__, sys.argv, sys.path[0], __spec__)\n"
        "print(sys.modules['__main__'].f is f, inspect.getsource(f).split())\n"
    )
    told = run(program, {path: text}, "script", "main.py", "--x", "1").splitlines()
    assert told[0] == f"__main__ {path} ['main.py', '--x', '1'] {program} None"
    assert told[1] == "True ['def', 'f():', 'return', '1']"


def test_a_module_runs_as_python_m_runs_it(program: Path) -> None:
    path = str(program / "main.py")
    told = run(program, {path: "import sys\nprint(__name__, __spec__.name, sys.argv[1:])\n"}, "module", "main", "--x")
    assert told.splitlines()[0] == "__main__ main ['--x']"


def test_lines_of_tracebacks_are_those_of_the_new_text(program: Path) -> None:
    (program / "main.py").write_text(
        "import helper, traceback\ntry:\n    helper.f()\nexcept ValueError:\n    print(traceback.format_exc())\n",
        encoding="utf-8",
    )
    text = "def f():\n\n    raise ValueError('here')  # new\n"
    told = run(program, {str(program / "helper.py"): text}, "script", "main.py")
    assert "helper.py\", line 3, in f\n    raise ValueError('here')  # new\n" in told


TEXT = """\
class Once:
    asked = 0

    def __bool__(self):
        self.asked += 1
        return True


class A:
    def f(self, x, y=0):
        once = Once()
        z = x or (y and 3)
        while not (x > 3 and y < 2):
            x += 1
        w = [i for i in range(4) if i > 1 if not i == 3]
        assert once, "no"
        match x:
            case 4 if x > y:
                z = 7
        return ("a" if x > 5 else "b"), z or None, w, f"{x if y else 1}", once.asked


def unused(q):
    if q:
        return 1


while True:
    break
"""
BOTH = frozenset({True, False})


def result(code: Any) -> object:
    names: dict[str, Any] = {"__name__": "it"}
    exec(code, names)
    return names["A"]().f(0)


def test_outcomes_are_recorded_and_nothing_changes(tmp_path: Path) -> None:
    path = str(tmp_path / "it.py")
    code = recording_code(TEXT, path)
    expected = result(plain_code(TEXT, path))
    assert result(code) == expected
    with ExecutedCode([path]).noted() as ran:
        pass
    assert result(code) == expected
    assert not ran.outcomes, "only while it records"
    with ExecutedCode([path]).noted() as ran:
        assert result(code) == expected
    lines = [line.encode() for line in TEXT.splitlines()]
    found: dict[str, set[bool]] = {}
    for (line, column, _, end), outcome in ran.found()[path].outcomes:
        found.setdefault(lines[line - 1][column:end].decode(), set()).add(outcome)
    assert found == {
        "x": {False},
        "y": {False},
        "x > 3": BOTH,
        "y < 2": {True},
        "i > 1": BOTH,
        "i == 3": BOTH,
        "once": {True},
        "x > y": {True},
        "x > 5": {False},
        "z": {True},
    }


def test_instructions_without_a_line_end_no_run(tmp_path: Path) -> None:
    path = str(tmp_path / "it.py")
    scope: dict[str, Any] = {}
    # CPython 3.10 to 3.13 give the jump back to the loop, or the end of the handler, no line.
    text = "def f():\n    for x in 1, 2:\n        if x > 1:\n            x = 3\n"
    text += "        try:\n            1 / 0\n        except ZeroDivisionError as error:\n            x = 4\n"
    exec(plain_code(text, path), scope)
    with ExecutedCode([path]).noted(closely=True) as ran:
        scope["f"]()
    assert {2, 3, 4, 8} <= {*ran.found()[path].lines}
