"""The ranks of a distributed job: one report, and where they differ."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from programs import Done, Folder, environment

from breakscan.explanation.explanation import (
    NO_RECORDING,
    RUNNING,
    Explanation,
    RankDifference,
    alike,
    compare,
    exit_ending,
    merge,
    ranks_in_words,
)
from breakscan.explanation.exports import Export
from breakscan.explanation.from_recording import explain_run
from breakscan.explanation.graphs import Graph
from breakscan.explanation.notices import Notice
from breakscan.explanation.recompiles import Recompile
from breakscan.model.findings import Origin, Site
from breakscan.recording.launch import JobError, is_running, own_rank, shared_folder
from breakscan.recording.parsers.guards import NONE_FAILED
from breakscan.recording.session import SessionError, read_run, start_session, unfinished_ranks
from breakscan.rulebook.library import load_library
from breakscan.source.source_files import SourceFiles

PROGRAM = """import os, signal, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, how = dist.get_rank(), sys.argv[1]

def f(x):
    y = x.sin()
    if how == "differ" and rank == 1:
        print("breaks", flush=True)
    return y.cos()

def g(x):
    return x + 1

compiled = torch.compile(f, backend="eager")
compiled(torch.ones(3))
other = torch.compile(g, backend="eager")
other(torch.ones(3))
if how == "differ" and rank == 1:
    other(torch.ones(4))
dist.barrier()
if how == "exits" and rank == 1:
    sys.exit(3)
if how == "is killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if how == "is killed with breakscan" and rank == 1:
    os.kill(os.getppid(), signal.SIGKILL)
if how in ("exits", "is killed", "is killed with breakscan"):
    time.sleep(100)
dist.destroy_process_group()
"""

distributed = [pytest.mark.torch, pytest.mark.skipif(sys.platform != "linux", reason="torchrun, signals")]


def torchrun(folder: Folder, *arguments: str) -> Done:
    """Two ranks, with temporary folders of their own."""
    (folder.path / "temporary").mkdir(exist_ok=True)
    return folder.python(
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments),
        env={"TMPDIR": str(folder.path / "temporary")},
    )


def test_nobody_is_asked_whether_it_runs_where_that_would_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, signal 0 is Ctrl-C."""
    asked: list[int] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", lambda pid, number: asked.append(pid))
    assert is_running(1)
    assert not asked


class TestTorchrun:
    pytestmark = distributed

    @pytest.fixture(autouse=True)
    def _program(self, folder: Folder) -> None:
        folder.write("program.py", PROGRAM)

    def explain(self, folder: Folder, *arguments: str) -> tuple[Done, Any]:
        done = torchrun(folder, "-m", "breakscan", "explain", "--save", "kept", *arguments)
        return done, explain_run(
            read_run(folder.path / "kept"), rules=load_library(), show=os.path.basename, files=SourceFiles.trusted()
        )

    def test_one_rank_reports_for_all(self, folder: Folder) -> None:
        done = torchrun(folder, "-m", "breakscan", "explain", "program.py", "agree")
        assert done.status == 0
        assert done.err.decode().count("program.py finished with exit status 0") == 1
        assert "2 graphs of 3 operations" in done.err.decode()
        assert not list((folder.path / "temporary").glob("breakscan-*"))

    def test_where_ranks_differ_is_told(self, folder: Folder) -> None:
        done, explanation = self.explain(folder, "program.py", "differ")
        assert done.status == 0
        assert b"program.py:11" in done.err
        assert [site.site.line for site in explanation.breaks] == [11]
        assert [site.compile_ids for site in explanation.breaks] == [("rank1:0/0",)]
        assert (explanation.ranks.world_size, explanation.ranks.ranks) == (2, [0, 1])
        assert {d.what: d.by_rank for d in explanation.ranks.differences} == {
            "graph breaks at program.py:11 (BRK401 print)": {0: "never", 1: "once"},
            "recompiles of g at program.py:14, because of x.shape[0]": {0: "never", 1: "once: 3, then 4"},
            "what was compiled in all": {
                0: "2 graphs of 2 + 1 operations",
                1: "4 graphs of 1 + 1 + 1 + 1 operations",
            },
        }
        assert explanation.ranks.endings == dict.fromkeys([0, 1], exit_ending(0))

    @pytest.mark.parametrize(
        ("option", "status"), [("--max-breaks=0", 1), pytest.param("--max-breaks=1", 0, marks=pytest.mark.slow)]
    )
    def test_gates_judge_what_any_rank_did(self, folder: Folder, option: str, status: int) -> None:
        """Only rank 1 breaks a graph, and rank 0 reports."""
        done = torchrun(folder, "-m", "breakscan", "explain", option, "program.py", "differ")
        assert done.status == status
        assert done.err.decode().count("--max-breaks 0 is not met: 1 break site at program.py:11:9") == status

    @pytest.mark.parametrize(
        ("how", "ending"),
        [
            ("exits", "finished with exit status 3 after "),
            pytest.param("is killed", "was ended by SIGKILL after ", marks=pytest.mark.slow),
            pytest.param(
                "is killed with breakscan", "was killed together with breakscan, after ", marks=pytest.mark.slow
            ),
        ],
    )
    def test_a_rank_that_fails_takes_no_report_along(self, folder: Folder, how: str, ending: str) -> None:
        done, explanation = self.explain(folder, "program.py", how)
        assert done.status == 1
        assert done.err.decode().count("program.py was ended by SIGTERM") == 1
        assert f"exitcode  : {3 if how == 'exits' else -9}" in done.err.decode()
        endings = explanation.ranks.endings
        assert endings[0].words.startswith("was ended by SIGTERM after ")
        assert endings[1].words.startswith(ending)
        assert endings[1].words.endswith(", the first to end") is (how != "is killed with breakscan")
        assert not explanation.ranks.differences

    @pytest.mark.slow
    def test_ranks_that_the_program_starts_are_told_apart(self, folder: Folder) -> None:
        launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "program.py", "differ")
        done, report = folder.explain_json(*launch)
        assert done.status == 0
        assert report["ranks"]["ranks"] == [0, 1]
        assert report["ranks"]["differences"][0]["by_rank"] == {"0": "never", "1": "once"}


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_who_is_told_to_end_while_waiting_reports_first(folder: Folder) -> None:
    folder.write("script.py", "print('runs')\n")
    variables = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TMPDIR": str(folder.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "breakscan", "explain", "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder.path,
        env=environment() | variables,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"breakscan: waiting for rank 1 to end, at most 30 s\n"
    told = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"runs\n")
    assert time.monotonic() - told < 25
    assert b"script.py finished with exit status 0" in err
    assert b"rank 1 left no recording" in b" ".join(err.lower().split())


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The environment of rank 1 of 4, on a machine with two of them, and its temporary folder."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    variables = {
        "RANK": "3",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return temporary


@pytest.mark.skipif(sys.platform == "win32", reason="owners and modes of files")
class TestSharedFolder:
    def test_ranks_name_it_alike_and_nobody_else_reads_it(self, job: Path) -> None:
        folder = shared_folder(os.environ)
        assert shared_folder({**os.environ, "RANK": "2", "LOCAL_RANK": "0"}) == folder
        assert folder.parent == job
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    @pytest.mark.parametrize("name", ["TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"])
    def test_another_job_has_another(self, job: Path, name: str) -> None:
        assert shared_folder({**os.environ, name: "7"}) != shared_folder(os.environ)

    def test_one_that_others_can_write_is_not_trusted(self, job: Path) -> None:
        folder = shared_folder(os.environ)
        folder.chmod(0o777)
        with pytest.raises(JobError, match="is open to other users"):
            shared_folder(os.environ)
        folder.rmdir()
        folder.symlink_to(job)
        with pytest.raises(JobError, match="belongs to another user"):
            shared_folder(os.environ)

    def test_ranks_of_this_machine_are_known(self, job: Path) -> None:
        rank = own_rank(os.environ)
        assert rank
        assert list(rank.local_ranks) == [2, 3]
        assert own_rank({"RANK": "0", "WORLD_SIZE": "1"}) is None
        assert own_rank({"RANK": "x", "WORLD_SIZE": "2"}) is None
        alone = own_rank({"RANK": "5", "WORLD_SIZE": "8"})
        assert alone
        assert list(alone.local_ranks) == [5]

    def test_starts_of_a_job_are_kept_apart(self, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        start_session(["train.py"], tmp_path / "kept")
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
        session = start_session(["train.py"], tmp_path / "kept")
        assert session.folder == tmp_path / "kept/restart-1/rank-3"
        assert not session.reports
        session.discard()
        run = read_run(tmp_path / "kept")
        assert [part.folder for part in run.parts] == [session.folder]
        assert run.earlier == [tmp_path / "kept"]
        first = explain_run(run, rules=(), show=str, files=SourceFiles.trusted()).notices[0]
        assert (first.id, "again once" in first.text) == ("restarted", True)
        with pytest.raises(SessionError, match="holds a recording already"):
            start_session(["train.py"], tmp_path / "kept")

    def test_a_rank_without_a_recording_is_named(self, job: Path, tmp_path: Path) -> None:
        start_session(["train.py"], tmp_path / "kept")
        report = explain_run(read_run(tmp_path / "kept"), rules=(), show=str, files=SourceFiles.trusted()).ranks
        assert report
        assert (report.world_size, report.ranks) == (4, [3])
        assert report.endings == {2: NO_RECORDING, 3: RUNNING}

    @pytest.mark.process
    def test_nobody_waits_for_a_rank_that_was_killed(self, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = start_session(["train.py"])
        monkeypatch.setenv("RANK", "2")
        monkeypatch.setenv("LOCAL_RANK", "0")
        session = start_session(["train.py"])
        assert (session.reports, other.reports) == (True, False)
        assert unfinished_ranks(session) == [3]
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            ended.wait()
        file = other.folder / "run.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "pid": ended.pid}))
        assert unfinished_ranks(session) == []


SITE = Site("train.py", 4, 1, 4, 9)


def recompile(function: str, compile_id: str) -> Recompile:
    return Recompile(
        rule=None,
        function=function,
        site=SITE,
        origin=Origin.USER,
        trigger=None,
        guard=NONE_FAILED,
        subject="x.shape[0]",
        old="3",
        new="4",
        compile_id=compile_id,
        cause=0,
    )


def graph(number: int, function: str, ops: int) -> Graph:
    return Graph(number, f"{number}/0", function, SITE, ops, (), (), None, None, None, None, None, (), ())


NOTICE = Notice("profile-kept", "sizes are kept")
PLAIN = Explanation(
    argv=("train.py",),
    status=0,
    seconds=1.0,
    torch="2.13.0",
    python="3.11.7",
    devices=(),
    torch_imported=True,
    disabled_by=None,
    breaks=(),
    recompiles=(),
    frames=(),
    graphs=(graph(0, "f", 3),),
    targets=(),
    entries=1,
    compile_seconds=0.1,
    notices=(NOTICE,),
)


class TestComparison:
    def test_ranks_that_agree(self) -> None:
        merged = merge({0: PLAIN, 1: PLAIN})
        assert merged.ranks
        assert not merged.ranks.differences
        assert merged.ranks.endings == dict.fromkeys([0, 1], exit_ending(0))
        assert (merged.notices, merged.processes) == ((NOTICE,), 2)

    def test_exports_of_any_rank_are_told(self) -> None:
        export = Export("export", "Net", SITE, None, False, "done", 1, 3, 0.1)
        merged = merge({0: PLAIN, 1: replace(PLAIN, exports=(export,))})
        assert merged.ranks is not None
        assert (list(merged.exports), merged.ranks.differences) == ([export], [])

    def test_a_recompile_in_another_step(self) -> None:
        one, two = (replace(PLAIN, recompiles=(replace(recompile("f", "0/1"), runs=runs),)) for runs in (4, 8))
        (difference,) = compare({0: one, 1: two}).differences
        assert difference == RankDifference(
            "when f at train.py:4 is recompiled", SITE, {0: "after 4 runs of graphs", 1: "after 8 runs of graphs"}
        )
        assert not compare({0: one, 1: one}).differences

    def test_graphs_that_differ_for_no_other_reason(self) -> None:
        other = replace(PLAIN, graphs=(graph(0, "f", 3), graph(1, "g", 2)))
        total, of_function = compare({0: PLAIN, 1: other}).differences
        made = {0: "1 graph of 3 operations", 1: "2 graphs of 3 + 2 operations"}
        assert total == RankDifference("what was compiled in all", None, made)
        made = {0: "no graph", 1: "1 graph of 2 operations"}
        assert of_function == RankDifference("graphs of g at train.py:4", SITE, made)

    def test_causes_of_ranks_stay_apart(self) -> None:
        one = replace(PLAIN, recompiles=(recompile("f", "0/1"),))
        two = replace(PLAIN, recompiles=(recompile("f", "0/1"), recompile("g", "1/1")))
        merged = merge({0: one, 1: two})
        assert [(r.function, r.compile_id, r.cause) for r in merged.recompiles] == [
            ("f", "0/1", 0),
            ("g", "rank1:1/1", 1),
        ]

    def test_ranks_are_named_in_few_words(self) -> None:
        assert ranks_in_words([3]) == "rank 3"
        assert ranks_in_words([5, 0, 1, 2]) == "ranks 0-2 and 5"
        difference = RankDifference("graph breaks", SITE, {0: "once", 1: "never", 2: "never"})
        assert alike(difference) == [("ranks 1-2", "never"), ("rank 0", "once")]

    def test_endings_of_a_job_that_fails_are_told(self) -> None:
        assert (exit_ending(0).is_good, exit_ending(0, 2.0).is_good) == (True, False)
        assert exit_ending(-15, 2.04).words == "was ended by SIGTERM after 2.0 s"
        assert exit_ending(1, 3.0, True).words == "finished with exit status 1 after 3.0 s, the first to end"
        assert exit_ending(None).words == "ended in a way that was not recorded"
