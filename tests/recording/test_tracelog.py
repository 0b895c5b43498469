"""What is read off the logs that TORCH_TRACE writes, whole or damaged.

The logs in ``tests/data/traces`` are real; ``make.py`` there makes them.
"""

import hashlib
import io
import json
import os
import random
import re
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from programs import Folder

from breakscan.explanation.from_recording import Relocation, explain_logs
from breakscan.model.torch_versions import SUPPORTED
from breakscan.recording.parsers.graphs import devices_of, nodes_of
from breakscan.recording.records import (
    BreakSeen,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    GraphCompiled,
    RecompileSeen,
)
from breakscan.recording.tracelog import Fault, LogRecord, Trace, logs_in, read_log, read_trace
from breakscan.report.explain import ExplainReport
from breakscan.report.explain.json import explain_object
from breakscan.report.explain.terminal import write_explanation
from breakscan.rulebook.library import load_library
from breakscan.source.source_files import SourceFiles

DATA = Path(__file__).parents[1] / "data" / "traces"
LOG = DATA / "program-2.13.log"
RANKS = sorted((DATA / "ranks").glob("*.log"))


def record(metadata: Any, payload: str | None = None, *, pid: int = 7, second: float = 0.0, checksum: str = "") -> str:
    if payload is not None:
        metadata = metadata | {"has_payload": checksum or hashlib.md5(payload.encode()).hexdigest()}
    indented = "" if payload is None else "".join(f"\n\t{line}" for line in payload.split("\n"))
    return f"V0401 12:34:{second:09.6f} {pid} torch/_dynamo/x.py:1] {json.dumps(metadata)}{indented}\n"


def compiled(frame: int = 0, version: int = 0, *, pid: int = 7, file: int = 0, second: float = 1.0, **more: Any) -> str:
    """The records of one compilation that took a second and a half."""
    ids = {"frame_id": frame, "frame_compile_id": version, "attempt": 0, **more}
    stack = [{"filename": file, "line": 9, "name": "<module>"}, {"filename": file, "line": 3, "name": "step"}]
    graph = (
        'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[4][1]cuda:0"):\n        l_x_ = L_x_\n'
        '        # File: /app/model.py:4 in step, code: return x.sin()\n        sin: "f32[4][1]cuda:0" = l_x_.sin()\n'
    )
    metrics = {"duration_us": 1_500_000, "graph_op_count": 1, "fail_type": None, "has_guarded_code": True}
    return (
        record({"dynamo_start": {"stack": stack}, **ids}, pid=pid, second=second)
        + record({"dynamo_output_graph": {"sizes": {}}, **ids}, graph, pid=pid, second=second)
        + record({"compilation_metrics": metrics, **ids}, pid=pid, second=second + 1.5)
    )


def name(number: int = 0, path: str = "/app/model.py", pid: int = 7) -> str:
    return record({"str": [path, number]}, pid=pid)


def read(tmp_path: Path, *texts: str | bytes) -> Trace:
    logs = []
    for number, text in enumerate(texts):
        log = tmp_path / f"log{number}"
        log.write_bytes(text.encode() if isinstance(text, str) else text)
        logs.append(log)
    return read_trace(logs)


def faults(trace: Trace) -> list[Fault]:
    return [fault for fault, _ in trace.problems]


def kinds(trace: Trace, kind: type[Any]) -> list[Any]:
    return [made for process in trace.processes for made in process.recording() if isinstance(made, kind)]


def explained(logs: Sequence[Path], roots: dict[str, str] | None = None) -> Any:
    relocation = Relocation(roots or {})
    explanation = explain_logs(logs, load_library(), relocation, Path("/"), SourceFiles(relocation.folders))
    return explain_object(explanation)


def where(things: Iterable[Any]) -> list[tuple[str, int]]:
    return [(thing["function"], thing["site"]["line"]) for thing in things]


@pytest.mark.parametrize("version", SUPPORTED)
class TestALogOfEachTorch:
    @pytest.fixture
    def report(self, version: str) -> Any:
        return explained([DATA / f"program-{version}.log"])

    def test_the_run(self, report: Any, version: str) -> None:
        assert report["environment"]["torch"].startswith(version)
        assert report["environment"]["python"].startswith("3.11")
        assert report["environment"]["device"] == "cpu"
        assert [report["script"][key] for key in ("argv", "exit_status", "seconds")] == [[], None, None]
        assert report["script"]["trace"].endswith(f"program-{version}.log")

    def test_each_break(self, report: Any) -> None:
        found = [
            (site["function"], site["site"]["line"], site["verdict"], site["rule"], site["count"])
            for site in report["breaks"]
        ]
        assert found == [
            ("strict", 32, "raises", "BRK101", 1),
            ("in_loop", 19, "eager", "BRK101", 1),
            ("helper", 8, "splits", "BRK401", 2),
            ("by_flag", 26, "splits", "BRK401", 1),
        ]

    def test_each_failure(self, report: Any) -> None:
        found = {(f["function"], f["site"]["line"], f["status"], f["over_limit"]) for f in report["frames"]}
        assert found == {
            ("strict", 30, "raised", False),
            ("refused", 35, "raised", False),
            ("refused", 35, "eager", False),
            ("in_loop", 16, "eager", False),
            ("by_flag", 26, "eager", True),
        }
        assert "no backend today" in next(f["reason"] for f in report["frames"] if f["function"] == "refused")
        assert "3 versions" in next(f["reason"] for f in report["frames"] if f["over_limit"])

    def test_each_recompile(self, report: Any) -> None:
        found = [
            (r["site"]["line"], r["guard"], r["old"], r["new"], r["trigger"]["line"], r["rule"], r["cause"])
            for r in report["recompiles"]
        ]
        assert found == [
            (27, "flag == 'a'", "'a'", "'b'", 55, "BRK713", 0),
            (27, "flag == 'b'", "'b'", "'c'", 55, "BRK713", 0),
        ]

    def test_each_graph(self, report: Any) -> None:
        found = [(g["function"], g["ops"], g["ended_by"] and g["ended_by"]["line"]) for g in report["graphs"]]
        assert found == [
            ("splits", 1, 8),
            ("helper", 1, None),
            ("splits", 1, None),
            ("by_flag", 1, 26),
            *[("by_flag", 1, None)] * 3,
        ]
        assert [line["line"] for line in report["graphs"][0]["lines"]] == [13]

    def test_the_compile_time(self, report: Any, version: str) -> None:
        text = (DATA / f"program-{version}.log").read_text(encoding="utf-8")
        logged = sum(int(number) for number in re.findall(r'"compilation_metrics".*?"duration_us": (\d+)', text))
        assert report["summary"]["compile_seconds"] == pytest.approx(logged / 1e6, abs=1e-3)

    def test_lines_of_files_that_are_not_here_come_from_the_log(self, report: Any) -> None:
        assert [site["code"] for site in report["breaks"]] == [
            "return y.cos() if y.sum() > 0 else y",
            "if x.sum() > 100:",
            'print("from the helper")',
            'print("flag")',
        ]


class TestSources:
    def test_where_they_are_here_sites_are_spans(self) -> None:
        report = explained([LOG], {"/tmp/project": str(DATA)})
        helper = report["breaks"][2]["site"]
        assert helper["path"].endswith("tests/data/traces/program.py")
        assert (helper["line"], helper["column"], helper["end_column"]) == (8, 5, 29)
        assert not [notice for notice in report["notices"] if "--source-root" in notice]

    def test_a_file_that_has_changed_is_not_the_one_that_ran(self, tmp_path: Path) -> None:
        source = (DATA / "program.py").read_text(encoding="utf-8")
        (tmp_path / "program.py").write_text("# one line more\n" + source, encoding="utf-8")
        report = explained([LOG], {"/tmp/project": str(tmp_path)})
        assert report["breaks"][2]["code"] == 'print("from the helper")'
        assert report["breaks"][2]["site"]["column"] == 1
        assert [notice for notice in report["notices"] if "changed since" in notice]

    def test_the_longest_old_folder_counts(self) -> None:
        moved = Relocation({"/a": "/x", "/a/b": "/y", r"C:\c": "/z"})
        paths = ("/a/b/c.py", "/a/bc.py", "/ab.py", "C:\\c\\d\\e.py")
        assert [moved.path(path) for path in paths] == ["/y/c.py", "/x/bc.py", "/ab.py", "/z/d/e.py"]


class TestRanks:
    def test_a_log_a_rank(self) -> None:
        report = explained(RANKS)
        assert report["ranks"]["ranks"] == [0, 1]
        assert [d for d in report["ranks"]["differences"] if "graph breaks" in d["what"]]
        assert where(report["breaks"]) == [("step", 10)]

    def test_ranks_that_write_into_one_file(self, tmp_path: Path) -> None:
        parts = [re.split(r"\n(?=V)", log.read_text(encoding="utf-8").rstrip("\n")) for log in RANKS]
        both = [text for pair in zip(*parts, strict=False) for text in pair]
        both += [text for part in parts for text in part[min(map(len, parts)) :]]
        log = tmp_path / "all.log"
        log.write_text("\n".join(both) + "\n", encoding="utf-8")
        alone, together = explained(RANKS), explained([log])
        for key in ("ranks", "breaks", "recompiles", "graphs"):
            assert together[key] == alone[key]

    def test_a_rank_that_left_no_log(self, tmp_path: Path) -> None:
        for rank in (0, 3):
            text = name() + compiled(rank=rank)
            (tmp_path / f"dedicated_log_torch_trace_{rank}.log").write_text(text, encoding="utf-8")
        report = explained(logs_in(tmp_path))
        assert report["ranks"]["world_size"] == 4
        assert report["ranks"]["endings"] == {"1": "left no log", "2": "left no log"}

    def test_a_process_without_a_rank_is_counted_with_the_lowest(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(name() + compiled() + compiled(1), encoding="utf-8")
        for rank in (2, 3):
            (tmp_path / f"{rank}.log").write_text(name() + compiled(rank=rank, second=9.0), encoding="utf-8")
        report = explained(logs_in(tmp_path))
        assert report["ranks"]["ranks"] == [2, 3]
        assert report["summary"]["graphs"] == 3


class TestProcesses:
    def test_several_in_one_file(self, tmp_path: Path) -> None:
        trace = read(tmp_path, name(pid=1) + name(pid=2, path="/app/b.py") + compiled(pid=1) + compiled(pid=2))
        assert [made.code.path for made in kinds(trace, CompileStarted)] == ["/app/model.py", "/app/b.py"]

    def test_logs_of_several_runs_in_one_folder_are_told(self, tmp_path: Path) -> None:
        for number in range(3):
            text = name() + compiled()
            (tmp_path / f"dedicated_log_torch_trace_{number}.log").write_text(text, encoding="utf-8")
        report = explained(logs_in(tmp_path))
        assert [notice for notice in report["notices"] if "3 processes" in notice]
        assert report["script"]["processes"] == 3


class TestDamage:
    def test_a_log_cut_off_anywhere(self, tmp_path: Path) -> None:
        text = LOG.read_bytes()
        whole = len(kinds(read_trace([LOG]), CompileTimed))
        log = tmp_path / "cut.log"
        for end in range(len(text) - 1, 0, -len(text) // 60):
            log.write_bytes(text[:end])
            trace = read_trace([log])
            assert len(kinds(trace, CompileTimed)) <= whole
            at_record = text[end - 1 : end + 1] in (b"\nV", b"}\n")
            if trace.processes and not at_record:
                assert [fault for fault, _ in trace.problems] == [Fault.CUT_OFF]

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ('V0401 12:34:56.000000 7 torch/x.py:1] {"dynamo_start": {"sta\n', [Fault.DAMAGED]),
            (record({"dynamo_start": {"stack": [{"line": "x"}]}, "frame_id": 0}), [Fault.DAMAGED]),
            (record({"compilation_metrics": [1], "frame_id": 0, "frame_compile_id": 0}), [Fault.DAMAGED]),
            (record({"str": 4}), [Fault.DAMAGED]),
            ("W0401 12:34:56 something else\nTraceback (most recent call last):\n\n", [Fault.DAMAGED]),
            (record({"new_in_3_0": {"a": 1}, "frame_id": 0}, "text"), []),
        ],
    )
    def test_what_is_no_record_costs_itself(self, tmp_path: Path, text: str, found: list[Fault]) -> None:
        trace = read(tmp_path, name() + text + compiled())
        assert (len(kinds(trace, GraphCompiled)), faults(trace)) == (1, found)
        assert faults(read(tmp_path, "hello\n")) == [Fault.NO_RECORD]

    def test_values_of_other_types_anywhere(self, tmp_path: Path) -> None:
        """Nothing that a log can hold is a fault of the report."""
        chance = random.Random(20260401)
        values = ["null", "-1", '"x"', "[]", "{}", "1e999", "99999999999999999999", "true", '""', "NaN"]
        parts = re.split(r'((?<=": )(?:-?\d+(?:\.\d+)?|null|true|false|"[^"\n]*"))', LOG.read_text(encoding="utf-8"))
        log = tmp_path / "log"
        for number in range(40):
            changed = list(parts)
            for _ in range(1 + 10 * (number % 3)):
                changed[chance.randrange(1, len(parts), 2)] = chance.choice(values)
            log.write_text("".join(changed), encoding="utf-8")
            explanation = explain_logs([log], load_library(), Relocation({}), tmp_path, SourceFiles())
            write_explanation(ExplainReport(explanation), io.StringIO())

    def test_a_payload_that_does_not_fit_its_checksum_is_told_and_read(self, tmp_path: Path) -> None:
        text = LOG.read_text(encoding="utf-8").replace("Failed to trace builtin operator", "Failed to trace", 1)
        trace = read(tmp_path, text)
        ((fault, text),) = trace.problems
        assert (fault, "1 record is damaged" in text) == (Fault.DAMAGED, True)
        assert len(kinds(trace, BreakSeen)) == len(kinds(read_trace([LOG]), BreakSeen))


class TestForms:
    def test_line_ends_of_windows(self, tmp_path: Path) -> None:
        trace = read(tmp_path, LOG.read_bytes().replace(b"\n", b"\r\n"))
        assert not trace.problems
        assert kinds(trace, BreakSeen) == kinds(read_trace([LOG]), BreakSeen)

    def test_a_long_log_is_not_held(self, tmp_path: Path) -> None:
        log = tmp_path / "long.log"
        noise = record({"graph_dump": {}, "frame_id": 0}, "line of something\n" * 5_000)
        with log.open("w", encoding="utf-8") as file:
            file.write(name() + compiled())
            for _ in range(300):
                file.write(noise)
        tracemalloc.start()
        trace = read_trace([log])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert log.stat().st_size > 25_000_000
        assert most < 8_000_000
        assert not trace.problems

    def test_a_year_ends(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text(name().replace("V0401", "V1231") + compiled().replace("V0401", "V0101"), encoding="utf-8")
        os.utime(log, (1_800_000_000, 1_800_000_000))  # 15 January 2027
        times = [part.at for part in read_log(log) if isinstance(part, LogRecord)]
        assert times == sorted(times)
        assert times[-1] - times[0] < 2 * 86_400

    def test_a_folder_with_other_things(self, tmp_path: Path) -> None:
        (tmp_path / "another.log").write_text("hello\n", encoding="utf-8")
        (tmp_path / "empty.txt").touch()
        (tmp_path / "picture.bin").write_bytes(bytes(range(256)))
        (tmp_path / "folder").mkdir()
        (tmp_path / "renamed.txt").write_text(name() + compiled(), encoding="utf-8")
        (tmp_path / "dedicated_log_torch_trace_empty.log").touch()
        assert [log.name for log in logs_in(tmp_path)] == ["dedicated_log_torch_trace_empty.log", "renamed.txt"]


def test_a_graph_that_failed_is_none() -> None:
    assert " in refused, code: return x.sin()" in LOG.read_text(encoding="utf-8")
    assert "refused" not in {made.frame.name for made in kinds(read_trace([LOG]), GraphCompiled)}


def test_a_break_is_not_taken_for_one_in_a_caller_of_the_same_name(tmp_path: Path) -> None:
    """As where one module's forward calls another's."""
    text = (
        "Graph break in user code at /app/model.py:5\nGraph Break Reason: Some type\n  Explanation: so\n\n"
        'User code traceback:\n  File "/app/model.py", line 9, in <module>\n    step()\n'
        '  File "/app/model.py", line 8, in step\n    return other.step()\n'
        '  File "/app/model.py", line 5, in step\n    print()\n'
    )
    stack = [{"filename": 0, "line": line, "name": name} for line, name in ((9, "<module>"), (8, "step"), (3, "step"))]
    started = record({"dynamo_start": {"stack": stack}, "frame_id": 0, "frame_compile_id": 0})
    broke = record({"artifact": {"name": "dynamo_graph_break_reason"}, "frame_id": 0, "frame_compile_id": 0}, text)
    (seen,) = kinds(read(tmp_path, name() + started + broke), BreakSeen)
    assert [frame.line for frame in seen.stack] == [5]


def test_a_guard_is_read_with_its_scope_and_its_comment(tmp_path: Path) -> None:
    stack = 'User stack trace:\n  File "/app/a.py", line 4, in step\n'
    reason = f'0/0: self.step == 0   # self.step += 1  # a "#" in step\n{stack}'
    recompiled = record({"artifact": {"name": "recompile_reasons"}, "frame_id": 0, "frame_compile_id": 1}, reason)
    (seen,) = kinds(read(tmp_path, name() + compiled() + recompiled + compiled(0, 1, second=9.0)), RecompileSeen)
    (guard,) = seen.guards
    assert guard.text == """L['self'].step == 0  # self.step += 1  # a "#" in step"""
    assert [(frame.path, frame.line) for frame in guard.stack] == [("/app/a.py", 4)]


@pytest.mark.parametrize(("seconds", "graphs"), [("0.01", 1), ("null", 0)])
def test_an_empty_graph_is_one_where_a_backend_was_asked(tmp_path: Path, seconds: str, graphs: int) -> None:
    timed = f'"graph_op_count": 0, "backend_compile_time_s": {seconds}'
    assert (
        len(kinds(read(tmp_path, name() + compiled().replace('"graph_op_count": 1', timed)), GraphCompiled)) == graphs
    )


@pytest.mark.parametrize(("suppressed", "raised"), [(True, False), (False, True)])
def test_an_error_reaches_the_program_unless_it_is_suppressed(tmp_path: Path, suppressed: bool, raised: bool) -> None:
    failed = f'"fail_type": "ValueError", "fail_reason": "no", "config_suppress_errors": {json.dumps(suppressed)}'
    (ending,) = kinds(read(tmp_path, name() + compiled().replace('"fail_type": null', failed)), FrameEnded)
    assert (ending.frame.name, ending.error, ending.text, ending.raised) == ("step", "ValueError", "no", raised)


def test_a_recompile_over_the_limit_is_none() -> None:
    trace = read_trace([LOG])
    assert len(kinds(trace, RecompileSeen)) == LOG.read_text(encoding="utf-8").count('"recompile_reasons"') - 1


def test_the_text_of_a_graph() -> None:
    text = (
        "class GraphModule(torch.nn.Module):\n"
        '    def forward(self, L_x_: "f32[4, 8][8, 1]cuda:0", s0: "Sym(s0)", L_y_: "i64[4][1]cpu"):\n'
        "        l_x_ = L_x_\n\n"
        "        # File: /app/a b.py:4 in step, code: y = x.sin()\n"
        '        y: "f32[4, 8][8, 1]cuda:0" = l_x_.sin();  l_x_ = None\n'
        "        # No stacktrace found for following nodes\n"
        '        z: "f32[4, 8][8, 1]cuda:0" = y.cos()\n'
        "        return (z,)\n"
    )
    assert [(node.name, node.line and (node.line.path, node.line.line)) for node in nodes_of(text)] == [
        ("y", ("/app/a b.py", 4))
    ]
    assert devices_of(text) == ("cuda:0", "cpu")


@pytest.mark.torch
def test_a_trace_tells_what_explain_tells(folder: Folder) -> None:
    """Of one program: once traced by torch alone, once recorded."""
    source = (DATA / "program.py").read_text(encoding="utf-8")
    folder.write("program.py", source)
    assert folder.python("program.py", env={"TORCH_TRACE": "traces"}).status == 0
    recorded = folder.explain_json("program.py")[1]
    done = folder.python("-m", "breakscan", "report", "traces", "--format", "json", "-o", "traced.json")
    assert done.status == 0, done.err
    traced = json.loads((folder.path / "traced.json").read_text(encoding="utf-8"))
    assert set(where(recorded["frames"])) - set(where(traced["frames"])) == {("generator", 39)}
    for key in ("function", "verdict", "rule", "count", "place", "given_up", "compile_ids", "reason"):
        assert [site[key] for site in traced["breaks"]] == [site[key] for site in recorded["breaks"]]
    for key in ("function", "guard", "old", "trigger", "compile_id", "cause", "rule"):
        assert [r[key] for r in traced["recompiles"]] == [r[key] for r in recorded["recompiles"]]
    for key in ("function", "ops", "devices", "lines", "ended_by", "compile_id"):
        assert [graph[key] for graph in traced["graphs"]] == [graph[key] for graph in recorded["graphs"]]
