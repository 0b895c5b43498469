"""``--quiet`` and ``--fail-on``."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run

CHECK = ("check", "--format", "concise", "--target-torch", "2.13")
WARNING = "import torch\n\n\n@torch.compile\ndef f(x):\n    print(x)\n    return x\n"


@pytest.mark.parametrize("format_", ["full", "concise"])
def test_quiet_prints_the_findings_alone(breakscan: Run, folder: Path, format_: str) -> None:
    loud = breakscan("check", "--format", format_)
    quiet = breakscan("check", "--format", format_, "--quiet")
    assert loud.out.startswith(quiet.out.rstrip())
    assert (quiet.status, quiet.err) == (1, "")
    assert "BRK101" in quiet.out
    assert "in 2 files" not in quiet.out
    assert "breakscan rule" not in quiet.out
    assert breakscan("check", "-q", "--format", format_, "clean.py").out == ""


def test_quiet_fix_prints_the_diff_and_what_failed(breakscan: Run, folder: Path) -> None:
    loud, quiet = breakscan("fix", "--unsafe"), breakscan("fix", "--unsafe", "-q")
    assert quiet.out == loud.out
    assert loud.err
    assert quiet.err == ""
    (folder / "clean.py").write_text("def f(:\n", encoding="utf-8")
    assert breakscan("fix", "--unsafe", "-q").err.startswith("clean.py:1:7")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("error", 0),
        ("warning", 1),
        ("info", 1),
        ("BRK4", 1),
        ("print", 1),
        ("BRK101", 0),
        ("error,BRK401", 1),
        ("ALL", 1),
    ],
)
def test_what_a_run_fails_on(breakscan: Run, folder: Path, asked: str, status: int) -> None:
    (folder / "model.py").write_text(WARNING, encoding="utf-8")
    done = breakscan(*CHECK, "--fail-on", asked)
    assert done.status == status
    assert "BRK401" in done.out


def test_a_file_that_cannot_be_read_fails_a_run_in_any_case(breakscan: Run, folder: Path) -> None:
    (folder / "model.py").write_text("def f(:\n", encoding="utf-8")
    assert breakscan(*CHECK, "--fail-on", "BRK101").status == 1
    assert breakscan(*CHECK, "--fail-on", "BRK101", "gone").status == 2


def test_with_a_baseline_it_is_about_what_is_new(breakscan: Run, folder: Path) -> None:
    command = (*CHECK, "--baseline", "baseline.toml", "--fail-on", "BRK1")
    breakscan(*command)
    (folder / "clean.py").write_text(WARNING, encoding="utf-8")
    done = breakscan(*command)
    assert (done.status, done.err) == (0, "")
    assert "BRK401" in done.out
    assert breakscan(*command[:-1], "BRK4").status == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--exit-zero", "--fail-on", "error"), "--exit-zero and --fail-on cannot be combined"),
        (("--fail-on", "branch-on-tenso"), "no rule is called 'branch-on-tenso': did you mean branch-on-tensor?"),
        (("--fail-on", ","), "needs at least one word"),
    ],
)
def test_options_that_cannot_be_used(breakscan: Run, folder: Path, options: tuple[str, ...], said: str) -> None:
    done = breakscan(*CHECK, *options)
    assert done.status == 2
    assert said in " ".join(done.err.split())
