"""Each kind of thing that a run can show is in the report, on a program that shows just that."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from behaviour import Behaviour, behaviours
from programs import Folder, explained_here

from breakscan.report.explain.json import explain_object

pytestmark = pytest.mark.torch


SOME = [behaviour for place, behaviour in enumerate(behaviours()) if place % 4 == 0]
"""Those of the tests before each merge; nightly, all run."""
IN_A_FORK = [one for one in SOME if not (one.env or one.options or one.name == "spawned_child")]
"""Those that need no process of their own."""


@pytest.mark.parametrize("behaviour", IN_A_FORK, ids=lambda b: b.name)
def test_the_explanation_says_it(behaviour: Behaviour, tmp_path: Path) -> None:
    report = explain_object(explained_here(tmp_path, behaviour.path.read_text(encoding="utf-8"), may_fail=True))
    assert behaviour.holds(report)
    assert not any("failed" in notice for notice in report["notices"])


@pytest.mark.parametrize(
    "behaviour",
    [pytest.param(one, marks=() if one in SOME and one not in IN_A_FORK else pytest.mark.slow) for one in behaviours()],
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
