"""The graphs that went to the backend, with their operations, devices and source lines.

Wraps ``torch._dynamo.output_graph.OutputGraph.call_user_compiler``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breakscan.record.hooks.object_facts import code_of, current_compile_id, stack_of
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.hooks.runs import RunMeter
from breakscan.record.parsers.frames import innermost_frame
from breakscan.record.records import GraphCompiled, GraphNode, StackFrame

_OPERATIONS = ("call_function", "call_method", "call_module")


@contextmanager
def compiled_graphs(
    sink: Callable[[Any, Any, Any, Any, float, float], Callable[..., Any] | None],
) -> Iterator[bool]:
    """Hands each graph that the backend compiled to the sink: its tracer, its module, its example inputs, what the
    backend made of it, when it began, how many seconds it took.  What the sink returns runs in place of the graph,
    unless that is None.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_user_compiler(self: Any, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                compiled = original(self, gm, example_inputs, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise
            return sink(self, gm, example_inputs, compiled, began, time.perf_counter() - began) or compiled

        return call_user_compiler

    with wrapped(["torch._dynamo.output_graph:OutputGraph"], "call_user_compiler", wrap) as available:
        yield available


def graph_record(output: Any, module: Any, inputs: Any, number: int, at: float, seconds: float) -> GraphCompiled:
    """The graph as the recording keeps it."""
    nodes = [node for node in module.graph.nodes if node.op in _OPERATIONS]
    return GraphCompiled(
        compile_id=current_compile_id(),
        frame=code_of(output.root_tx.f_code),
        ops=len(nodes),
        devices=tuple(sorted(_devices(inputs))),
        graph=number,
        nodes=tuple(GraphNode(node.name, innermost_frame(node.stack_trace or "")) for node in nodes),
        ended_by=_break_after(output),
        at=at,
        seconds=seconds,
        inputs=tuple(_input_name(node) for node in module.graph.nodes if node.op == "placeholder"),
    )


def metered_graph(output: Any, inputs: Any, compiled: Any, number: int, meter: RunMeter) -> Callable[..., Any] | None:
    """The compiled graph, its runs timed by ``meter``.  None where it is exported or stored, and has to be what the
    backend made."""
    if output.export or getattr(output, "package", None) is not None:
        return None
    return meter.graph(_as_dynamo_calls_it(compiled), number, bool(_break_after(output)), _cuda_device(inputs))


def _input_name(node: Any) -> str:
    source = getattr(node, "_dynamo_source", None)
    return str(node.name if source is None else source.name)


def _as_dynamo_calls_it(compiled: Any) -> Any:
    """What Dynamo finds in what a backend returns: a graph module that was to be generated when it is first called
    is generated, and what keeps off the compiler is taken off, since Dynamo puts it on."""
    from torch._dynamo.eval_frame import innermost_fn
    from torch.fx._lazy_graph_module import _LazyGraphModule

    module = getattr(compiled, "__self__", None)
    if isinstance(module, _LazyGraphModule) and compiled.__name__ == "_lazy_forward":
        _LazyGraphModule.force_recompile(module)
        return module.forward
    return innermost_fn(compiled)


def _cuda_device(inputs: Any) -> Any:
    """The first CUDA device that an input lies on."""
    import torch

    devices = (value.device for value in inputs if isinstance(value, torch.Tensor))
    return next((device for device in devices if device.type == "cuda"), None)


def _break_after(output: Any) -> tuple[StackFrame, ...]:
    """The traced stack of the break that ended the graph; empty where the function ended."""
    reason = getattr(output, "compile_subgraph_reason", None)
    return stack_of(reason.user_stack) if reason is not None and reason.graph_break else ()


def _devices(inputs: Any) -> set[str]:
    """The devices that the graph's inputs lie on, with the name of the hardware if torch reports it."""
    import torch

    return {_device_in_words(value.device) for value in inputs if isinstance(value, torch.Tensor)}


def _device_in_words(device: Any) -> str:
    import torch

    if device.type == "cuda":
        # A tensor lies there, so CUDA is initialised: asking for the name starts nothing.
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)
