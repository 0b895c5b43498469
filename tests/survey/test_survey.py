"""``breakscan survey`` as people use it, with the real Dynamo."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Valid

pytestmark = [pytest.mark.torch, pytest.mark.process]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def survey(project: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "breakscan", "survey", *arguments]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)

    return run


def manifest(project: Path, text: str) -> None:
    head = 'backends = ["eager"]\nseconds = 60\nmemory = "4 GiB"\n'
    (project / "survey.toml").write_text(head + text, encoding="utf-8")


def model(build: str, **keys: str) -> str:
    return f'[[model]]\nbuild = "{build}"\n' + "".join(f'{key} = "{value}"\n' for key, value in keys.items())


def units(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)["units"]}


def test_what_units_have_in_common(project: Path, survey: Run, valid: Valid) -> None:
    manifest(project, model("zoo:build", names="zoo:names", name="zoo"))
    done = survey("run", "survey.toml", "--format", "json")
    told = valid(done.stdout, "survey")
    found = units(done)
    assert set(found) == {"zoo/small", "zoo/large"}
    assert {(one["status"], one["breaks"]) for one in found.values()} == {("ok", 1)}
    assert [(one["rule"], one["units"], one["places"]) for one in told["causes"]] == [("BRK101", 2, 1)]
    assert [(one["path"], one["line"], one["units"]) for one in told["places"]] == [("zoo.py", 15, 2)]
    assert [(one["units"], one["ran"], one["broken"]) for one in told["conditions"]] == [(2, 2, 2)]
    again = survey("run", "survey.toml", "--format", "json")
    assert (again.stdout, again.stderr) == (done.stdout, "")


@pytest.mark.slow
def test_whatever_goes_wrong_is_a_result(project: Path, survey: Run) -> None:
    text = "".join(model(f"zoo:{name}") for name in ("whole", "hangs", "crashes", "lacks", "fails"))
    manifest(project, text)
    path = project / "survey.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("seconds = 60", "seconds = 30"), encoding="utf-8")
    found = units(survey("run", "survey.toml", "--format", "json"))
    assert {name: one["status"] for name, one in found.items()} == {
        "zoo:whole": "ok",
        "zoo:hangs": "timeout",
        "zoo:crashes": "crashed",
        "zoo:lacks": "missing",
        "zoo:fails": "failed",
    }
    assert "must have same reduction dim" in found["zoo:fails"]["said"]
    assert "report.json" not in found["zoo:fails"]["said"]
    again = survey("run", "survey.toml", "--again", "failed", "--again", "missing")
    assert sorted(line.split("] ")[1].split(" ")[0] for line in again.stderr.splitlines()) == ["zoo:fails", "zoo:lacks"]


def test_a_survey_that_is_killed_goes_on(project: Path, survey: Run) -> None:
    manifest(project, model("zoo:build", names="zoo:names", name="zoo") + model("zoo:whole"))
    command = [sys.executable, "-m", "breakscan", "survey", "run", "survey.toml", "-j", "1"]
    for killed in (1, 2):
        with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            first = process.stderr.readline()
            time.sleep(1)  # the next one has begun
            process.send_signal(signal.SIGKILL)
        assert first.startswith(f"[{killed} of 3]")
        until = time.monotonic() + 10
        while time.monotonic() < until and _running(project):
            time.sleep(0.2)
        assert not _running(project), "what it started goes on"
    done = survey("run", "survey.toml", "--format", "json")
    assert len(done.stderr.splitlines()) == 3 - 2
    assert len(json.loads(done.stdout)["units"]) == 3
    with sqlite3.connect(project / "survey.db") as database:
        assert database.execute("SELECT count(*), count(DISTINCT key) FROM results").fetchone() == (3, 3)


def _running(folder: Path) -> list[str]:
    """The processes that work in a folder."""
    return [name for name in filter(str.isdigit, os.listdir("/proc")) if _works_in(name) == str(folder)]


def _works_in(process: str) -> str | None:
    try:
        return os.readlink(f"/proc/{process}/cwd")
    except OSError:
        return None


@pytest.mark.slow
def test_what_has_changed(project: Path, survey: Run, valid: Valid) -> None:
    manifest(project, model("zoo:branchy") + model("zoo:whole"))
    survey("run", "survey.toml", "--store", "before.db")
    zoo = project / "zoo.py"
    worse = zoo.read_text(encoding="utf-8").replace("        return y\n", "        print(y)\n        return y\n")
    zoo.write_text(worse, encoding="utf-8")
    survey("run", "survey.toml", "--store", "after.db")
    done = survey("diff", "before.db", "after.db")
    assert done.returncode == 1
    assert " ".join(done.stdout.split()) == (
        "1 unit worse, 0 changed otherwise, 1 as before. "
        "worse: BRK401: breaks 0 → 1 in zoo:branchy (eval eager cpu): Branchy.forward (zoo.py)"
    )
    better = survey("diff", "after.db", "before.db", "--format", "json")
    assert better.returncode == 0
    told = valid(better.stdout, "survey-diff")
    assert [one["regression"] for one in told["changes"]] == [False]
    assert (
        survey("diff", "before.db@2.99", "after.db").stdout
        == "0 units worse, 0 changed otherwise, 0 as before, 2 only after.\n"
    )
