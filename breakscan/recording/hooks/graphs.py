"""The graphs that went to the backend, their operations, devices and source lines, and why they are no CUDA graphs."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks, code_of, current_compile_id, leave_no_trace, stack_of
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.parsers.frames import frames_of
from breakscan.recording.records import CudaGraphSkipped, GraphCompiled, GraphNode, RepeatedLine, StackFrame

_OPERATIONS = ("call_function", "call_method", "call_module")
_LARGE = 64
_RUNS_NODE = ("run_node",)  # functions of torch that run or lower an operation of a graph, ``n``
_BACKWARD = "_engine_run_backward"


class GraphHook(Hook):
    """Records each graph that the backend compiled, and has its runs timed."""

    name = "graphs"
    without = "graphs are read from its structured trace, and what breaks cost is missing"
    wraps = ("torch._dynamo.output_graph:OutputGraph.call_user_compiler",)
    needs = ("torch._dynamo.eval_frame:innermost_fn", "torch.fx._lazy_graph_module:_LazyGraphModule.force_recompile")
    reads = ("torch._dynamo.output_graph:compile_subgraph_reason", "torch.fx._lazy_graph_module:_lazy_forward")

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._failed = 0
        self._failed_at: tuple[StackFrame, ...] = ()

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        record, failed = self.guarded(self._record), self.guarded(self._note_failure)

        def call_user_compiler(self: Any, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                compiled = original(self, gm, example_inputs, *args, **kwargs)
            except Exception as error:
                failed(error)
                leave_no_trace(error)
                raise
            return record(self, gm, example_inputs, compiled, began, time.perf_counter() - began) or compiled

        return call_user_compiler

    def failed_at(self, error: BaseException | None) -> tuple[StackFrame, ...]:
        """The traced stack of the operation on which a backend failed, innermost last; empty where it is not known."""
        cause = root_cause(error)
        return self._failed_at if cause is not None and id(cause) == self._failed else ()

    def _note_failure(self, error: Exception) -> None:
        cause = root_cause(error)
        self._failed, self._failed_at = id(cause), ()
        traced, in_backward = None, False
        place = cause.__traceback__ if cause is not None else None
        while place is not None:
            frame, place = place.tb_frame, place.tb_next
            in_backward = in_backward or frame.f_code.co_name == _BACKWARD
            if frame.f_code.co_name in _RUNS_NODE:
                traced = getattr(frame.f_locals.get("n"), "stack_trace", None) or traced
        traced = self.hooks.of(BackwardLineHook).latest if in_backward else traced
        self._failed_at = tuple(frames_of(traced or ""))

    def _record(
        self, output: Any, module: Any, inputs: Any, compiled: Any, at: float, seconds: float
    ) -> Callable[..., Any] | None:
        """The function to run in place of the compiled graph, so that its runs are timed.  None where it is exported or
        stored, and has to be what the backend made."""
        import torch

        runs = self.hooks.of(RunHook)
        runs.compiled()
        devices = list(dict.fromkeys(value.device for value in inputs if isinstance(value, torch.Tensor)))
        # A tensor lies there, so CUDA is initialised: asking for the name starts nothing.
        names = [f"{one} ({torch.cuda.get_device_name(one)})" if one.type == "cuda" else str(one) for one in devices]
        number = next(self.hooks.merged.numbers)
        nodes = [node for node in module.graph.nodes if node.op in _OPERATIONS]
        reason = getattr(output, "compile_subgraph_reason", None)
        ended_by = stack_of(reason.user_stack) if reason is not None and reason.graph_break else ()
        lines = [next(reversed(frames_of(node.stack_trace or "")), None) for node in nodes]
        record = GraphCompiled(
            compile_id=current_compile_id(),
            frame=code_of(output.root_tx.f_code),
            ops=len(nodes),
            devices=tuple(sorted(names)),
            graph=number,
            nodes=tuple(
                GraphNode(node.name, line, str(getattr(node.target, "__name__", node.target)))
                for node, line in zip(nodes, lines, strict=True)
            ),
            ended_by=ended_by,
            at=at,
            seconds=seconds,
            repeated=repeated_lines(nodes),
        )
        self.hooks.write(record)
        if output.export or getattr(output, "package", None) is not None:
            return None
        cuda = next((device for device in devices if device.type == "cuda"), None)
        return runs.graph(_as_dynamo_calls_it(compiled), number, bool(ended_by), cuda, record.compile_id)


class BackwardLineHook(Hook):
    """Keeps the line whose backward AOTAutograd traces now: an exception out of the engine of autograd has none."""

    name = "backward-lines"
    without = "where the backward of an operation cannot be compiled, the line of the operation is missing"
    wraps = ("torch.fx.traceback:set_stack_trace",)
    latest = ""

    def before(self, stack: list[str], *_: Any, **__: Any) -> None:
        self.latest = "".join(stack)


class CudaGraphSkipHook(Hook):
    """Records why graphs are no CUDA graphs: what is found only when one runs reaches neither trace nor metrics."""

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


def root_cause(error: BaseException | None) -> BaseException | None:
    """The exception that another one was raised from, or wraps, at the bottom."""
    while inner := getattr(error, "inner_exception", None) or getattr(error, "__cause__", None):
        error = inner
    return error


def repeated_lines(nodes: Sequence[Any]) -> tuple[RepeatedLine, ...]:
    """The lines of a large graph that many of its operations were traced through, several times the same way."""
    if len(nodes) < _LARGE:
        return ()
    frames: dict[str, list[StackFrame]] = {}
    ops: Counter[StackFrame] = Counter()
    first: dict[StackFrame, tuple[str, str]] = {}
    ways: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        text = node.stack_trace or ""
        way = (text, str(node.target))
        ways[way] += 1
        if text not in frames:
            frames[text] = frames_of(text)
        for frame in dict.fromkeys(frames[text]):
            ops[frame] += 1
            first.setdefault(frame, way)
    kept = ((frame, count, ways[first[frame]]) for frame, count in ops.items())
    return tuple(RepeatedLine(*one) for one in kept if one[1] >= _LARGE // 2 and one[2] > 1)


def _as_dynamo_calls_it(compiled: Any) -> Any:
    """The function that Dynamo finds in what a backend returns: a graph module that was to be generated when it is
    first called is generated, and what keeps off the compiler is taken off, since Dynamo puts it on."""
    from torch._dynamo.eval_frame import innermost_fn
    from torch.fx._lazy_graph_module import _LazyGraphModule

    module = getattr(compiled, "__self__", None)
    if isinstance(module, _LazyGraphModule) and compiled.__name__ == "_lazy_forward":
        _LazyGraphModule.force_recompile(module)
        return module.forward
    return innermost_fn(compiled)
