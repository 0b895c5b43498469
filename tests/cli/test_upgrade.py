"""``breakscan upgrade``, with an environment that is there already: installing one takes gigabytes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.process]
pytest.importorskip("torch")

FOLDER = "from breakscan.cli.upgrade import environment_folder; print(environment_folder('2.99'))"
PROGRAM = """
import sys, torch
def step(x):
    y = x.sin()
    if other and y.sum() > 0:
        y = y + 1
    return y
other = "2.99" in sys.prefix
print("the other" if other else "this")
torch.compile(step, backend="eager")(torch.ones(3))
"""


def test_what_is_worse_on_another_torch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    asked = subprocess.run([sys.executable, "-c", FOLDER], env=environment, capture_output=True, text=True, check=True)
    folder = Path(asked.stdout.strip())
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in paths))
    (folder / "complete").touch()

    command = [sys.executable, "-m", "breakscan", "upgrade", "--to", "2.99", "--format", "json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert [one["line"] for one in found["new"]] == [5]
    assert found["gone"] == found["changed"] == []
    assert "line 1 of what it prints: this → the other" in found["moved"]


@pytest.mark.parametrize(("version", "program"), [("newest", "train.py"), ("2.14", "missing.py")])
def test_what_it_cannot_run(tmp_path: Path, version: str, program: str) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "breakscan", "upgrade", "--to", version, program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
