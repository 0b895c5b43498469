"""What calls change outside of the program's objects is compared, and put back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import os, sys, tempfile
from pathlib import Path
from breakscan.prove.outside import OUTSIDE

sys.pycache_prefix = os.path.join(os.getcwd(), "bytecode")
OUTSIDE.install(Path(sys.argv[1]))
LOCKS = os.path.join(tempfile.gettempdir(), "torchinductor_someone", "locks")
log = open("log.txt", "w")
log.write("before\\n")
Path("old.txt").write_text("old\\n")


def call():
    print("hello")
    log.write("in\\n")
    with open("once.txt", "x") as once:
        once.write("made")
    with open("old.txt", "a") as old:
        old.write("more")
    os.mkdir("folder")
    os.makedirs(os.path.join(sys.argv[1], "cache"), exist_ok=True)
    # A file without a name, in a folder that this process has just made: the folder stays.
    os.close(os.open("folder", os.O_TMPFILE | os.O_RDWR | os.O_EXCL))
    assert os.path.isdir("folder")
    os.makedirs(LOCKS, exist_ok=True)
    os.environ["NAME"] = "it"
    # Python keeps the bytecode of what it imports.
    Path(sys.pycache_prefix, "deep").mkdir(parents=True, exist_ok=True)
    Path(sys.pycache_prefix, "deep", "module.cpython-311.pyc").write_bytes(b"code")


OUTSIDE.put_back([log])
for _ in range(2):
    call()
    printed, changes = OUTSIDE.changes([log])
    assert printed == "hello\\n", printed
    assert changes == {
        "file log.txt": "in\\n", "file once.txt": "made", "file old.txt": "more", "folder folder": "made",
        "os.environ['NAME']": "it",
    }, changes
    OUTSIDE.put_back([log])
    assert OUTSIDE.changes([log]) == ("", {})
assert Path("log.txt").read_text() == "before\\n"
assert sorted(os.listdir()) == ["bytecode", "log.txt", "old.txt"]
assert "NAME" not in os.environ
assert os.path.isdir(os.path.join(sys.argv[1], "cache"))
assert os.path.isdir(LOCKS)
if len(sys.argv) == 2:
    # Nothing is put back between timed steps; another process of the same program makes the file again, too.
    call()
    call()
"""


@pytest.mark.process
def test_files_the_environment_and_what_is_printed(tmp_path: Path) -> None:
    where = tmp_path / "where"
    where.mkdir()
    for name, arguments in (("one", []), ("two", ["last"])):
        own = tmp_path / "own"
        own.mkdir(exist_ok=True)
        with (own / f"{name}.txt").open("w") as output:
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM, str(own), *arguments],
                cwd=where,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
            )
        assert done.returncode == 0, done.stderr


OF_OTHERS = """\
import os, subprocess, sys
from pathlib import Path
from breakscan.prove.outside import OUTSIDE

os.mkdir("kept")
sys.pycache_prefix = os.path.join(os.getcwd(), "bytecode")
OUTSIDE.install(Path(sys.argv[1]))
OUTSIDE.put_back()
# As code in C++ does: no audit event says so.
subprocess.run(["touch", "kept/it.pt"], check=True)
assert "file kept/it.pt" in OUTSIDE.changes()[1]
OUTSIDE.put_back()
assert os.listdir("kept") == ["it.pt"], "another program may have made it"
assert OUTSIDE.changes() == ("", {})
"""


@pytest.mark.process
def test_files_of_unknown_origin_in_folders_are_seen_and_stay(tmp_path: Path) -> None:
    for name in ("own", "work"):
        (tmp_path / name).mkdir()
    words = [sys.executable, "-c", OF_OTHERS, str(tmp_path / "own")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(words, cwd=tmp_path / "work", capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
