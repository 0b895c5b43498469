"""The processes that a program starts are recorded, and neither it nor they notice."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from programs import Folder, environment

from breakscan import __version__
from breakscan.explanation.from_recording import explain_run
from breakscan.explanation.notices import KILLED, RUNNING
from breakscan.recording.session import SessionError, read_run
from breakscan.rulebook.library import load_library
from breakscan.source.source_files import SourceFiles

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")]

PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
"""On which ``python`` is the Python of the tests."""

LOOKS_AROUND = """import json, os, sys

def look(who):
    seen = [
        who,
        dict(os.environ),
        sys.path,
        list(sys.flags),
        sorted(name for name in sys.modules if name != "sitecustomize"),
        list(sys.path_importer_cache),
    ]
    sys.stdout.write(json.dumps(seen) + "\\n")
    sys.stdout.flush()
"""

FAMILY = """import multiprocessing, os, subprocess, sys
from look import look

CODE = "import look; look.look('child')"

if __name__ == "__main__":
    look("parent")
    os.environ["ADDED"] = "1"
    for command in (
        [sys.executable, "-c", CODE],
        ["python", "-u", "-X", "utf8", "-c", CODE],
        [sys.executable, "-I", "-c", "import os; print(dict(os.environ))"],
        ["env", "ADDED=2", "python", "-c", CODE],
        ["env", "PYTHONPATH=other", "python", "-c", "import os; print(dict(os.environ))"],
        ["env"],
        ["sh", "-c", f'python -c "{CODE}"'],
        ["sh", "-c", f'env; python -c "{CODE}"'],
        ["python", "no-such-file.py"],
    ):
        subprocess.run(command)
    small = {"PATH": os.environ["PATH"]}
    for env in (small, {**small, "PYTHONPATH": ""}, {**small, "PYTHONPATH": f"{os.curdir}{os.pathsep}"}):
        subprocess.run([sys.executable, "-c", CODE], env=env, close_fds=len(env) == 1)
    os.spawnv(os.P_WAIT, sys.executable, ["python", "-c", CODE])
    os.waitpid(os.posix_spawn(sys.executable, ["python", "-c", CODE], os.environ), 0)
    os.waitpid(os.posix_spawnp("python", ["python", "-c", CODE], {**small, b"B": b"2"}), 0)
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=look, args=(method,))
        process.start()
        process.join()
    sys.stdout.flush()
    os.execlp("python", "python", "-c", CODE)
"""


@pytest.mark.parametrize("path", [None, "", f"theirs{os.pathsep}"])
def test_parents_and_children_see_what_they_see_under_python(folder: Folder, path: str | None) -> None:
    folder.write("look.py", LOOKS_AROUND)
    folder.write("family.py", FAMILY)
    env = {"PATH": PATH} | ({} if path is None else {"PYTHONPATH": path})
    plain = folder.python("family.py", env=env)
    explained = folder.explain("family.py", env=env)
    assert plain.status == explained.status == 0
    assert plain.out.count(b'"child"') == 12
    assert explained.out == plain.out
    assert explained.err.startswith(plain.err)


STARTS = """import os, subprocess, sys

IS_WATCHED = "import sys; print(any(type(f).__name__ == 'ImportWatch' for f in sys.meta_path))"
"""


@pytest.mark.parametrize(
    ("start", "recorded"),
    [
        ("subprocess.run([sys.executable, '-c', IS_WATCHED])", True),
        ("subprocess.run(f'python -W error -c \"{IS_WATCHED}\" > out; cat out', shell=True)", False),
        ("subprocess.run(f'python -W error -c \"{IS_WATCHED}\" 2>&1', shell=True)", True),
        ("subprocess.run(['nice', '-n', '1', 'python', '-c', IS_WATCHED])", True),
        ("subprocess.run(['env', '-i', sys.executable, '-c', IS_WATCHED])", False),
        ("subprocess.run([sys.executable, '-S', '-c', IS_WATCHED])", False),
        ("subprocess.run(['./tool'])", True),
        ("subprocess.run(['./long-path-tool'])", True),
        ("subprocess.run(['./tool'], cwd='sub')", False),
        ("os.execv(sys.executable, ['python', '-c', IS_WATCHED])", True),
    ],
)
def test_which_programs_are_recorded(folder: Folder, start: str, recorded: bool) -> None:
    look = STARTS.splitlines()[-1].partition(" = ")[2].strip('"')
    scripts = {
        "tool": f"#!{sys.executable}\n{look}\n",
        "long-path-tool": f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n{look}\n",
        "sub/tool": "#!/bin/sh\necho False\n",
    }
    for name, text in scripts.items():
        folder.write(name, text)
        (folder.path / name).chmod(0o700)
    folder.write("script.py", f"{STARTS}{start}\n")
    assert folder.explain("script.py", env={"PATH": PATH}).out.split() == [str(recorded).encode()]


WORKS = """import multiprocessing, os, subprocess, sys

def work(*_):
    import torch

    def f(x):
        y = x.sin()
        print("works", flush=True)
        return y.cos()

    torch.compile(f, backend="eager")(torch.ones(3))
    return 0

class Items:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return work()

if __name__ == "__main__":
    if sys.argv[1:]:
        work()
        sys.exit()
    import torch, torch._dynamo
    from torch.utils.data import DataLoader

    for method in ("fork", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=work)
        process.start()
        process.join()
    list(DataLoader(Items(), num_workers=1))
    torch.multiprocessing.spawn(work, nprocs=1)
    subprocess.run([sys.executable, __file__, "again"])
    os.execv(sys.executable, [sys.executable, __file__, "at last"])
"""


@pytest.mark.slow
def test_children_of_every_kind_are_recorded(folder: Folder) -> None:
    folder.write("works.py", WORKS)
    done, report = folder.explain_json("works.py")
    assert done.out == b"works\n" * 6
    (found,) = report["breaks"]
    assert found["count"] == report["script"]["processes"] == 6
    assert [one["count"] for one in report["problems"] if one["kind"] == "compiled-anew"] == [6]
    ids = [graph["compile_id"] for graph in report["graphs"]]
    assert len(set(ids)) == len(ids) == 12


def test_the_compilers_own_workers_are_left_alone(folder: Folder) -> None:
    folder.write(
        "script.py",
        """import os
import torch, torch._dynamo
from torch._inductor.compile_worker.subproc_pool import SubprocPool

if __name__ == "__main__":
    pool = SubprocPool(1)
    assert pool.submit(os.getpid).result()
    print("BREAKSCAN_RECORDING" in open(f"/proc/{pool.process.pid}/environ").read())
    pool.shutdown()
""",
    )
    done = folder.explain("--save", "kept", "script.py")
    assert done.out == b"False\n"
    assert len(list((folder.path / "kept").glob("*.jsonl"))) == 1


def test_files_that_the_program_opens_in_place_of_ours_are_not_written_to(folder: Folder) -> None:
    folder.write(
        "script.py",
        """import os
import torch, torch._dynamo

os.closerange(3, 64)
theirs = [open(f"theirs-{number}", "wb", buffering=0) for number in range(20)]

def f(x):
    y = x.sin()
    print("breaks")
    return y.cos()

torch.compile(f, backend="eager")(torch.ones(3))
assert not any(file.tell() for file in theirs)
""",
    )
    done, report = folder.explain_json("script.py")
    assert done.status == 0
    assert [found["count"] for found in report["breaks"]] == [1]
    assert not any(path.stat().st_size for path in folder.path.glob("theirs-*"))


def test_an_import_of_torch_that_fails_is_told_as_under_python(folder: Folder) -> None:
    folder.write("site/torch/__init__.py", "import ctypes\nctypes.CDLL('libnot-there.so')\n")
    folder.write("site/torch/version.py", "__version__ = '2.13.0'\n")
    folder.write("script.py", "import torch\n")
    env = {"PYTHONPATH": str(folder.path / "site")}
    plain = folder.python("script.py", env=env)
    explained = folder.explain("script.py", env=env)
    assert b"libnot-there.so" in plain.err
    assert explained.err.startswith(plain.err)
    assert "the program ended before it called torch.compile" in explained.report


class TestFolder:
    """``--save FOLDER`` and what is read from it."""

    SCRIPT = """import torch

def f(x):
    y = x.sin()
    print("breaks", flush=True)
    return y.cos()

torch.compile(f, backend="eager")(torch.ones(3))
"""

    def test_a_recording_is_kept_and_read_again(self, folder: Folder) -> None:
        folder.write("script.py", f"{self.SCRIPT}raise SystemExit(3)\n")
        done, report = folder.explain_json("--save", "runs/first", "script.py", "--flag")
        assert done.status == 3
        run = read_run(folder.path / "runs/first")
        assert run.argv == ("script.py", "--flag")
        assert run.cwd == str(folder.path)
        (part,) = run.parts
        assert (part.manifest.status, part.manifest.rank, part.running) == (3, None, False)
        assert part.manifest.ended is not None
        assert part.manifest.started < part.manifest.ended
        explanation = explain_run(run, rules=load_library(), show=os.path.basename, files=SourceFiles.trusted())
        assert explanation.status == 3
        assert [site.site.line for site in explanation.breaks] == [b["site"]["line"] for b in report["breaks"]] == [5]

    def test_without_it_nothing_is_left(self, folder: Folder) -> None:
        folder.write("script.py", self.SCRIPT)
        (folder.path / "temporary").mkdir()
        folder.explain("script.py", env={"TMPDIR": str(folder.path / "temporary")})
        assert not list((folder.path / "temporary").glob("breakscan-*"))

    def test_a_folder_that_holds_something_is_refused_before_the_program_runs(self, folder: Folder) -> None:
        folder.write("script.py", "print('it runs')\n")
        folder.write("kept/something", "")
        for name in ("kept", "script.py", "script.py/kept"):
            done = folder.explain("--save", name, "script.py")
            assert (done.status, done.out) == (2, b"")
            assert b"something" not in done.err
            assert name.encode() in done.err

    def test_what_was_recorded_until_breakscan_was_killed_is_read(self, folder: Folder) -> None:
        folder.write("script.py", f"{self.SCRIPT}print('ready', flush=True)\nimport time\ntime.sleep(60)\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "breakscan", "explain", "--save", "kept", "script.py"],
            stdout=subprocess.PIPE,
            cwd=folder.path,
            env=environment(),
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"breaks\n"
        assert process.stdout.readline() == b"ready\n"
        assert self.explained(folder).notices[0] == RUNNING
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        explanation = self.explained(folder)
        assert explanation.status is None
        assert explanation.seconds is not None
        assert 0 < explanation.seconds < 60
        assert explanation.notices[0] == KILLED
        assert [site.count for site in explanation.breaks] == [1]

    def explained(self, folder: Folder) -> Any:
        return explain_run(
            read_run(folder.path / "kept"), rules=load_library(), show=os.path.basename, files=SourceFiles.trusted()
        )

    @pytest.mark.parametrize(
        ("files", "said"),
        [
            (None, "there is no folder"),
            ({}, "holds no recording: breakscan explain --save makes one"),
            ({"run.json": "{"}, "run.json is damaged"),
            ({"run.json": '{"format": 2, "argv": 3}'}, "run.json is damaged"),
            ({"run.json": '{"format": 1, "breakscan": "0.1"}'}, "was recorded by breakscan 0.1 in format 1, "),
            ({"run.json": f'{{"format": 1, "breakscan": "{__version__}"}}'}, "kept was recorded in format 1, "),
            ({"run.json": '{"format": 99, "breakscan": "7.0"}'}, "upgrade breakscan"),
        ],
    )
    def test_what_is_no_recording_is_refused(self, folder: Folder, files: dict[str, str] | None, said: str) -> None:
        for name, text in (files or {}).items():
            folder.write(f"kept/{name}", text)
        if files == {}:
            (folder.path / "kept").mkdir()
        with pytest.raises(SessionError) as refused:
            read_run(folder.path / "kept")
        assert said in str(refused.value)
