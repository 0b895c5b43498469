"""``breakscan report``: the report of a saved recording or a log of torch's trace."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from breakscan.cli.report import report
from breakscan.report.formats import EXPLAIN
from tests.cli.conftest import Run
from tests.conftest import Valid

DATA = Path(__file__).parents[1] / "data" / "traces"
DOCS = Path(__file__).parents[2] / "docs"
LOG = str(DATA / "program-2.13.log")


def test_a_log(breakscan: Run) -> None:
    done = breakscan("report", LOG)
    assert (done.status, done.err) == (0, "")
    line, headline = done.out.splitlines()[1:3]
    assert line.endswith(f"torch trace of {LOG} · 1.6 s compiling · torch 2.13.0+cpu, cpu")
    failed, _, rest = headline.partition(".  ")
    assert failed == "2 functions fail to compile"
    assert rest.startswith("4 sites break the graph 5 times: 7 graphs of 7 operations.")
    assert '\n     8 │ print("from the helper")\n' in done.out
    assert "exit status" not in done.out


def test_the_json_follows_its_schema(breakscan: Run, valid: Valid) -> None:
    for path in (LOG, str(DATA / "ranks")):
        valid(breakscan("report", "--format", "json", path).out, "explain")


@pytest.mark.parametrize("format_", EXPLAIN.names)
def test_every_format(breakscan: Run, folder: Path, format_: str) -> None:
    done = breakscan("report", "--format", format_, "-o", "out", str(DATA / "ranks"))
    assert (done.status, done.out) == (0, "")
    assert "ranks.py" in (folder / "out").read_text(encoding="utf-8")


def test_source_root_finds_the_files(breakscan: Run, folder: Path) -> None:
    shutil.copy(DATA / "program.py", folder)
    done = breakscan("report", "--source-root", "/tmp/project=.", LOG)
    assert '     8 │     print("from the helper")\n       │     ━━━━' in done.out
    assert "program.py:8:5  splits the graph 2×" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--show", "all", "--format", "markdown", LOG), "--show goes with --format terminal"),
        *((("--source-root", one, LOG), f"{one!r} is not of the form FOLDER or OLD=NEW") for one in ("", "=/b", "/a=")),
        (("--source-root", "no/such", LOG), "there is no folder 'no/such'; use OLD=NEW for files that were below OLD"),
        (("gone",), "'gone' does not exist"),
        ((), "name a recording or a log of torch's, or --last"),
        (("model.py",), "Error: model.py is no log of torch's trace: "),
        (("logs",), "Error: logs holds no log of torch's trace (dedicated_log_torch_trace_*.log, "),
        (("empty",), "dedicated_log_torch_trace_x.log: empty, as nothing was compiled"),
        (("empty/dedicated_log_torch_trace_x.log",), "dedicated_log_torch_trace_x.log: empty, as nothing was compiled"),
    ],
)
def test_what_cannot_be_reported(breakscan: Run, folder: Path, arguments: tuple[str, ...], words: str) -> None:
    for name in ("logs", "empty"):
        (folder / name).mkdir()
    (folder / "empty" / "dedicated_log_torch_trace_x.log").touch()
    done = breakscan("report", *arguments)
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_gates(breakscan: Run) -> None:
    assert breakscan("report", "--max-breaks", "6", LOG).status == 0
    done = breakscan("report", "--max-breaks", "5", LOG)
    assert done.status == 1
    assert "--max-breaks" in done.err
    assert breakscan("report", "--fail-on", "BRK401", LOG).status == 1


def test_a_log_in_which_nothing_was_compiled(breakscan: Run, folder: Path) -> None:
    (folder / "a.log").write_text('V0401 12:34:56.000000 7 torch/x.py:1] {"str": ["/app/a.py", 0]}\n', "utf-8")
    done = breakscan("report", "a.log")
    assert done.status == 0
    assert "Nothing was compiled in what the trace holds." in done.out


def test_damage_is_told(breakscan: Run, folder: Path) -> None:
    text = Path(LOG).read_bytes()
    (folder / "cut.log").write_bytes(text[: len(text) // 2])
    done = breakscan("report", "cut.log")
    assert done.status == 0
    assert "Note: cut.log ends within the record at line " in done.out


@pytest.mark.process
def test_it_needs_no_torch(folder: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from breakscan.__main__ import main; "
        f"sys.exit(main(['report', {LOG!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=folder, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 sites break" in done.stdout


@pytest.mark.torch
def test_a_kept_recording(process: Run, breakscan: Run, folder: Path) -> None:
    shutil.copy(DATA / "program.py", folder)
    done = process("explain", "--save", "run", "-o", "report.txt", "program.py", env={"OMP_NUM_THREADS": "1"})
    assert done.status == 0
    again = breakscan("report", "run")
    assert (again.status, again.err) == (0, "")
    assert again.out == (folder / "report.txt").read_text(encoding="utf-8")
    (folder / "src").mkdir()
    os.rename(folder / "program.py", folder / "src" / "program.py")
    moved = breakscan("report", "--source-root", f"{folder}={folder / 'src'}", "run")
    assert "src/program.py:8:5  splits the graph 2×" in moved.out
    both = breakscan("report", "run", "run")
    assert both.status == 2
    assert "one recording makes one report" in both.err


HIDES = """import torch


@torch.compile(backend="eager")
def f(x):
    for _ in range(2):
        if x.sum() > 0:
            x = x + 1
    return x * x.max().item()


f(torch.ones(3))
"""


@pytest.mark.torch
def test_a_kept_recording_tells_what_a_break_hides(process: Run, breakscan: Run, folder: Path) -> None:
    (folder / "hides.py").write_text(HIDES, encoding="utf-8")
    first = process("explain", "--save", "run", "-o", "-", "hides.py", env={"OMP_NUM_THREADS": "1"})
    again = breakscan("report", "run")
    assert "It hides 1 more finding (line 9), which appears once this one is fixed." in again.out
    assert again.out == first.out
    (folder / "hides.py").write_text(f"{HIDES}# changed\n", encoding="utf-8")
    assert "It hides" not in breakscan("report", "run").out


def test_the_page_names_every_option() -> None:
    page = (DOCS / "report.md").read_text(encoding="utf-8")
    for parameter in report.params:
        assert not parameter.opts[0].startswith("-") or any(f"`{option}" in page for option in parameter.opts)
