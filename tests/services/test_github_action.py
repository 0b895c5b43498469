"""The steps of ``action.yml``, run as a runner runs them: each script with bash, with what GitHub sets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import breakscan

ROOT = Path(breakscan.__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
BREAKS = "import torch\n\n\n@torch.compile(backend='eager')\ndef f(x):\n    print(x)\n    return x\n"

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not shutil.which("bash") or not shutil.which("xargs"), reason="the steps are bash"),
]


class Runner:
    """A job on a runner, whose checkout is ``folder``.  What pip would install is here."""

    def __init__(self, folder: Path) -> None:
        self.temp, self.checkout = folder / "temp", folder / "checkout"
        for made in (self.temp, self.checkout):
            made.mkdir()
        self.summary, self.variables = folder / "summary.md", folder / "variables"
        self.environment = {
            **os.environ,
            "GITHUB_WORKSPACE": str(self.checkout),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_ENV": str(self.variables),
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": "Linux",
            "BREAKSCAN_PYTHON": sys.executable,
        }

    def step(self, number: int, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Runs one step of the action."""
        step = ACTION["runs"]["steps"][number]
        values = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
        own = {
            key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: values[match[1]], text)
            for key, text in step["env"].items()
        }
        assert step["shell"] == "bash"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.checkout,
            env=self.environment | own,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_check_annotates(runner: Runner) -> None:
    (runner.checkout / "a model.py").write_text(BREAKS, encoding="utf-8")
    (runner.checkout / "other.py").write_text(BREAKS, encoding="utf-8")
    done = runner.step(1, arguments="'a model.py' --select \"BRK4\"")
    assert done.returncode == 1
    assert "::warning title=BRK401 print,file=a model.py,line=6" in done.stdout
    assert "other.py" not in done.stdout


def test_arguments_are_words_and_no_commands(runner: Runner) -> None:
    (runner.checkout / "model.py").write_text("import torch\n", encoding="utf-8")
    done = runner.step(1, arguments="model.py $(touch made) ; touch made `touch made`")
    assert done.returncode == 2
    assert not (runner.checkout / "made").exists()


@pytest.mark.torch
def test_explain_annotates_and_writes_a_summary(runner: Runner) -> None:
    (runner.checkout / "train.py").write_text(f"{BREAKS}\n\nf(torch.ones(2))\n", encoding="utf-8")
    done = runner.step(1, command="explain", arguments="--max-breaks 0 train.py")
    assert done.returncode == 1, done.stderr
    assert "::warning title=BRK401 print,file=train.py,line=6" in done.stdout + done.stderr
    assert "BRK401" in runner.summary.read_text(encoding="utf-8")


def test_another_command_is_refused(runner: Runner) -> None:
    done = runner.step(1, command="verify")
    assert done.returncode == 2
    assert "::error title=breakscan::command is check or explain, not verify" in done.stdout


@pytest.mark.slow
def test_it_installs_itself(runner: Runner) -> None:
    done = runner.step(0)
    assert done.returncode == 0, done.stderr
    python = runner.variables.read_text(encoding="utf-8").strip().partition("=")[2]
    version = subprocess.run([python, "-m", "breakscan", "--version"], capture_output=True, text=True, check=True)
    assert breakscan.__version__ in version.stdout
