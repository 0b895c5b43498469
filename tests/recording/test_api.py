"""``breakscan.record`` and ``breakscan.explain``: what they tell, and that they leave everything as it was."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import breakscan

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from breakscan.api import explain_calls  # noqa: E402 - needs torch


def breaks(x):  # type: ignore[no-untyped-def]
    y = x.sin()
    print("breaks")
    return helper(y) + 1


def helper(x):  # type: ignore[no-untyped-def]
    return x.cos()


def given_up(x):  # type: ignore[no-untyped-def]
    for _ in range(2):
        print("in a loop")
        x = x + 1
    return x


LINE_OF_BREAK = breaks.__code__.co_firstlineno + 2


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def eager(function, *calls):  # type: ignore[no-untyped-def]
    return explain_calls(function, [(call, {}) for call in calls], backend="eager")


class TestRecord:
    def test_it_tells_what_happened_within(self, capsys: pytest.CaptureFixture[str]) -> None:
        compiled = torch.compile(breaks, backend="eager")
        with breakscan.record() as recording:
            compiled(torch.ones(3))
        assert capsys.readouterr() == ("breaks\n", "")
        report = recording.explain()
        (found,) = report.breaks
        assert (found.site.line, found.rule.id, found.function) == (LINE_OF_BREAK, "BRK401", "breaks")
        assert len(report.graphs) == 2
        assert not report.recompiles
        assert not report.frames
        assert "1 site breaks the graph once" in repr(report)

    def test_the_first_export_of_a_process_is_in_it_too(self) -> None:
        program = """if True:
            import sys
            import torch
            import breakscan

            class Net(torch.nn.Module):
                def forward(self, x):
                    return x + 1

            with breakscan.record() as recording:
                torch.export.export(Net(), (torch.ones(3),))
                torch.export.draft_export(Net(), (torch.ones(3),))
            print([(e.name, e.way, e.ops) for e in recording.explain().explanation.exports])
            torch.export.export(Net(), (torch.ones(3),))
            print(len(recording.explain().explanation.exports))
            print([type(f).__name__ for f in sys.meta_path if type(f).__name__ == "ImportWatch"])
        """
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["[('Net', 'export', 1), ('Net', 'draft_export', 1)]", "2", "[]"]

    def test_what_is_hooked_is_put_back(self) -> None:
        from torch._dynamo import convert_frame, eval_frame, guards, output_graph, symbolic_convert

        owners = [
            (eval_frame, "_optimize"),
            (eval_frame.OptimizeContext, "__call__"),
            (convert_frame.ConvertFrameAssert, "__call__"),
            (symbolic_convert.InstructionTranslatorBase, "log_graph_break"),
            (symbolic_convert, "_get_error_on_graph_break"),
            (output_graph.OutputGraph, "call_user_compiler"),
            (guards, "get_and_maybe_log_recompilation_reasons"),
        ]
        before = [getattr(owner, name) for owner, name in owners]
        files = set(Path("/proc/self/fd").iterdir()) if sys.platform == "linux" else set()
        with breakscan.record(keep_going=True):
            torch.compile(breaks, backend="eager")(torch.ones(3))
        assert [getattr(owner, name) for owner, name in owners] == before
        assert not files or len(set(Path("/proc/self/fd").iterdir())) <= len(files)

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring")
    def test_calls_of_modules_are_no_longer_watched(self) -> None:
        code = torch.nn.Linear.forward.__code__
        with breakscan.record():
            torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
            (tool,) = (tool for tool in range(6) if sys.monitoring.get_tool(tool) == "breakscan")
            assert sys.monitoring.get_local_events(tool, code)
        sys.monitoring.use_tool_id(tool, "test")
        assert not sys.monitoring.get_local_events(tool, code)
        sys.monitoring.free_tool_id(tool)

    def test_blocks_nest(self) -> None:
        with breakscan.record() as outer:
            torch.compile(helper, backend="eager")(torch.ones(3))
            with breakscan.record() as inner:
                torch.compile(breaks, backend="eager")(torch.ones(3))
        assert len(inner.explain().graphs) == 2
        assert len(outer.explain().graphs) == 3

    def test_two_threads_do_not_record_at_once(self) -> None:
        said: list[str] = []

        def other() -> None:
            try:
                breakscan.record().__enter__()
            except RuntimeError as error:
                said.append(str(error))

        with breakscan.record():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert len(said) == 1
        assert said[0].startswith("another thread is recording")

    def test_misuse_is_told(self) -> None:
        recording = breakscan.record()
        with pytest.raises(RuntimeError, match="nothing is recorded yet"):
            recording.explain()
        with recording:
            pass
        with pytest.raises(RuntimeError, match="a recording is made once"), recording:
            pass

    def test_an_exception_goes_through(self) -> None:
        def fails() -> None:
            torch.compile(breaks, backend="eager")(torch.ones(3))
            raise ZeroDivisionError

        recording = breakscan.record()
        with pytest.raises(ZeroDivisionError), recording:
            fails()
        assert len(recording.explain().breaks) == 1

    def test_keep_going_shows_what_lies_behind_the_first_break(self) -> None:
        with breakscan.record(keep_going=True) as recording:
            torch.compile(given_up, backend="eager", fullgraph=True)(torch.ones(3))
        (found,) = recording.explain().breaks
        assert found.verdict.value == "eager"

    def test_nothing_compiled_is_told_with_its_reason(self) -> None:
        compiled = torch.compile(helper, backend="eager")
        compiled(torch.ones(3))
        with breakscan.record() as recording:
            compiled(torch.ones(3))
        assert "it had been compiled before" in repr(recording.explain())


class TestExplain:
    def test_it_is_as_if_for_the_first_time(self) -> None:
        compiled = torch.compile(breaks, backend="eager")
        compiled(torch.ones(3))
        compiled(torch.ones(4))
        torch.compile(helper, backend="eager")(torch.ones(3))
        torch.compile(given_up, backend="eager")(torch.ones(3))
        for _ in range(2):
            report, _ = eager(given_up, (torch.ones(3),))
            assert (len(report.breaks), len(report.graphs)) == (1, 0)
            report, result = eager(breaks, (torch.ones(3),))
            assert (len(report.breaks), len(report.graphs), len(report.recompiles)) == (1, 2, 0)
            assert torch.equal(result, torch.ones(3).sin().cos() + 1)

    def test_what_it_compiled_is_forgotten(self) -> None:
        from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

        eager(breaks, (torch.ones(3),))
        assert not _debug_get_cache_entry_list(breaks.__code__)
        assert not _debug_get_cache_entry_list(helper.__code__)

    def test_random_numbers_go_on_as_without_it(self) -> None:
        numpy = pytest.importorskip("numpy")

        def draws(x):  # type: ignore[no-untyped-def]
            print(random.random(), numpy.random.rand())
            return x + torch.rand(3)

        def seed() -> None:
            random.seed(1)
            numpy.random.seed(1)
            torch.manual_seed(1)

        def drawn() -> list[object]:
            return [random.random(), numpy.random.rand(), torch.rand(1).item()]

        seed()
        expected = drawn()
        seed()
        eager(draws, (torch.ones(3),))
        assert drawn() == expected

    def test_a_module_keeps_its_buffers_and_modes(self) -> None:
        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(3)

            def forward(self, x):  # type: ignore[no-untyped-def]
                y = self.norm(x)
                self.train(False)
                return y

        net = Net()
        before = {name: value.clone() for name, value in net.state_dict().items()}
        report, _ = eager(net, (torch.rand(4, 3),))
        assert report.graphs
        assert net.training
        assert net.norm.training
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
        assert "_compiled_call_impl" not in net.__dict__ or net._compiled_call_impl is None

    def test_a_buffer_that_is_replaced_is_put_back(self) -> None:
        class Counter(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x):  # type: ignore[no-untyped-def]
                self.calls = self.calls + 1
                return x + self.calls

        net = Counter()
        calls = net.calls
        eager(net, (torch.ones(3),))
        assert net.calls is calls
        assert net.calls.item() == 0
        assert list(net.state_dict()) == ["calls"]

    def test_what_was_compiled_is_called_as_it_is(self) -> None:
        report = breakscan.explain(torch.compile(breaks, backend="eager", fullgraph=True), torch.ones(3))
        (found,) = report.breaks
        assert found.verdict.value == "raises"

    def test_the_functions_own_exception_is_raised(self) -> None:
        def wrong(x):  # type: ignore[no-untyped-def]
            print("before")
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            eager(wrong, (torch.ones(3),))


def test_importing_breakscan_imports_nothing_else() -> None:
    code = "import sys; known = set(sys.modules); import breakscan; print(sorted(set(sys.modules) - known))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['breakscan']\n"


WATCHED = """
import torch, breakscan
breakscan.watch()
breakscan.watch()
def step(x, n):
    y = x * n
    {break_}
    return y + 1
compiled = torch.compile(step, backend="eager")
for n in {numbers}:
    print(compiled(torch.ones(2), n).sum())
"""


class TestWatch:
    def watched(self, tmp_path: Path, break_: str, numbers: str, **environment: str) -> tuple[str, list[str]]:
        (tmp_path / "train.py").write_text(WATCHED.format(break_=break_, numbers=numbers))
        done = subprocess.run(
            [sys.executable, "train.py"],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, [line for line in done.stderr.splitlines() if line.startswith("breakscan:")]

    def test_it_prints_each_problem(self, tmp_path: Path) -> None:
        printed, said = self.watched(tmp_path, "torch._dynamo.graph_break()", "(1.5, 2.5)")
        assert printed == "tensor(5.)\ntensor(7.)\n"
        assert sorted(line.split()[1] for line in said) == ["train.py:6:9", "train.py:7:5"]
        assert sum("recompiled 1×" in line for line in said) == 1

    def test_nothing_is_printed_where_all_is_well(self, tmp_path: Path) -> None:
        assert self.watched(tmp_path, "pass", "(2, 2)") == ("tensor(6.)\n" * 2, [])

    def test_of_several_ranks_the_first_prints(self, tmp_path: Path) -> None:
        break_ = "torch._dynamo.graph_break()"
        assert len(self.watched(tmp_path, break_, "(2,)", RANK="0")[1]) == 1
        assert self.watched(tmp_path, break_, "(2,)", RANK="1")[1] == []
