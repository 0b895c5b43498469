"""A folder for programs, programs that are recorded and explained, and the recording of ``zoo.py``, made once."""

from pathlib import Path
from typing import Any

import pytest
from programs import ZOO, Explain, Folder, Zoo, explained_records, run_recorded_here, warm_process

from breakscan.explanation.explanation import Explanation
from breakscan.recording.recording import read_recording


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Explain:
    """Runs a program under the recorder, and explains what it recorded.  With ``variables`` of the environment, it has
    a process of its own."""

    def run(program: str, folder: Path | None = None, **variables: str) -> Explanation:
        script = (folder or tmp_path_factory.mktemp("program")) / "program.py"
        recording = tmp_path_factory.mktemp("recording")
        script.write_text(program, encoding="utf-8")
        outcome = (
            run_recorded_here(script, recording, **variables) if variables else warm_process().run(script, recording)
        )
        assert outcome.status == 0, script.with_suffix(".err").read_text(encoding="utf-8")
        return explained_records(read_recording(recording), script, outcome)

    return run


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    folder = tmp_path_factory.mktemp("recording")
    outcome = run_recorded_here(ZOO, folder)
    assert outcome.status == 0
    return Zoo(read_recording(folder), ZOO.read_text(encoding="utf-8").splitlines(), outcome)


@pytest.fixture(scope="session")
def report(zoo: Zoo) -> Any:
    """The zoo's report as JSON."""
    return zoo.explain()
