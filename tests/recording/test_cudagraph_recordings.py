"""Why CUDA graphs are recorded again, with a tree manager of torch's class whose recording is replaced: it needs a GPU.

What torch hands to ``record_function`` and keeps on its nodes is as in its source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from breakscan.explanation.context import ExplainContext, Owners
from breakscan.explanation.cudagraphs import cudagraph_recordings
from breakscan.explanation.user_source import UserSource
from breakscan.recording.hooks.cudagraphs import CudaGraphHook
from breakscan.recording.hooks.hook import Hooks
from breakscan.recording.records import (
    Code,
    CompileStarted,
    CudaGraphRecorded,
    MovedInput,
    RecordingCause,
    StackFrame,
)
from breakscan.source.source_files import SourceFiles

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

TRACE = '  File "/x/model.py", line 4, in forward\n    y = x @ self.weight\n'
CONTEXT = ExplainContext((), UserSource(lambda path: path, SourceFiles()), Owners("/torch", "/python"))


@dataclass(eq=False)
class Node:
    """What torch keeps of a recording: the addresses of the inputs at ``static`` and ``managed`` must be the same."""

    static_input_data_ptrs: list[int | None]
    static: tuple[int, ...] = (0,)
    cudagraph_managed_idxs: tuple[int, ...] = ()
    is_alive: bool = True
    children: dict[Any, list[Any]] = field(default_factory=lambda: defaultdict(list))
    expected_dead_indices_before_graph: tuple[int, ...] = ()
    path_weakrefs: tuple[int, ...] = ()

    @property
    def tensor_static_input_idxs(self) -> tuple[int, ...]:
        return self.static

    @property
    def wrapped_function(self) -> Any:
        return SimpleNamespace(placeholders=[SimpleNamespace(name=f"primals_{n}", stack_trace=TRACE) for n in range(9)])

    def _check_liveness(self, indices: Any, weakrefs: Any) -> bool:
        return self.is_alive


class Device:
    """Records as torch does: under the node that ran last, or as a root."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        manager.device_index = 0
        manager.current_node = None
        manager.roots = defaultdict(list)
        manager.id_to_compile_id = defaultdict(lambda: "0/0")
        manager.id_to_mode = defaultdict(lambda: SimpleNamespace(name="FORWARD"))
        self.kept: list[Any] = []

    def run(self, function: int, *inputs: Any, **node: Any) -> Node:
        from torch._inductor.cudagraph_trees import FunctionID

        # Else the next input may lie where this one was.
        self.kept += inputs
        made: Node = self.manager.record_function(list(inputs), FunctionID(function))
        for name, value in node.items():
            setattr(made, name, value)
        return made


def recorded_by_torch(self: Any, new_inputs: Any, function_id: Any) -> Node:
    """In place of torch's."""
    pointers = [value.data_ptr() if hasattr(value, "data_ptr") else None for value in new_inputs]
    node = Node(pointers)
    (self.roots if self.current_node is None else self.current_node.children)[function_id].append(node)
    self.current_node = node
    new_inputs.clear()
    return node


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], tuple[Device, list[CudaGraphRecorded]]]]:
    from torch._inductor.cudagraph_trees import CUDAGraphTreeManager

    records: list[CudaGraphRecorded] = []
    monkeypatch.setattr(CUDAGraphTreeManager, "record_function", recorded_by_torch)
    reserved = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: next(reserved))
    with Hooks([CudaGraphHook], records.append).of(CudaGraphHook).installed() as available:
        assert available
        yield lambda: (Device(object.__new__(CUDAGraphTreeManager)), records)


def test_the_first_recording(device: Any) -> None:
    one, records = device()
    one.run(1, torch.ones(2), 7)
    (record,) = records
    assert (record.compile_id, record.phase, record.cause) == ("0/0", "forward", RecordingCause.FIRST)
    assert (record.sizes, record.bytes, record.moved) == ((7,), 1000, ())
    assert record.seconds > 0


def test_each_combination_of_sizes_is_a_function_of_its_own(device: Any) -> None:
    one, records = device()
    one.run(1, torch.ones(2), 7)
    one.run(2, torch.ones(2), 8)
    assert [(record.cause, record.sizes) for record in records[1:]] == [(RecordingCause.SIZES, (8,))]


def test_inputs_that_must_not_move(device: Any) -> None:
    """As a root again, and after a path that was given up."""
    one, records = device()
    one.run(1, torch.ones(2), torch.ones(2))
    one.manager.current_node = None
    one.run(1, torch.ones(2), torch.ones(2))
    one.run(1, torch.ones(2), torch.ones(2))
    moved = (MovedInput("primals_0", StackFrame("/x/model.py", 4, "forward")),)
    assert [(record.cause, record.moved) for record in records[1:]] == [(RecordingCause.ADDRESSES, moved)] * 2


def test_results_of_other_cuda_graphs_that_lie_elsewhere(device: Any) -> None:
    one, records = device()
    one.run(1, torch.ones(2), torch.ones(2), cudagraph_managed_idxs=(1,))
    one.manager.current_node = None
    one.run(1, torch.ones(2), torch.ones(2))
    assert (records[1].cause, records[1].moved[0].name) == (RecordingCause.OUTPUTS, "primals_1")


def test_results_that_are_still_in_use(device: Any) -> None:
    one, records = device()
    kept = torch.ones(2)
    one.run(1, kept, is_alive=False)
    one.manager.current_node = None
    one.run(1, kept)
    assert records[1].cause is RecordingCause.ALIVE


def test_another_order(device: Any) -> None:
    one, records = device()
    kept = torch.ones(2)
    one.run(1, kept)
    one.run(2, kept)
    one.run(1, kept)
    assert [record.cause for record in records[2:]] == [RecordingCause.ORDER]


def test_an_error_of_ours_or_of_torchs_harms_nothing(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, records = device()
    monkeypatch.setattr(one.manager, "roots", None)
    with pytest.raises(TypeError):
        one.run(1, torch.ones(2))
    assert not records


def test_recordings_of_a_function_are_one_by_cause() -> None:
    def record(cause: RecordingCause, sizes: tuple[int, ...]) -> CudaGraphRecorded:
        moved = (MovedInput("primals_0", StackFrame("/x/model.py", 4, "forward")),)
        return CudaGraphRecorded("0/0", "forward", cause, sizes, moved, 1, 0.5, 10, 1.0)

    records = [
        CompileStarted("0/0", Code("/x/model.py", 3, "forward"), (), 0.0),
        record(RecordingCause.FIRST, (7,)),
        record(RecordingCause.SIZES, (8,)),
        record(RecordingCause.SIZES, (9,)),
    ]
    again, first = cudagraph_recordings(records, CONTEXT)
    assert (again.cause, again.count, again.seconds, again.bytes) == (RecordingCause.SIZES, 2, 1.0, 20)
    assert again.sizes == ((8,), (9,))
    assert (first.sizes, first.function) == ((), "forward")
    assert first.moved[0].line is not None
    assert first.moved[0].line.line == 4
