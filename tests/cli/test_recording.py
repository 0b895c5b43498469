"""``check`` and ``fix`` with what a recorded run saw."""

import json
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from breakscan.fix.planner import FROM_RECORDING
from breakscan.model.observations import TensorSeen, ValueSeen
from breakscan.recording.recording import RecordingWriter
from breakscan.recording.records import (
    Code,
    CompileStarted,
    FileSeen,
    GraphCompiled,
    GraphRan,
    ProcessStarted,
    ValuesMet,
    ValuesSeen,
)
from breakscan.recording.session import FORMAT, Manifest
from breakscan.source.regular_files import content_digest
from tests.cli.conftest import Run
from tests.conftest import Valid

HELPER = """import torch


def scale(x, limit, verbose=True):
    if verbose:
        print("scaled")
    y = x.sin()
    if y.sum() > limit:
        y = y / 2
    return y.cos()
"""
FLOAT = TensorSeen(("float32",), (2,), ((3, 5), (4, 4)), ("cpu",), (False,), (True,))
SEEN = {
    "x": ValueSeen(("torch.Tensor",), tensor=FLOAT),
    "limit": ValueSeen(("float",), ("1.0",)),
    "verbose": ValueSeen(("bool",), ("False",)),
}


def record(folder: Path, path: Path, names: dict[str, ValueSeen], name: str = "scale", line: int = 4) -> str:
    """Writes the recording of a run in which the compiler started at a function, forty times."""
    recording = folder / "run"
    recording.mkdir()
    manifest = Manifest(FORMAT, "0.1.0", ("train.py",), str(folder), "python", "host", 1, None, time.time())
    (recording / "run.json").write_text(json.dumps(asdict(manifest)), encoding="utf-8")
    writer = RecordingWriter(recording)
    code = Code(str(path), line, name)
    writer.write(ProcessStarted(1, 0, (), None, None, 0.0, 0.0, "2.13.0", "3.11", "torch", "lib", None, False))
    writer.write(CompileStarted("0/0", code, (), 0.0))
    writer.write(FileSeen(str(path), content_digest(path.read_bytes())))
    writer.write(ValuesSeen(0, code, name, names, False))
    writer.write(ValuesMet("0/0", (0,)))
    writer.write(GraphCompiled("0/0", code, 3, ("cpu",), 0, (), (), 0.0, 0.1))
    writer.write(GraphRan(0, 40, 1.0, 0, 0.0))
    writer.close()
    return str(recording)


@pytest.fixture
def helper(folder: Path) -> Path:
    for path in folder.glob("*.py"):
        path.unlink()
    path = folder / "helper.py"
    path.write_text(HELPER, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.breakscan]\ntarget-torch = "2.13"\n', encoding="utf-8")
    return path


def test_what_only_the_run_shows_is_found(breakscan: Run, folder: Path, helper: Path) -> None:
    assert breakscan("check", "helper.py").status == 0
    done = breakscan("check", "--recording", record(folder, helper, SEEN), "--format", "concise", "helper.py")
    assert done.status == 1
    assert "helper.py:8:8: warning BRK101" in done.out
    assert "(observed in 40 calls)" in done.out
    # The flag was off.
    assert "BRK401" not in done.out


def test_json_says_what_was_observed(breakscan: Run, valid: Valid, folder: Path, helper: Path) -> None:
    done = breakscan("check", "--recording", record(folder, helper, SEEN), "--format", "json", "helper.py")
    (finding,) = done.json["findings"]
    assert (finding["observed"], finding["confidence"]) == (40, "certain")
    valid(done.out, "check")


def test_what_the_run_contradicts_is_less_sure(breakscan: Run, folder: Path, helper: Path) -> None:
    helper.write_text(HELPER.replace("def scale", "@torch.compile\ndef scale"), encoding="utf-8")
    recording = record(folder, helper, SEEN)
    plain = {one["rule"]: one for one in breakscan("check", "--format", "json").json["findings"]}
    assert plain["BRK401"]["condition"] == "`verbose`"
    done = breakscan("check", "--recording", recording, "--format", "json")
    found = {one["rule"]: one for one in done.json["findings"]}
    assert found["BRK401"]["confidence"] == "conditional"
    assert found["BRK401"]["condition"] == "`verbose` and the values are not those of the recorded run"
    # An assumption of the code becomes an observation.
    assert (plain["BRK101"]["confidence"], plain["BRK101"]["observed"]) == ("likely", None)
    assert (found["BRK101"]["confidence"], found["BRK101"]["observed"]) == ("certain", 40)


def test_a_changed_file_has_nothing_of_it(breakscan: Run, folder: Path, helper: Path) -> None:
    recording = record(folder, helper, SEEN)
    helper.write_text(HELPER + "\n", encoding="utf-8")
    done = breakscan("check", "--recording", recording, "helper.py")
    assert done.status == 0
    assert "warning: helper.py has changed since it was recorded" in done.err


def test_a_file_that_moved_is_the_same(breakscan: Run, folder: Path, helper: Path) -> None:
    recording = record(folder, helper, SEEN)
    helper.rename(folder / "moved.py")
    done = breakscan("check", "--recording", recording, "moved.py", "--format", "json")
    assert [one["observed"] for one in done.json["findings"]] == [40]


def test_the_cache_tells_recordings_apart(breakscan: Run, folder: Path, helper: Path) -> None:
    recording = record(folder, helper, SEEN)
    for _ in range(2):
        assert breakscan("check", "helper.py").status == 0
        assert breakscan("check", "--recording", recording, "helper.py").status == 1


def test_a_folder_without_recording(breakscan: Run, folder: Path, helper: Path) -> None:
    (folder / "empty").mkdir()
    done = breakscan("check", "--recording", "empty", "helper.py")
    assert done.status != 0
    assert "holds no recording" in done.err


UPDATE = """import torch


def scale(x, limit, verbose=True):
    y = x * 2
    y[y < 1] += 3
    return y.cos()
"""


def test_an_edit_that_needs_the_run_assumes_its_values(
    breakscan: Run, valid: Valid, folder: Path, helper: Path
) -> None:
    helper.write_text(UPDATE, encoding="utf-8")
    recording = record(folder, helper, SEEN)
    (file,) = valid(breakscan("fix", "--recording", recording, "--format", "json", "helper.py").out, "fix")["files"]
    (held,) = file["unsafe"]
    assert held["finding"]["rewrite"]["safety"] == "unsafe"
    assert held["difference"].endswith(FROM_RECORDING.text)
    done = breakscan("fix", "--recording", recording, "--unsafe", "helper.py")
    assert "+    y = torch.where(y < 1, y + 3, y)\n" in done.out


def test_what_is_safe_without_the_run_stays_safe(breakscan: Run, folder: Path, helper: Path) -> None:
    typed = HELPER.replace("x, limit, verbose=True", "x: torch.Tensor, limit: float, verbose: bool = False")
    helper.write_text(typed.replace("def scale", "@torch.compile\ndef scale"), encoding="utf-8")
    plain = breakscan("fix", "--confidence", "possible", "--format", "json").json["files"]
    with_run = breakscan(
        "fix", "--recording", record(folder, helper, SEEN), "--confidence", "possible", "--format", "json"
    ).json["files"]
    safe = [file["safe"] for file in plain]
    assert any(safe)
    assert [file["safe"] for file in with_run] == safe


METHODS = """import torch


class Block:
    def __init__(self, config, limit):
        self.config = config
        self.limit = limit
        self.calls = False

    def scale(self, x):
        if self.config.verbose:
            print("scaled")
        if self.calls:
            print("called again")
        self.count()
        y = self.limit.sin()
        if self.limit.sum() > 1:
            y = y / 2
        return y.cos() + x

    def count(self):
        self.calls = True
"""


def test_attributes_of_the_object_count(breakscan: Run, folder: Path, helper: Path) -> None:
    helper.write_text(METHODS, encoding="utf-8")
    off = ValueSeen(("bool",), ("False",))
    config = ValueSeen(("settings.Config",), entries={"verbose": off})
    entries = {"config": config, "limit": ValueSeen(("torch.Tensor",), tensor=FLOAT), "calls": off}
    names = {"self": ValueSeen(("helper.Block",), entries=entries), "x": SEEN["x"]}
    recording = record(folder, helper, names, "Block.scale", 10)
    found = breakscan("check", "--recording", recording, "--format", "json").json["findings"]
    # What a method sets may be another value by then.
    assert [(one["rule"], one["site"]["line"]) for one in found] == [("BRK401", 14), ("BRK101", 17)]
    done = breakscan("fix", "--recording", recording, "--unsafe")
    assert "+        y = torch.where(self.limit.sum() > 1, y / 2, y)\n" in done.out


TWICE = """import torch


def classes(x, y):
    a = torch.unique(x)
    b = torch.unique(y)
    return a.size(0) + b.size(0)


def loss(x, y):
    return x.sin() * classes(x, y)
"""


def test_what_is_disabled_now_is_not_compiled_as_in_the_run(breakscan: Run, folder: Path, helper: Path) -> None:
    helper.write_text(TWICE, encoding="utf-8")
    seen = {name: ValueSeen(("torch.Tensor",), tensor=FLOAT) for name in ("x", "y")}
    recording = record(folder, helper, seen, "classes")
    done = breakscan("fix", "--recording", recording, "--rewrite", "disable-function")
    assert "+@torch.compiler.disable\n def classes(x, y):" in done.out
