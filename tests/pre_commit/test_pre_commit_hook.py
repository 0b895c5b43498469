"""The hook as pre-commit runs it: its own environment, a scratch repository, real commits' files."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import BREAKS, CLEAN
from tests.cli.test_diff_option import git
from tests.cli.test_notebooks import cell, notebook

pytestmark = pytest.mark.process

pytest.importorskip("pre_commit")

ROOT = Path(__file__).parents[2]
SHIPPED = ("breakscan", "rules", ".pre-commit-hooks.yaml", "LICENSE", "README.md", "pyproject.toml")
REPAIRABLE = """import torch


class Block(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.float() * 2
        print("block")
        return y
"""
RunHook = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working tree as a git repository that pre-commit can install from."""
    folder = tmp_path_factory.mktemp("breakscan")
    for name in SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    git(folder, "init", "-q", ".")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "hook")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a committed file that breaks; it is not what the next commit is about."""
    git(tmp_path, "init", "-q", ".")
    (tmp_path / "committed.py").write_text(BREAKS, encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


@pytest.fixture(scope="module")
def run_hook(hook_repository: Path, tmp_path_factory: pytest.TempPathFactory) -> RunHook:
    """Runs a hook in a project.  Its environment is installed once, as on the machine of a user."""
    folder = tmp_path_factory.mktemp("pre-commit")
    revision = git(hook_repository, "rev-parse", "HEAD").strip()
    hooks = [{"id": "breakscan-check"}, {"id": "breakscan-fix"}]
    config = folder / "config.yaml"
    # JSON is YAML.
    config.write_text(json.dumps({"repos": [{"repo": str(hook_repository), "rev": revision, "hooks": hooks}]}), "utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env["PRE_COMMIT_HOME"] = str(folder / "home")
    command = [sys.executable, "-m", "pre_commit", "run", "--config", str(config), "--verbose"]

    def run(project: Path, hook: str = "breakscan-check") -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, hook], cwd=project, env=env, capture_output=True, text=True)

    return run


def test_a_staged_break_fails_and_only_staged_files_are_read(project: Path, run_hook: RunHook) -> None:
    (project / "staged.py").write_text(BREAKS, encoding="utf-8")
    (project / "notes.md").write_text("if x.any():\n", encoding="utf-8")
    (project / "build").mkdir()
    (project / "build" / "generated.py").write_text(BREAKS, encoding="utf-8")
    git(project, "add", ".")
    (project / "unstaged.py").write_text(BREAKS, encoding="utf-8")
    done = run_hook(project)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "staged.py:6:12  warning  BRK101 branch-on-tensor" in done.stdout
    assert "1 warning in 1 file (" in done.stdout, "neither committed.py, unstaged.py nor build/ is read"


def test_a_clean_file_passes(project: Path, run_hook: RunHook) -> None:
    (project / "staged.py").write_text(CLEAN, encoding="utf-8")
    git(project, "add", ".")
    done = run_hook(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found in 1 file (" in done.stdout


def test_notebooks_are_read(project: Path, run_hook: RunHook) -> None:
    (project / "staged.ipynb").write_text(notebook(cell(BREAKS)), encoding="utf-8")
    git(project, "add", ".")
    done = run_hook(project)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "staged.ipynb:cell 1:6:12  warning  BRK101 branch-on-tensor" in done.stdout


def test_the_other_hook_rewrites_what_is_staged(project: Path, run_hook: RunHook) -> None:
    (project / "staged.py").write_text(REPAIRABLE, encoding="utf-8")
    git(project, "add", ".")
    done = run_hook(project, "breakscan-fix")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "files were modified by this hook" in done.stdout
    assert "is_compiling" in (project / "staged.py").read_text(encoding="utf-8")
    assert (project / "committed.py").read_text(encoding="utf-8") == BREAKS
