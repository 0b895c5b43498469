"""Recordings and logs with values that neither torch nor breakscan writes.

``benchmarks/robustness_recordings.py`` found them.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from breakscan.model.dataclass_json import decoder
from breakscan.recording.recording import RecordingWriter
from breakscan.recording.session import FORMAT, MANIFEST, Manifest
from breakscan.report.formats import EXPLAIN
from tests.cli.conftest import Run

LOG = Path(__file__).parents[1] / "data" / "traces" / "program-2.13.log"
HUGE = str(10**400)
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("format_", EXPLAIN.names)
@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r'(?<="dynamo_cumulative_compile_time_us": )\d+', HUGE),
        (r'(?<="pytorch_version": )"[^"]*"', DEEP),
        (r'(?<="pytorch_version": )"[^"]*"', HUGE),
    ],
)
def test_a_record_of_a_log_with_such_a_value_does_not_end_the_report(
    breakscan: Run, folder: Path, pattern: str, value: str, format_: str
) -> None:
    text, count = re.subn(pattern, value, LOG.read_text(encoding="utf-8"), count=1)
    assert count == 1
    (folder / "trace.log").write_text(text, encoding="utf-8")
    done = breakscan("report", "--format", format_, "trace.log")
    assert (done.status, "Traceback" in done.err) == (0, False)


@pytest.mark.parametrize("name", ["started", "ended"])
def test_a_manifest_with_such_a_number_is_none(breakscan: Run, folder: Path, name: str) -> None:
    (folder / "recording").mkdir()
    manifest = asdict(Manifest(FORMAT, "0.1.0", ("a.py",), "/", "python", "host", 1, None, 0.0, 9.0, 9.0, 0))
    assert name in manifest, manifest
    text = json.dumps({**manifest, name: 0}).replace(f'"{name}": 0', f'"{name}": {HUGE}')
    (folder / "recording" / MANIFEST).write_text(text, encoding="utf-8")
    RecordingWriter(folder / "recording").close()
    done = breakscan("report", "recording")
    assert (done.status, "Traceback" in done.err) == (2, False)
    assert "run.json is damaged" in done.err


@dataclass
class Counted:
    name: str
    count: int | None = None


def test_a_field_that_came_later_may_be_missing() -> None:
    assert decoder(Counted)(["a"]) == Counted("a")
    for values in ([], ["a", 1, 2], ["a", "b"]):
        with pytest.raises(ValueError, match=r"'b'|Counted"):
            decoder(Counted)(values)
