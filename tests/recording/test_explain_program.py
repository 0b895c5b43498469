"""The user's program runs as it would under python: input, output, environment, end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import Done, Folder, environment

import breakscan

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]

LOOKS_AROUND = """import json, os, sys
json.dump(
    {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "name": __name__,
        "file": __file__,
        "spec": __spec__ and __spec__.name,
        "package": __package__,
        "main": sys.modules["__main__"].__dict__ is globals(),
        "environment": dict(os.environ),
        "flags": list(sys.flags),
        "finders": [n for f in sys.meta_path if (n := getattr(f, "__name__", type(f).__name__)) != "ImportWatch"],
        "modules": sorted(name for name in sys.modules if name != "sitecustomize"),
        "directory": os.getcwd(),
        "terminal": [os.isatty(stream) for stream in range(3)],
        "stdin": sys.stdin.read(),
    },
    sys.stdout,
    indent=1,
)
sys.stdout.buffer.write(b"\\n\\xff\\x00 bytes\\r\\n")
print("to stderr", file=sys.stderr)
"""

BREAKS = """import torch

def f(x):
    y = x.sin()
    print("breaks", end="")
    return y.cos()

torch.compile(f, backend="eager")(torch.ones(3))
"""


def assert_same(plain: Done, explained: Done) -> None:
    assert explained.out == plain.out
    assert explained.status == plain.status
    assert explained.err.startswith(plain.err)


@pytest.mark.parametrize("options", [(), ("-O", "-X", "utf8", "-W", "error", "-u")], ids=["plain", "options"])
def test_a_script_sees_what_it_sees_under_python(folder: Folder, options: tuple[str, ...]) -> None:
    folder.write("sub/look.py", LOOKS_AROUND)
    folder.write("sub/json_is_not_here.py", "")
    arguments = ("sub/look.py", "--flag", "-m", "a b", "--", "--format=json")
    plain = folder.python(*options, *arguments, stdin=b"some input")
    explained = folder.python(*options, "-m", "breakscan", "explain", *arguments, stdin=b"some input")
    assert plain.status == 0
    assert_same(plain, explained)


def test_a_module_sees_what_it_sees_under_python(folder: Folder) -> None:
    folder.write("package/__init__.py", "")
    folder.write("package/look.py", LOOKS_AROUND)
    plain = folder.python("-m", "package.look", "--help")
    assert plain.status == 0
    assert_same(plain, folder.explain("-m", "package.look", "--help"))


def test_the_import_path_keeps_its_order_and_nothing_found_is_one_line(folder: Folder) -> None:
    """The path does also where breakscan lies in the midst of it, as in ``site-packages``."""
    folder.write("program.py", BREAKS.replace('    print("breaks", end="")\n', "") + "import sys\nprint(sys.path)\n")
    env = {"PYTHONPATH": os.pathsep.join([str(Path(breakscan.__file__).parent.parent), str(folder.path / "behind")])}
    plain = folder.python("program.py", env=env)
    assert plain.status == 0
    explained = folder.explain("program.py", env=env)
    assert_same(plain, explained)
    assert explained.report.splitlines()[2] == "No graph breaks and no recompiles: 1 graph of 2 operations."


def test_the_users_environment_is_put_back(folder: Folder) -> None:
    folder.write("look.py", LOOKS_AROUND)
    folder.write("site/sitecustomize.py", "import sys\nsys.stderr.write('theirs runs\\n')\n")
    env = {"PYTHONPATH": f"{folder.path / 'site'}{os.pathsep}elsewhere"}
    plain = folder.python("look.py", env=env)
    assert plain.err.startswith(b"theirs runs\n")
    # breakscan's own interpreter runs it, too.
    explained = folder.explain("look.py", env=env)
    assert explained.err.startswith(b"theirs runs\n" + plain.err)
    assert explained.out == plain.out


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(3)",
        "sys.exit('a last word')",
        "raise SystemExit",
        "raise ValueError('wrong')",
        "def g():\n    yield (1)\n    1 / 0\nlist(g())",
        "sys.stdout.flush(); os._exit(7)",
        "raise KeyboardInterrupt",
        "sys.stdout.flush(); os.kill(os.getpid(), signal.SIGTERM)",
        "sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)",
        "sys.stdout.flush(); os.abort()",
        "this is not Python",
    ],
)
def test_it_ends_as_it_would_under_python(folder: Folder, end: str) -> None:
    folder.write("script.py", f"import os, signal, sys\nprint('runs')\n{end}\n")
    plain = folder.python("script.py")
    explained = folder.explain("script.py")
    assert_same(plain, explained)
    assert "script.py" in explained.report


def started(folder: Folder, script: str) -> subprocess.Popen[bytes]:
    """The script under explain, once it has written that it is ready."""
    folder.write("script.py", script)
    process = subprocess.Popen(
        [sys.executable, "-m", "breakscan", "explain", "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder.path,
        env=environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().endswith(b"ready\n")
    return process


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGINT, b"was interrupted"), (signal.SIGTERM, b"was ended by SIGTERM")]
)
def test_a_signal_ends_the_program_and_leaves_the_report(folder: Folder, number: signal.Signals, words: bytes) -> None:
    process = started(folder, f"{BREAKS}\nprint('ready', flush=True)\nimport time\ntime.sleep(60)\n")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number
    assert b"script.py " + words in err
    assert b"script.py:5:5" in err


@pytest.mark.parametrize("to_group", [False, True], ids=["process", "group"])
def test_a_signal_reaches_the_program_once(folder: Folder, to_group: bool) -> None:
    process = started(
        folder,
        """import signal, sys, time
caught = []
signal.signal(signal.SIGINT, lambda *_: caught.append(1))
signal.signal(signal.SIGUSR1, lambda *_: caught.append(2))
print("ready", flush=True)
deadline = time.monotonic() + 20
while 2 not in caught and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(0.3)
print(caught)
sys.exit(5)
""",
    )
    send = os.killpg if to_group else os.kill
    send(process.pid, signal.SIGINT)
    time.sleep(0.3)
    send(process.pid, signal.SIGUSR1)
    out, _ = process.communicate(timeout=60)
    assert out == b"[1, 2]\n"
    assert process.returncode == 5


def test_killing_breakscan_kills_the_program(folder: Folder) -> None:
    process = started(folder, "import os, time\nprint(os.getpid(), 'ready', flush=True)\ntime.sleep(60)\n")
    (program,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{program}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{program}").exists()


class TestReport:
    def test_it_goes_to_stderr_in_narrow_lines_and_leaves_stdout_alone(self, folder: Folder) -> None:
        folder.write("script.py", BREAKS)
        done = folder.explain("script.py", env={"COLUMNS": "70"})
        assert done.out == b"breaks"
        assert max(map(len, done.report.splitlines())) <= 70
        assert "script.py finished with exit status 0" in done.report
        assert "1 site breaks the graph once: 2 graphs of 2 operations instead of 1." in done.report
        assert "script.py:5:5  splits the graph  BRK401 print  in f" in done.report
        assert "Instead: " in done.report

    def test_no_torch_is_one_line(self, folder: Folder) -> None:
        folder.write("script.py", "print('hello')\n")
        lines = folder.explain("script.py").report.splitlines()
        assert lines[2:] == ["Nothing was compiled: the program did not import torch."]

    def test_a_file_takes_it(self, folder: Folder) -> None:
        folder.write("script.py", "print('hello')\n")
        done = folder.explain("--output", "report.txt", "script.py")
        assert done.err == b"breakscan: the report is in report.txt\n"
        assert "script.py finished" in (folder.path / "report.txt").read_text(encoding="utf-8")


class TestRefusal:
    """Where the program is not run at all: exit status 2, and what to do."""

    @pytest.fixture
    def script(self, folder: Folder) -> Folder:
        folder.write("script.py", "print('it runs')\n")
        return folder

    def refused(self, done: Done) -> str:
        assert done.status == 2
        assert done.out == b""
        return " ".join(done.err.decode().split())

    def test_a_report_that_cannot_be_written(self, script: Folder) -> None:
        assert "cannot write nowhere/report" in self.refused(script.explain("-o", "nowhere/report", "script.py"))

    def test_a_script_that_is_not_there(self, script: Folder) -> None:
        assert "there is no file 'gone.py'" in self.refused(script.explain("gone.py"))

    def test_options_that_keep_the_recorder_out(self, script: Folder) -> None:
        done = script.python("-E", "-m", "breakscan", "explain", "script.py")
        assert "-E, -I and -S keep the recorder out" in self.refused(done)


def test_json_on_standard_output_follows_the_programs(folder: Folder) -> None:
    folder.write("script.py", "print('hello')\n")
    done = folder.explain("--format", "json", "--output", "-", "script.py")
    assert done.out.startswith(b'hello\n{\n  "schema": 2,')
