"""Each kind of thing that a run can show is in the report, on a program that shows just that."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from behaviour import Behaviour, behaviours
from programs import Folder

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "behaviour",
    [pytest.param(one, marks=pytest.mark.slow if place % 4 else ()) for place, one in enumerate(behaviours())],
    ids=lambda b: b.name,
)
def test_the_report_says_it(behaviour: Behaviour, tmp_path: Path) -> None:
    shutil.copy(behaviour.path, tmp_path)
    env = {name: os.path.join(tmp_path, value) if value == "." else value for name, value in behaviour.env.items()}
    folder = Folder(tmp_path)
    done = folder.explain(
        "--format", "json", "--output", "report.json", *behaviour.options, behaviour.path.name, env=env
    )
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert behaviour.holds(report), done.err.decode()
    assert not any("failed" in notice for notice in report["notices"])
