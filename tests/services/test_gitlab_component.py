"""The script of the GitLab component, run as a runner runs it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import breakscan

FILE = Path(breakscan.__file__).parents[1] / "templates" / "breakscan.yml"

pytestmark = [pytest.mark.process, pytest.mark.skipif(not shutil.which("bash"), reason="the script is bash")]


def job(**inputs: str) -> dict[str, Any]:
    """The job, with the inputs put in as GitLab does it."""
    header, body = FILE.read_text(encoding="utf-8").split("\n---\n")
    values = {name: one.get("default") for name, one in yaml.safe_load(header)["spec"]["inputs"].items()} | inputs
    text = re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda match: str(values[match[1]]), body)
    found: dict[str, Any] = yaml.safe_load(text)["breakscan"]
    return found


def test_the_report_is_where_gitlab_looks(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\n@torch.compile\ndef f(x):\n    print(x)\n", encoding="utf-8")
    made = job(package="breakscan", arguments="--ignore BRK1 .")
    install, check = made["script"]
    assert install == 'python -m pip install --quiet "breakscan"'
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", check],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "CI_PROJECT_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    (found,) = json.loads((tmp_path / made["artifacts"]["reports"]["codequality"]).read_text(encoding="utf-8"))
    assert found["location"] == {"path": "model.py", "lines": {"begin": 4, "end": 4}}
    assert made["artifacts"]["when"] == "always"
