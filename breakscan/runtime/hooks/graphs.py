"""The graphs that went to the backend, with their operations and devices.

Wraps ``torch._dynamo.output_graph.OutputGraph.call_user_compiler`` (torch 2.11 to 2.15).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breakscan.runtime.hooks.facts import code_of, current_compile_id
from breakscan.runtime.hooks.patching import wrapped
from breakscan.runtime.recording import GraphCompiled

_OPERATIONS = ("call_function", "call_method", "call_module")


@contextmanager
def compiled_graphs(sink: Callable[[Any, Any, Any], None]) -> Iterator[bool]:
    """Hands each graph that the backend compiled to the sink: its tracer, its module, its example inputs.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_user_compiler(self: Any, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            compiled = original(self, gm, example_inputs, *args, **kwargs)
            sink(self, gm, example_inputs)
            return compiled

        return call_user_compiler

    with wrapped(["torch._dynamo.output_graph:OutputGraph"], "call_user_compiler", wrap) as available:
        yield available


def graph_record(output: Any, module: Any, inputs: Any) -> GraphCompiled:
    """The graph as the recording keeps it."""
    return GraphCompiled(
        compile_id=current_compile_id(),
        frame=code_of(output.root_tx.f_code),
        ops=sum(node.op in _OPERATIONS for node in module.graph.nodes),
        devices=tuple(sorted(_devices(inputs))),
    )


def _devices(inputs: Any) -> set[str]:
    """The devices that the graph's inputs lie on, with the name of the hardware where torch tells it."""
    import torch

    return {_device_in_words(value.device) for value in inputs if isinstance(value, torch.Tensor)}


def _device_in_words(device: Any) -> str:
    import torch

    if device.type == "cuda":
        # A tensor lies there, so CUDA is initialised: asking for the name starts nothing.
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)
