"""A recording or a log can come from anyone: what it names is opened only where the user allows it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.explanation.from_recording import Relocation
from breakscan.recording.recording import RecordingWriter
from breakscan.recording.session import FORMAT, MANIFEST, SOURCES, Manifest
from breakscan.recording.tracelog import read_trace
from breakscan.report.formats import EXPLAIN
from breakscan.source.source_files import LARGEST
from tests.cli.conftest import Run

TRACES = Path(__file__).parents[1] / "data" / "traces"
LOG = TRACES / "program-2.13.log"
PROGRAM = "/tmp/project/program.py"
CANARY = "the_secret_of_line"
SECRET = "".join(f"{CANARY}_{line} = {line}\n" for line in range(1, 90))
RECORDS = next(iter(read_trace([LOG]).processes)).recording
SECONDS = 60
Kind = Callable[[Path, str], Path]


def log(folder: Path, path: str) -> Path:
    """A log of torch that names this file for the program."""
    made = folder / "trace.log"
    text = LOG.read_text(encoding="utf-8").replace(json.dumps(PROGRAM), json.dumps(path))
    made.write_text(text.replace(PROGRAM, path), encoding="utf-8", errors="surrogateescape")
    return made


def recording(folder: Path, path: str) -> Path:
    """A recording of the same run."""
    made = folder / "recording"
    made.mkdir()
    manifest = Manifest(FORMAT, "0.1.0", ("program.py",), "/", "python", "host", 1, None, 0.0, 9.0, 9.0, 0)
    (made / MANIFEST).write_text(json.dumps(asdict(manifest)), encoding="utf-8")
    writer = RecordingWriter(made)
    place = Relocation({os.path.dirname(PROGRAM): "\0"})
    for one in RECORDS():
        # What lies below the folder is named anew, in one piece.
        writer.write(_named(place.record(one), "\0/program.py", path))
    writer.close()
    return made


def _named(value: Any, old: str, new: str) -> Any:
    if value == old:
        return new
    if isinstance(value, tuple):
        return tuple(_named(item, old, new) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return replace(value, **{name: _named(getattr(value, name), old, new) for name in value.__dataclass_fields__})
    return value


KINDS = pytest.mark.parametrize("kind", [log, recording], ids=["log", "recording"])


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, beside a folder with a secret."""
    inside = folder / "project"
    inside.mkdir()
    (folder / "outside").mkdir()
    (folder / "outside" / "secret.py").write_text(SECRET, encoding="utf-8")
    (folder / "outside" / "passwd").write_text(SECRET, encoding="utf-8")
    monkeypatch.chdir(inside)
    return inside


def of_all_formats(breakscan: Run, made: Path, *options: str) -> str:
    told = []
    for format_ in EXPLAIN.names:
        done = breakscan("report", "--format", format_, *options, str(made))
        assert done.status == 0, done.err
        told.append(done.out + done.err)
    return "\n".join(told)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def in_a_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "breakscan", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


@KINDS
class TestWhatIsNotOpened:
    @pytest.mark.parametrize(
        "path",
        [
            "{outside}/passwd",
            "{outside}/secret.py",
            "{project}/../outside/secret.py",
            "../outside/secret.py",
            "{project}/./a/../../outside/secret.py",
            "{project}-other/secret.py",
        ],
    )
    def test_a_file_outside(self, breakscan: Run, project: Path, kind: Kind, path: str) -> None:
        shutil.copytree(project.parent / "outside", project.parent / "project-other")
        named = path.format(outside=project.parent / "outside", project=project)
        told = of_all_formats(breakscan, kind(project, named))
        assert CANARY not in told
        assert "outside the working directory: --source-root FOLDER allows" in in_one_line(told)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("link.py", "outside the working directory"),
            ("package/secret.py", "outside the working directory"),
            ("notes.txt", "not a Python file"),
            ("linked.py", "not a Python file"),
            ("folder.py", "not a regular file"),
            ("huge.py", "larger than 16 MiB"),
        ],
    )
    def test_links_and_what_is_no_program(
        self, breakscan: Run, project: Path, kind: Kind, name: str, words: str
    ) -> None:
        (project / "link.py").symlink_to(project.parent / "outside" / "secret.py")
        (project / "package").symlink_to(project.parent / "outside")
        (project / "notes.txt").write_text(SECRET, encoding="utf-8")
        (project / "linked.py").symlink_to("notes.txt")
        (project / "folder.py").mkdir()
        with (project / "huge.py").open("w", encoding="utf-8") as file:
            file.write(SECRET)
            file.truncate(LARGEST + 1)
        told = of_all_formats(breakscan, kind(project, str(project / name)))
        assert CANARY not in told
        assert words in in_one_line(told)

    @pytest.mark.process
    @pytest.mark.parametrize("path", ["/dev/zero", "zero.py", "pipe.py", "/dev/stdin"])
    def test_what_never_ends(self, project: Path, kind: Kind, path: str) -> None:
        os.mkfifo(project / "pipe.py")
        (project / "zero.py").symlink_to("/dev/zero")
        done = in_a_process("report", "--format", "html", str(kind(project, path)))
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.process
    def test_nor_does_a_folder_that_is_allowed_allow_that(self, project: Path, kind: Kind) -> None:
        os.mkfifo(project / "pipe.py")
        done = in_a_process("report", "--source-root", "/", str(kind(project, str(project / "pipe.py"))))
        assert done.returncode == 0
        assert "not a regular file" in in_one_line(done.stdout)

    def test_diff(self, breakscan: Run, project: Path, kind: Kind) -> None:
        made = kind(project, str(project.parent / "outside" / "secret.py"))
        if kind is log:
            report = project / "report.json"
            assert breakscan("report", "--format", "json", "-o", str(report), str(made)).status == 0
            made = report
        done = breakscan("diff", "--format", "json", str(made), str(made))
        assert done.status == 0, done.err
        assert CANARY not in done.out + done.err


@KINDS
class TestWhatIsOpened:
    def test_below_the_working_directory(self, breakscan: Run, project: Path, kind: Kind) -> None:
        shutil.copy(TRACES / "program.py", project)
        for path in (str(project / "program.py"), "program.py"):
            told = breakscan("report", str(kind(project, path))).out
            assert "program.py:8:5  splits the graph" in told
            assert "source not read" not in in_one_line(told)
            shutil.rmtree(project / "recording", ignore_errors=True)

    @pytest.mark.parametrize("is_moved", [False, True])
    def test_below_a_folder_that_is_allowed(self, breakscan: Run, project: Path, kind: Kind, is_moved: bool) -> None:
        outside = project.parent / "outside"
        shutil.copy(TRACES / "program.py", outside)
        ran_in = "/elsewhere" if is_moved else outside
        made = str(kind(project, f"{ran_in}/program.py"))
        root = f"/elsewhere={outside}" if is_moved else str(outside)
        assert "program.py:8:1  splits the graph" in breakscan("report", made).out
        assert "program.py:8:5  splits the graph" in breakscan("report", "--source-root", root, made).out


def test_a_file_with_other_lines_than_the_log_has(breakscan: Run, project: Path) -> None:
    (project / "program.py").write_text(SECRET, encoding="utf-8")
    told = of_all_formats(breakscan, log(project, str(project / "program.py")))
    assert CANARY not in told
    assert "changed since the run" in in_one_line(told)


class TestSourcesInTheRecording:
    @pytest.fixture
    def kept(self, project: Path) -> Path:
        made = recording(project, PROGRAM)
        text = (TRACES / "program.py").read_text(encoding="utf-8")
        (made / SOURCES).write_text(json.dumps({PROGRAM: text}), encoding="utf-8")
        return made

    def test_are_shown_wherever_the_files_are(self, breakscan: Run, kept: Path) -> None:
        told = breakscan("report", str(kept)).out
        assert "program.py:8:5  splits the graph" in told
        assert "source not read" not in in_one_line(told)

    def test_are_shown_below_a_folder_that_stands_for_theirs(self, breakscan: Run, kept: Path) -> None:
        done = breakscan("report", "--source-root", "/tmp/project=.", str(kept))
        assert "\nprogram.py:8:5  splits the graph" in done.out

    def test_steer_no_terminal_and_run_in_no_page(self, breakscan: Run, kept: Path) -> None:
        hostile = "\n".join(f"print('\x1b[2J\x9b31m[red]</script><script>alert({n})</script>')" for n in range(90))
        (kept / SOURCES).write_text(json.dumps({PROGRAM: hostile}), encoding="utf-8")
        told = of_all_formats(breakscan, kept)
        assert "alert(7)" in told
        assert not {"\x1b", "\x9b"} & set(told)
        assert "<script>alert" not in breakscan("report", "--format", "html", str(kept)).out

    @pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "[" * 100_000, "\xff"])
    def test_that_are_damaged(self, breakscan: Run, kept: Path, text: str) -> None:
        (kept / SOURCES).write_bytes(text.encode("latin-1"))
        done = breakscan("report", str(kept))
        assert (done.status, done.out) == (2, "")
        assert done.err == f"Error: {kept / SOURCES} is damaged, so the recording cannot be read\n"

    @pytest.mark.process
    @pytest.mark.parametrize(
        ("name", "command", "target"),
        [(MANIFEST, "report", "/dev/zero"), (SOURCES, "report", None), ("1.jsonl", "diff", None)],
    )
    def test_a_part_that_is_no_regular_file(self, kept: Path, name: str, command: str, target: str | None) -> None:
        (kept / name).unlink(missing_ok=True)
        if target:
            (kept / name).symlink_to(target)
        else:
            os.mkfifo(kept / name)
        done = in_a_process(command, *[str(kept)] * (2 if command == "diff" else 1))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"Error: cannot read {kept / name}: not a regular file\n"


@pytest.mark.torch
def test_what_explain_saves_shows_its_sources_elsewhere(process: Run, breakscan: Run, folder: Path) -> None:
    """Those of libraries, too, whose files lie outside the working directory."""
    (folder / "lib" / "site-packages").mkdir(parents=True)
    shutil.copy(TRACES / "program.py", folder / "lib" / "site-packages" / "library.py")
    (folder / "train.py").write_text("import library\nlibrary.main()\n", encoding="utf-8")
    paths = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder / "lib" / "site-packages")}
    done = process("explain", "--save", "run", "-o", "report.html", "--format", "html", "train.py", env=paths)
    assert done.status == 0, done.err
    assert str(folder / "lib" / "site-packages" / "library.py") in json.loads((folder / "run" / SOURCES).read_text())
    before = breakscan("report", "run").out
    shutil.rmtree(folder / "lib")
    assert "library.py:8:5  splits the graph" in before
    assert breakscan("report", "run").out == before
    for format_ in EXPLAIN.names:
        assert breakscan("report", "--format", format_, "run").status == 0


@KINDS
@pytest.mark.parametrize("torch", ["abc", "9" * 5000 + ".1", "2.x", "²⁵.¹", "\x1b[2J"])
@pytest.mark.parametrize("options", [(), ("--format", "html")])
def test_a_torch_version_that_is_none(
    breakscan: Run, project: Path, kind: Kind, torch: str, options: tuple[str, ...]
) -> None:
    made = kind(project, PROGRAM)
    for file in [made] if made.is_file() else list(made.glob("*.jsonl")):
        text = file.read_text(encoding="utf-8").replace('"2.13.0+cpu"', json.dumps(torch))
        file.write_text(text.replace("torch version: 2.13.0+cpu", f"torch version: {torch}"), encoding="utf-8")
    done = breakscan("report", *options, str(made))
    assert done.status == 0, done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.out + done.err
    if kind is recording:
        assert "is no version of torch" in in_one_line(done.out)


def test_a_version_of_breakscan_that_steers_the_terminal(breakscan: Run, project: Path) -> None:
    made = recording(project, PROGRAM)
    manifest = json.loads((made / MANIFEST).read_text(encoding="utf-8"))
    (made / MANIFEST).write_text(json.dumps({**manifest, "format": 99, "breakscan": "\x1b[2J"}), encoding="utf-8")
    for arguments in (["report", str(made)], ["diff", str(made), str(made)]):
        done = breakscan(*arguments)
        assert done.status == 2
        assert "\x1b" not in done.err
