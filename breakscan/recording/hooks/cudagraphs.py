"""CUDA graphs: why graphs do not run as such, and which are recorded again and again, and why."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks, leave_no_trace
from breakscan.recording.hooks.object_facts import current_compile_id
from breakscan.recording.parsers.frames import innermost_frame
from breakscan.recording.records import CudaGraphRecorded, CudaGraphSkipped, MovedInput, RecordingCause

MOST_MOVED = 3
"""Inputs that lie elsewhere and are recorded by name."""

Why = tuple[RecordingCause, list[MovedInput]]


class CudaGraphSkipHook(Hook):
    """Records why graphs do not run as CUDA graphs: what is found only when a graph runs reaches neither trace nor
    metrics."""

    name = "cudagraphs"
    without = "why graphs do not run as CUDA graphs is missing"
    wraps = ("torch._inductor.cudagraph_utils:log_cudagraph_skip_and_bump_counter",)
    imported_by = (
        "torch._inductor.compile_fx",
        "torch._inductor.output_code",
        "torch._inductor.cudagraph_trees",
        "torch._dynamo.backends.cudagraphs",
    )
    waits_for = "torch._inductor.cudagraph_utils"

    def before(self, msg: str, *_: Any, **__: Any) -> None:
        self.hooks.write(CudaGraphSkipped(current_compile_id(), msg))


class CudaGraphHook(Hook):
    """Records each recording of a CUDA graph.  Torch makes one each time that none fits.  Why none does is found out
    there, by what torch compares before each run: to see that itself would cost every run something."""

    name = "recordings"
    without = "which CUDA graphs are recorded again, and why, is missing"
    wraps = ("torch._inductor.cudagraph_trees:CUDAGraphTreeManager.record_function",)
    reads = (
        "torch._inductor.cudagraph_trees:id_to_compile_id",
        "torch._inductor.cudagraph_trees:id_to_mode",
        "torch._inductor.cudagraph_trees:current_node",
        "torch._inductor.cudagraph_trees:cudagraph_managed_idxs",
        "torch._inductor.cudagraph_trees:static_input_data_ptrs",
        "torch._inductor.cudagraph_trees:static_input_idxs",
        "torch._inductor.cudagraph_trees:expected_dead_indices_before_graph",
        "torch._inductor.cudagraph_trees:path_weakrefs",
        "torch._inductor.cudagraph_trees:_check_liveness",
        "torch._inductor.cudagraph_trees:wrapped_function",
    )
    waits_for = "torch._inductor.cudagraph_trees"
    during_exports = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._functions: set[tuple[int, int]] = set()
        self._compiled: set[tuple[int, str, str]] = set()
        self._latest: dict[tuple[int, int], weakref.ref[Any]] = {}

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        before, after = self.guarded(self._begin), self.guarded(self._end)

        def record_function(self: Any, new_inputs: Any, function_id: Any, *args: Any, **kwargs: Any) -> Any:
            begun = before(self, new_inputs, function_id)
            try:
                result = original(self, new_inputs, function_id, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise
            if begun is not None:
                after(begun, self, function_id)
            return result

        return record_function

    def _begin(self, manager: Any, inputs: Sequence[Any], function_id: Any) -> CudaGraphRecorded:
        """The record as far as it is known before: torch frees the inputs while it records."""
        compile_id = manager.id_to_compile_id[function_id]
        phase = manager.id_to_mode[function_id].name.lower()
        cause, moved = self._why(manager, inputs, function_id, str(compile_id), phase)
        return CudaGraphRecorded(
            compile_id=None if compile_id is None else str(compile_id),
            phase=phase,
            cause=cause,
            sizes=tuple(value for value in inputs if type(value) is int),
            moved=tuple(moved[:MOST_MOVED]),
            moved_in_all=len(moved),
            seconds=0.0,
            bytes=_reserved(manager.device_index),
            at=perf_counter(),
        )

    def _end(self, begun: CudaGraphRecorded, manager: Any, function_id: Any) -> None:
        device = manager.device_index
        self._latest[device, function_id.id] = weakref.ref(manager.current_node)
        grown = max(0, _reserved(device) - begun.bytes)
        self.hooks.write(replace(begun, seconds=perf_counter() - begun.at, bytes=grown))

    def _why(self, manager: Any, inputs: Sequence[Any], function_id: Any, compile_id: str, phase: str) -> Why:
        device = manager.device_index
        function, compiled = (device, function_id.id), (device, compile_id, phase)
        is_known, is_compiled = function in self._functions, compiled in self._compiled
        self._functions.add(function)
        self._compiled.add(compiled)
        if not is_known:
            # Each combination of sizes is a function of its own.
            return (RecordingCause.SIZES if is_compiled else RecordingCause.FIRST), []
        after = manager.roots if manager.current_node is None else manager.current_node.children
        here = after.get(function_id)
        if here:
            return _mismatch(here[-1], inputs)
        latest = self._latest[function]() if function in self._latest else None
        moved = _moved(latest, inputs, _static(latest)) if latest is not None else []
        return (RecordingCause.ADDRESSES, moved) if moved else (RecordingCause.ORDER, [])


def _mismatch(node: Any, inputs: Sequence[Any]) -> Why:
    """The first thing that the last recording in this place does not fit, in the order in which torch compares.
    Nothing is changed."""
    if moved := _moved(node, inputs, node.cudagraph_managed_idxs):
        return RecordingCause.OUTPUTS, moved
    if not node._check_liveness(node.expected_dead_indices_before_graph, node.path_weakrefs):
        return RecordingCause.ALIVE, []
    if moved := _moved(node, inputs, _static(node)):
        return RecordingCause.ADDRESSES, moved
    return RecordingCause.UNKNOWN, []


def _static(node: Any) -> Sequence[int]:
    """The inputs that must not move.  Torch 2.11 has one list for these and for the results of other CUDA graphs."""
    found: Sequence[int] | None = getattr(node, "tensor_static_input_idxs", None)
    if found is None:
        managed = set(node.cudagraph_managed_idxs)
        found = [index for index in node.static_input_idxs if index not in managed]
    return found


def _moved(node: Any, inputs: Sequence[Any], indices: Sequence[int]) -> list[MovedInput]:
    pointers = node.static_input_data_ptrs
    moved = [i for i in indices if hasattr(inputs[i], "data_ptr") and inputs[i].data_ptr() != pointers[i]]
    return [_input(node.wrapped_function.placeholders, index) for index in moved]


def _input(placeholders: Sequence[Any], index: int) -> MovedInput:
    placeholder = placeholders[index] if index < len(placeholders) else None
    text = getattr(placeholder, "stack_trace", None)
    return MovedInput(getattr(placeholder, "name", str(index)), innermost_frame(text) if text else None)


def _reserved(device: int) -> int:
    import torch

    return torch.cuda.memory_reserved(device)
