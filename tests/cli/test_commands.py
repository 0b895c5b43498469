"""The command line as a whole: version, help, wrong commands, completion, what is missing, and progress."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import breakscan as package
from breakscan.cli.main import COMMANDS
from breakscan.cli.output import ProgressBar
from tests.cli.conftest import Run
from tests.report.report_results import Terminal


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(breakscan: Run, option: str) -> None:
    done = breakscan(option)
    assert (done.status, done.out) == (0, f"breakscan {package.__version__}\n")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_the_commands(breakscan: Run, option: str) -> None:
    done = breakscan(option)
    assert done.status == 0
    for command in COMMANDS:
        assert f"\n  {command} " in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(breakscan: Run, command: str) -> None:
    done = breakscan(command, "-h")
    assert done.status == 0
    assert done.out.startswith(f"Usage: breakscan {command} ")


def test_a_command_that_is_not_known(breakscan: Run) -> None:
    done = breakscan("chek", "src")
    assert done.status == 2
    assert done.err.splitlines()[-1] == "Error: there is no command 'chek': did you mean check?"


BASH = """
eval "$(_BREAKSCAN_COMPLETE=bash_source breakscan)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_breakscan_completion breakscan
echo "${COMPREPLY[@]}"
"""
CASES = [
    (("che",), ["check"]),
    (("check", "--fail-o"), ["--fail-on"]),
    (("check", "--format", "sa"), ["sarif"]),
    (("rule", "branch-on-te"), ["branch-on-tensor"]),
    (("rule", "brk10"), [f"BRK10{number}" for number in range(1, 10)]),
]


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``breakscan`` is this one."""
    script = tmp_path / "breakscan"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m breakscan "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.process
@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash(path: dict[str, str], typed: tuple[str, ...], offered: list[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    done = subprocess.run(["bash", "-c", BASH, "bash", "breakscan", *typed], env=path, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("explain", "model.py"),
        ("verify", "model.py"),
        ("bench", "-m json"),
        ("tune", "model.py"),
        ("rules replay", "BRK101"),
    ],
)
@pytest.mark.parametrize(
    ("version", "said"),
    [
        (
            None,
            "torch is not installed for {python}. Install it there (pip install 'torch>=2.11'), or run breakscan "
            "with the Python that your program uses: python -m breakscan {command} {arguments}",
        ),
        (
            "2.5.1+cu121",
            "torch 2.5.1+cu121 is too old for breakscan {command}: install torch 2.11 or later "
            "(pip install 'torch>=2.11')",
        ),
    ],
)
def test_without_a_suitable_torch_nothing_runs(
    breakscan: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    arguments: str,
    version: str | None,
    said: str,
) -> None:
    torch = tmp_path / "site" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("raise SystemExit(3)", encoding="utf-8")
    if version:
        (torch / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(torch.parent)
    done = breakscan(*command.split(), *arguments.split())
    message = said.format(python=sys.executable, command=command, arguments=arguments)
    assert (done.status, done.out, done.err) == (2, "", f"Error: {message}\n")


@pytest.mark.parametrize(
    ("command", "libraries", "room"), [("mcp", ("mcp",), "agents"), ("server", ("pygls", "lsprotocol"), "editor")]
)
def test_the_extra_that_is_missing_is_named(
    breakscan: Run, monkeypatch: pytest.MonkeyPatch, command: str, libraries: tuple[str, ...], room: str
) -> None:
    for name in [one for one in sys.modules if one.startswith((*libraries, f"breakscan.serve.{room}"))]:
        monkeypatch.delitem(sys.modules, name)
    for name in libraries:
        monkeypatch.setitem(sys.modules, name, None)
    done = breakscan(command)
    assert done.status == 2
    assert f"install breakscan with its extra '{command}', as in 'breakscan[{command}]'" in done.err


def test_the_root_is_a_folder(breakscan: Run) -> None:
    done = breakscan("mcp", "--root", "model.py")
    assert done.status == 2
    assert "is a file" in done.err


def shown(stream: io.StringIO, patience: float) -> str:
    with ProgressBar("Checking", stream, patience) as progress:
        for done in range(1, 4):
            progress(done, 3)
    return stream.getvalue()


def test_a_terminal_gets_one_and_is_clean_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), patience=0)
    assert "Checking" in text
    assert "3/3" in text
    assert text.endswith("\x1b[2K"), "the line is erased at the end"


@pytest.mark.parametrize(("stream", "patience"), [(Terminal(), 60), (io.StringIO(), 0)])
def test_short_work_and_a_log_get_none(stream: io.StringIO, patience: float) -> None:
    assert shown(stream, patience) == ""
