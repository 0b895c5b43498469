"""What the report says of each kind of behaviour, by the recording of ``zoo.py``."""

import json
import sys
from typing import Any

import pytest
from programs import Zoo

from breakscan.recording.records import CompileStarted, HookFailed, Record

pytestmark = pytest.mark.torch

HAS_COLUMNS = sys.version_info >= (3, 11)


def breaks_at(report: Any, line: int) -> list[Any]:
    return [b for b in report["breaks"] if b["site"]["line"] == line and b["site"]["path"] == "zoo.py"]


def one_break(report: Any, line: int) -> Any:
    (found,) = breaks_at(report, line)
    return found


def frames_of(report: Any, function: str) -> list[Any]:
    return [frame for frame in report["frames"] if frame["function"] == function]


def recompiles_of(report: Any, function: str) -> list[Any]:
    return [recompile for recompile in report["recompiles"] if recompile["function"] == function]


def test_the_summary_adds_up(report: Any) -> None:
    summary = report["summary"]
    assert summary["break_sites"] == len(report["breaks"])
    assert summary["break_events"] == sum(b["count"] for b in report["breaks"])
    assert summary["eager_frames"] == sum(f["status"] == "eager" for f in report["frames"])
    assert summary["graphs"] == len(report["graphs"])
    assert summary["ops"] == sum(g["ops"] for g in report["graphs"])
    assert summary["recompiles"] == len(report["recompiles"])
    assert summary["compile_seconds"] > 0
    assert report["environment"]["device"] == "cpu"


def test_a_break_is_told_once_however_often_it_is_met(zoo: Zoo, report: Any) -> None:
    """Dynamo meets it as it inlines the helper, and again as it compiles the helper alone."""
    found = one_break(report, zoo.line("inlined-print"))
    assert found["count"] == 2
    assert len(found["compile_ids"]) == 2
    assert found["verdict"] == "splits"
    assert found["function"] == "helper"
    assert found["rule"] == "BRK401"
    assert found["gb_id"].startswith("GB")
    assert found["advice"]
    assert [frame["function"] for frame in found["stack"][-2:]] == ["calls_helper", "helper"]


def test_the_site_is_the_whole_condition(zoo: Zoo, report: Any) -> None:
    line = zoo.line("long-condition")
    found = one_break(report, line)
    assert found["rule"] == "BRK105"
    assert found["count"] == 2
    if HAS_COLUMNS:
        assert found["site"] == {"path": "zoo.py", "line": line, "column": 9, "end_line": line + 1, "end_column": 25}


def test_the_recompile_limit_is_told_and_is_no_recompile(zoo: Zoo, report: Any) -> None:
    recompiles = recompiles_of(report, "by_flag")
    assert [(r["old"], r["new"]) for r in recompiles] == [("'a'", "'b'"), ("'b'", "'c'")]
    assert {r["guard"] for r in recompiles} == {"flag == 'a'", "flag == 'b'"}
    assert {r["trigger"]["line"] for r in recompiles} == {zoo.line("by-flag-call")}
    assert {r["site"]["line"] for r in recompiles} == {zoo.line("by-flag")}
    assert len({r["cause"] for r in recompiles}) == 1
    (frame,) = frames_of(report, "by_flag")
    assert frame["over_limit"]
    assert "3 versions" in frame["reason"]


def test_one_changed_size_is_one_cause(zoo: Zoo, report: Any) -> None:
    """It recompiles the function, and the code after its break."""
    recompiles = recompiles_of(report, "by_size")
    assert len(recompiles) == 2
    assert len({r["cause"] for r in recompiles}) == 1
    first = recompiles[0]
    assert (first["guard"], first["old"], first["new"]) == ("x.shape[0] == 4", "4", "7")
    assert first["site"]["line"] == zoo.line("by-size")
    assert {r["trigger"]["line"] for r in recompiles} == {zoo.line("by-size-call")}


def test_recording_compiles_nothing_more(report: Any) -> None:
    """Dynamo knows ``disable(recursive=False)`` by the frame above it, which must not be one of ours."""
    compiled = {graph["function"] for graph in report["graphs"]}
    assert "calls_left_alone" in compiled
    assert "left_alone" not in compiled


def test_threads_are_recorded(zoo: Zoo, report: Any) -> None:
    assert one_break(report, zoo.line("in-thread"))["count"] >= 1


def test_ids_stay_apart_after_a_reset_and_a_fork(zoo: Zoo, report: Any) -> None:
    (after_reset,) = one_break(report, zoo.line("after-reset"))["compile_ids"]
    assert after_reset == "r1:0/0"
    (in_child,) = one_break(report, zoo.line("in-child"))["compile_ids"]
    assert in_child.startswith("p1:")


def test_no_name_of_dynamos_is_left(report: Any) -> None:
    assert "torch_dynamo_resume" not in json.dumps(report)
    assert "___stack" not in json.dumps(report)


def test_a_hook_that_failed_is_told(zoo: Zoo) -> None:
    def fail(record: Record) -> Record:
        failed = HookFailed("graphs", "KeyError: 'gone'", "graphs are missing")
        return failed if isinstance(record, CompileStarted) else record

    assert [notice for notice in zoo.explain(fail)["notices"] if "KeyError: 'gone'" in notice]
