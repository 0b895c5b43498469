"""Sets ``fullgraph=True`` aside, so that a run continues after the first break and shows the others.

Wraps ``torch._dynamo.eval_frame._optimize``, through which every ``torch.compile`` and ``Module.compile`` goes,
``torch._dynamo.convert_frame.ConvertFrameAssert.__call__``, and ``_get_error_on_graph_break`` of
``torch._dynamo.symbolic_convert`` and ``torch._dynamo.convert_frame``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from breakscan.record.hooks.patching import wrapped

_OPTIMIZE = ["torch._dynamo.eval_frame"]
_CONVERTERS = ["torch._dynamo.convert_frame:ConvertFrameAssert"]
_READERS = ["torch._dynamo.symbolic_convert", "torch._dynamo.convert_frame"]


class FullgraphAside:
    """What was asked for with ``fullgraph=True``, and whether this thread compiles some of it right now."""

    def __init__(self) -> None:
        self._converters: WeakSet[Any] = WeakSet()
        self._thread = threading.local()
        self._error_on_break: Callable[[], bool] = lambda: False

    def would_raise(self) -> bool:
        """Whether a break here, while something is compiled, would reach the user without ``--keep-going``."""
        return getattr(self._thread, "depth", 0) > 0 or self._error_on_break()

    def concerns(self, context: Any) -> bool:
        """Whether the context that compiles was asked for with ``fullgraph=True``, which is set aside."""
        return _converter_of(context) in self._converters

    @contextmanager
    def installed(self) -> Iterator[bool]:
        """Sets ``fullgraph=True`` aside in all that ``torch.compile`` is asked for while the block runs.

        Yields False where this torch has not what that needs: the program raises then, as it does alone.
        """
        with (
            wrapped(_CONVERTERS, "__call__", self._wrap_convert) as converts,
            wrapped(_READERS, "_get_error_on_graph_break", self._wrap_reader) as reads,
            wrapped(_OPTIMIZE, "_optimize", self._wrap_optimize if converts else _as_it_is) as optimizes,
        ):
            yield converts and reads and optimizes

    def _wrap_optimize(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def optimize(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("nopython"):
                return original(*args, **kwargs)
            kwargs["nopython"] = False
            context = original(*args, **kwargs)
            converter = _converter_of(context)
            if converter is not None:
                self._converters.add(converter)
            return context

        return optimize

    def _wrap_convert(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(converter: Any, frame: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
            if converter not in self._converters:
                return original(converter, frame, *args, skip=skip + 1, **kwargs)
            self._thread.depth = getattr(self._thread, "depth", 0) + 1
            try:
                with _what_fullgraph_captures():
                    return original(converter, frame, *args, skip=skip + 1, **kwargs)
            finally:
                self._thread.depth -= 1

        return call

    def _wrap_reader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        self._error_on_break = original

        def get_error_on_graph_break() -> bool:
            return False

        return get_error_on_graph_break


def _as_it_is(original: Callable[..., Any]) -> Callable[..., Any]:
    def optimize(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    return optimize


def _converter_of(context: Any) -> Any:
    """The object that compiles frames for what ``torch.compile`` gave."""
    compiler = getattr(context, "callback", None)
    while compiler is not None and not hasattr(compiler, "_inner_convert"):
        compiler = getattr(compiler, "_torchdynamo_orig_backend", None)
    return getattr(compiler, "_inner_convert", None)


@contextmanager
def _what_fullgraph_captures() -> Iterator[None]:
    """With ``fullgraph=True``, Dynamo captures numbers and sizes that depend on data: what it traces there must not
    break here."""
    from torch._dynamo import config

    patch: Any = config.patch
    with patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield
