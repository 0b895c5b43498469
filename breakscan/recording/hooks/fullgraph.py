"""Sets ``fullgraph=True`` aside, so that a run continues after the first break and shows the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from breakscan.recording.hooks.hook import Hook, Hooks


class FullgraphHook(Hook):
    """Sets it aside in all that ``torch.compile`` is asked for.  Where torch lacks what that needs, the program raises
    as it does alone.  Every ``torch.compile`` and ``Module.compile`` goes through ``_optimize``."""

    name = "fullgraph"
    without = "--keep-going could not set fullgraph=True aside"
    wraps = (
        "torch._dynamo.convert_frame:ConvertFrameAssert.__call__",
        "torch._dynamo.symbolic_convert:_get_error_on_graph_break",
        "torch._dynamo.eval_frame:_optimize",
    )
    imported_by = ("torch._dynamo.convert_frame",)
    reads = ("torch._dynamo.convert_frame:_inner_convert", "torch._dynamo.convert_frame:_torchdynamo_orig_backend")

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._converters: WeakSet[Any] = WeakSet()
        self._thread = threading.local()
        self._error_on_break: Callable[[], bool] = lambda: False

    def would_raise(self) -> bool:
        """Return whether a break here, while something is compiled, would reach the user without ``--keep-going``."""
        return getattr(self._thread, "depth", 0) > 0 or self._error_on_break()

    def concerns(self, context: Any) -> bool:
        """Return whether the context that compiles was asked for with ``fullgraph=True``, which is set aside."""
        return _converter_of(context) in self._converters

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def optimize(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("nopython"):
                return original(*args, **kwargs)
            kwargs["nopython"] = False
            context = original(*args, **kwargs)
            converter = _converter_of(context)
            if converter is not None:
                self._converters.add(converter)
            return context

        def call(converter: Any, frame: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
            if converter not in self._converters:
                return original(converter, frame, *args, skip=skip + 1, **kwargs)
            self._thread.depth = getattr(self._thread, "depth", 0) + 1
            try:
                with _what_fullgraph_captures():
                    return original(converter, frame, *args, skip=skip + 1, **kwargs)
            finally:
                self._thread.depth -= 1

        def get_error_on_graph_break() -> bool:
            return False

        if name == "_get_error_on_graph_break":
            self._error_on_break = original
            return get_error_on_graph_break
        return call if name == "__call__" else optimize


def _converter_of(context: Any) -> Any:
    """The object that compiles frames for what ``torch.compile`` gave."""
    compiler = getattr(context, "callback", None)
    while compiler is not None and not hasattr(compiler, "_inner_convert"):
        compiler = getattr(compiler, "_torchdynamo_orig_backend", None)
    return getattr(compiler, "_inner_convert", None)


@contextmanager
def _what_fullgraph_captures() -> Iterator[None]:
    """Captures what ``fullgraph=True`` does: Dynamo captures numbers and sizes that depend on data: what it traces
    there must not break here."""
    from torch._dynamo import config

    patch: Any = config.patch
    with patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield
