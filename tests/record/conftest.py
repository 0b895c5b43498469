"""A folder for programs, and the recording of ``zoo.py``, made once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from programs import ZOO, Folder, Zoo, environment

from breakscan.record.launch import run_recorded
from breakscan.record.recording import read_recording


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("recording")
    before, wanted = dict(os.environ), environment()
    try:
        os.environ.clear()
        os.environ.update(wanted)
        outcome = run_recorded([str(ZOO)], folder)
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert outcome.status == 0
    return Zoo(read_recording(folder), ZOO.read_text(encoding="utf-8").splitlines(), outcome)


@pytest.fixture(scope="session")
def report(zoo: Zoo) -> Any:
    """The zoo's report as JSON."""
    return zoo.explain()
