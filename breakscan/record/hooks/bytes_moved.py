"""How many bytes the kernels of a graph move.

Wraps ``torch._inductor.graph.GraphLowering.compile_to_module``.  Inductor's ``count_bytes`` is not
what is called: it estimates run times as well, and may run kernels for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breakscan.record.hooks.object_facts import current_compile_id
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.records import BytesMoved

MODULE = "torch._inductor.graph"


@contextmanager
def generated_modules(sink: Callable[[Any], None]) -> Iterator[bool]:
    """Hands each graph that Inductor has generated code for to the sink, while Inductor still works on it.

    ``MODULE`` is loaded already.  Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                module = original(self, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise
            sink(self)
            return module

        return compile_to_module

    with wrapped([f"{MODULE}:GraphLowering"], "compile_to_module", wrap) as available:
        yield available


def bytes_record(graph: Any) -> BytesMoved:
    """What the graph's kernels read and write, as the recording keeps it."""
    return BytesMoved(
        compile_id=current_compile_id(),
        phase="inference" if graph.is_inference else "backward" if graph.is_backward else "forward",
        bytes=int(sum(node.get_read_write_buffers_sizes() for node in graph.scheduler.nodes)),
    )
