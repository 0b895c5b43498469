"""Why graphs do not run as CUDA graphs.

Wraps ``log_cudagraph_skip_and_bump_counter`` of ``torch._inductor.cudagraph_utils``: what is found
only when a graph runs reaches neither trace nor metrics.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breakscan.record.hooks.object_facts import current_compile_id
from breakscan.record.hooks.patching import wrapped
from breakscan.record.records import CudaGraphSkipped

MODULE = "torch._inductor.cudagraph_utils"
_IMPORTERS = (
    "torch._inductor.compile_fx",
    "torch._inductor.output_code",
    "torch._inductor.cudagraph_trees",
    "torch._dynamo.backends.cudagraphs",
)
"""They import the function by its name."""
_NAME = "log_cudagraph_skip_and_bump_counter"


@contextmanager
def cudagraph_skips(sink: Callable[[str], None]) -> Iterator[bool]:
    """Hands the reason of each skip to the sink.

    ``MODULE`` is loaded already.  Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def log_skip(msg: str, *args: Any, **kwargs: Any) -> Any:
            sink(msg)
            return original(msg, *args, **kwargs)

        return log_skip

    module = sys.modules[MODULE]
    original = getattr(module, _NAME, None)
    with wrapped([MODULE, *(name for name in _IMPORTERS if name in sys.modules)], _NAME, wrap) as available:
        replacement = getattr(module, _NAME, None)
        try:
            yield available
        finally:
            for name in _IMPORTERS:
                # Imported since, it took the wrapper.
                late = sys.modules.get(name)
                if available and getattr(late, _NAME, None) is replacement:
                    setattr(late, _NAME, original)


def skip_record(reason: str) -> CudaGraphSkipped:
    """The skip as the recording keeps it."""
    return CudaGraphSkipped(current_compile_id(), reason)
