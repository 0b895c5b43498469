"""Starting costs little, and the static half never loads what it does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

HEAVY = {"torch", "numpy", "jinja2", "libcst", "transformers"}


def modules_after(folder: Path, *arguments: str) -> set[str]:
    """The top-level modules that are loaded when a command line has run."""
    code = (
        "import sys; from breakscan.__main__ import main\n"
        f"status = main({arguments!r})\n"
        "print(*sys.modules, file=sys.stderr, sep='\\n'); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("format_", ["full", "concise", "json", "github"])
def test_check_loads_neither_torch_nor_numpy_nor_jinja2(folder: Path, format_: str) -> None:
    loaded = modules_after(folder, "check", "--format", format_)
    assert "breakscan.check.pipeline.check" in loaded
    assert not HEAVY & loaded
    assert not {name for name in loaded if name.startswith(("breakscan.recording", "breakscan.cli.explain"))}


def test_check_loads_rich_only_to_show_findings(folder: Path) -> None:
    """And never what only other options or the explanations of runs need."""
    assert "rich" not in modules_after(folder, "check", "--format", "json")
    loaded = modules_after(folder, "check", "--ignore", "ALL")
    assert not {"rich", "subprocess", "breakscan.model.problem"} & loaded


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_version_and_help_load_next_to_nothing(folder: Path, arguments: list[str]) -> None:
    loaded = modules_after(folder, *arguments)
    assert not {"rich", "libcst", "pathspec", "tomllib", *HEAVY} & loaded
    ours = {name for name in loaded if name.startswith("breakscan")}
    assert ours == {
        "breakscan",
        "breakscan.__main__",
        "breakscan.cli",
        "breakscan.cli.main",
        "breakscan.cli.exit_status",
    }


@pytest.mark.parametrize("arguments", [["rules"], ["rule", "BRK101"]])
def test_showing_rules_loads_no_torch(folder: Path, arguments: list[str]) -> None:
    assert not HEAVY & modules_after(folder, *arguments)


def test_the_commands_are_the_same_either_way(folder: Path) -> None:
    script = Path(sys.executable).parent / "breakscan"
    if not script.exists():
        pytest.skip("breakscan is not installed as a script here")
    by_script, by_module = (
        subprocess.run([*command, "check", "-h"], capture_output=True, text=True, cwd=folder)
        for command in ([script], [sys.executable, "-m", "breakscan"])
    )
    assert by_script.stdout == by_module.stdout
    assert by_script.stdout.startswith("Usage: breakscan check ")


def test_a_kept_result_needs_no_interpreter(folder: Path) -> None:
    modules_after(folder, "check", "--cache-dir", "kept")
    loaded = modules_after(folder, "check", "--cache-dir", "kept")
    assert "breakscan.check.pipeline.cache" in loaded
    assert not [name for name in loaded if name.startswith("breakscan.check.interpreter.")]
