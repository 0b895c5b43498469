"""Where reports go: standard output that takes no more, files that are replaced as a whole."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breakscan.report.formats import CHECK
from tests.cli.conftest import Run

LOG = Path(__file__).parents[1] / "data" / "traces" / "program-2.13.log"

needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")


def in_a_shell(command: str) -> subprocess.CompletedProcess[str]:
    command = command.replace("breakscan", f"{shlex.quote(sys.executable)} -m breakscan", 1)
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)


@pytest.mark.process
@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        "check .",
        "check --format sarif .",
        "config .",
        "fix --unsafe .",
        f"report {LOG}",
        f"report --format html {LOG}",
        f"report -o - {LOG}",
        "rules",
        "rule BRK101",
        "--help",
        "--version",
    ],
)
def test_a_full_disk(folder: Path, arguments: str) -> None:
    done = in_a_shell(f"breakscan {arguments} > /dev/full")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, line) == (74, "Error: cannot write to standard output: No space left on device")


@pytest.mark.process
@needs_full
@pytest.mark.parametrize("name", ["/dev/full", "link"])
def test_a_file_on_a_full_disk(folder: Path, name: str) -> None:
    (folder / "link").symlink_to("/dev/full")
    done = in_a_shell(f"breakscan check -o {name} .")
    assert (done.returncode, done.stdout) == (74, "")
    assert done.stderr == f"Error: cannot write {name}: No space left on device\n"


@pytest.mark.process
@needs_full
def test_standard_error_that_is_full_hides_no_status(folder: Path) -> None:
    assert in_a_shell("breakscan check --no-such-option 2> /dev/full").returncode == 2


@pytest.mark.process
def test_standard_output_that_is_closed(folder: Path) -> None:
    done = in_a_shell("breakscan check . >&-")
    assert (done.returncode, done.stderr) == (74, "Error: standard output is closed\n")


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("check -", 2),
        ("check .", 1),
        ("fix --unsafe .", 1),
        ("rules", 0),
        (f"report {LOG}", 0),
        pytest.param("explain -", 0, marks=pytest.mark.torch),
    ],
)
def test_standard_input_that_is_closed(folder: Path, arguments: str, status: int) -> None:
    done = in_a_shell(f"breakscan {arguments} <&-")
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    if arguments == "check -":
        assert done.stderr.endswith("Error: standard input is closed: - reads the code from it\n")


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no such limit")
@pytest.mark.parametrize("limit", [10, 16])
@pytest.mark.parametrize(("command", "status"), [("check --no-cache -j 4", 1), ("fix --unsafe --no-cache -j 4", 1)])
def test_few_open_files_are_enough(folder: Path, limit: int, command: str, status: int) -> None:
    for number in range(40):
        (folder / f"model{number}.py").write_text((folder / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
    done = in_a_shell(f"ulimit -n {limit}; breakscan {command} --format json .")
    assert (done.returncode, done.stderr) == (status, "")
    assert len({file["path"] for file in json.loads(done.stdout).get("files", [])}) in (0, 41)
    assert len({one["site"]["path"] for one in json.loads(done.stdout).get("findings", [])}) in (0, 41)


@pytest.mark.process
def test_a_reader_that_stops_early(folder: Path) -> None:
    done = in_a_shell("breakscan rules --format json | head -1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["model.py", "stub.pyi", "notes.ipynb", "link", "tools.toml"])
@pytest.mark.parametrize("command", [["check", "."], ["fix", "."], ["report", str(LOG)], ["explain", "model.py"]])
def test_a_source_file_is_not_replaced(breakscan: Run, folder: Path, name: str, command: list[str]) -> None:
    (folder / "link").symlink_to("model.py")
    (folder / name).touch()
    before = (folder / name).read_bytes()
    done = breakscan(command[0], "-o", name, *command[1:])
    assert done.status == 2
    assert f"{name} is a source file, which a report would replace: name another file" in done.err
    assert (folder / name).read_bytes() == before


def test_a_new_file_and_its_mode(breakscan: Run, folder: Path) -> None:
    mask = os.umask(0o027)
    try:
        assert breakscan("check", "-o", "report.txt", ".").status == 1
    finally:
        os.umask(mask)
    assert (folder / "report.txt").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == [".breakscan_cache", "clean.py", "model.py", "report.txt"]


def test_a_file_keeps_its_mode_and_a_link_stays_one(breakscan: Run, folder: Path) -> None:
    (folder / "real.txt").write_text("before", encoding="utf-8")
    (folder / "real.txt").chmod(0o604)
    (folder / "link.txt").symlink_to("real.txt")
    assert breakscan("check", "-o", "link.txt", ".").status == 1
    assert (folder / "link.txt").is_symlink()
    assert "model.py" in (folder / "real.txt").read_text(encoding="utf-8")
    assert (folder / "real.txt").stat().st_mode & 0o777 == 0o604


def test_a_report_that_fails_leaves_the_one_before(
    breakscan: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.txt").write_text("before", encoding="utf-8")

    def fails(name: str, report: object, stream: Any) -> None:
        stream.write("half")
        raise RuntimeError("mine")

    monkeypatch.setattr(type(CHECK), "write", lambda self, *arguments: fails(*arguments))
    assert breakscan("check", "-o", "report.txt", ".").status == 2
    assert (folder / "report.txt").read_text(encoding="utf-8") == "before"
    assert not list(folder.glob(".report*"))


@pytest.mark.process
def test_a_pipe_is_written_to(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = in_a_shell("breakscan check -o pipe . & cat pipe; wait")
    assert "model.py" in done.stdout
