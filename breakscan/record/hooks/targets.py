"""What the program asked torch.compile for, and what of it Dynamo passed over in silence.

Wraps ``torch._dynamo.eval_frame.OptimizeContext.__call__`` and
``torch._dynamo.convert_frame.CatchErrorsWrapper._handle_skip`` (since torch 2.13).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from breakscan.record.hooks.object_facts import calling_stack, code_of
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.records import Code, CompileCalled, FrameEnded


@contextmanager
def compile_calls(sink: Callable[[Any, Any], None]) -> Iterator[bool]:
    """Hands each function or module that ``torch.compile`` is asked for to the sink, with the context that compiles it.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
            sink(self, fn)
            try:
                return original(self, fn, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise

        return call

    with wrapped(["torch._dynamo.eval_frame:OptimizeContext"], "__call__", wrap) as available:
        yield available


@contextmanager
def silent_skips(sink: Callable[[CodeType, str], None]) -> Iterator[bool]:
    """Hands the code of each frame that Dynamo passes over, with its reason, to the sink.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def handle_skip(self: Any, result: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            reason = getattr(result, "skip_reason", None)
            if reason is not None and getattr(result, "guarded_code", None) is None:
                sink(frame.f_code, reason)
            return original(self, result, frame, *args, **kwargs)

        return handle_skip

    with wrapped(["torch._dynamo.convert_frame:CatchErrorsWrapper"], "_handle_skip", wrap) as available:
        yield available


def compile_record(context: Any, target: Any) -> CompileCalled:
    """The call as the recording keeps it."""
    subject = _what_it_stands_for(target)
    return CompileCalled(
        target=name_of(subject),
        code=traced_code(subject),
        stack=calling_stack(sys._getframe(1)),
        key=id(context.callback),
        backend=_backend_of(context),
        fullgraph=bool(getattr(context, "fullgraph", False)),
        settings=_settings_of(context),
    )


def skip_record(code: CodeType, reason: str) -> FrameEnded:
    """The skip as the recording keeps it."""
    return FrameEnded(code_of(code), None, reason, (), raised=False, limit=False)


def is_compiled(function: object) -> bool:
    """Whether it is what ``torch.compile`` returned, or a module whose ``compile()`` was called."""
    if getattr(function, "_compiled_call_impl", None) is not None:
        return True
    # A module looks for an attribute among its children: ask the object itself.
    return "_torchdynamo_orig_callable" in getattr(function, "__dict__", {}) or hasattr(type(function), "dynamo_ctx")


def _backend_of(context: Any) -> str | None:
    compiler = _compiler_of(context)
    return getattr(compiler, "compiler_name", None) or getattr(compiler, "__name__", None)


def _compiler_of(context: Any) -> Any:
    """The backend without the wrappers of Dynamo."""
    compiler = context.callback
    while (inner := getattr(compiler, "_torchdynamo_orig_backend", None)) is not None:
        compiler = inner
    return compiler


def _settings_of(context: Any) -> dict[str, str]:
    """Inductor's wrapper holds the options that a mode stands for in its place."""
    compiler = _compiler_of(context)
    given = {"dynamic": getattr(compiler, "dynamic", None), "options": getattr(compiler, "config", None)}
    others = getattr(compiler, "kwargs", None)
    given |= others if type(others) is dict else {}
    return {name: repr(value) for name, value in given.items() if _is_plain(value) and value not in (None, {})}


def _is_plain(value: Any) -> bool:
    """Whether Python reads the value again from its ``repr``."""
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _what_it_stands_for(target: Any) -> Any:
    """The module of a bound method; the original function of a compiled one."""
    import torch

    while (inner := getattr(target, "_torchdynamo_orig_callable", None)) is not None:
        target = inner
    owner = getattr(target, "__self__", None)
    if isinstance(owner, torch.nn.Module) and target.__name__ in ("_call_impl", "_wrapped_call_impl", "__call__"):
        return owner
    return target


def name_of(subject: Any) -> str:
    """The name of a function, or of the class of a module."""
    named = subject if hasattr(subject, "__qualname__") else type(subject)
    return str(named.__qualname__)


def traced_code(subject: Any) -> Code | None:
    """The code that is to be traced: of a module its ``forward``."""
    return _code(_function(subject))


def written_code(subject: Any) -> Code | None:
    """The same, below the decorators, which an export runs as it does all other code."""
    function = _function(subject)
    return _code(inspect.unwrap(function) if callable(function) else function)


def _function(subject: Any) -> Any:
    import torch

    return type(subject).forward if isinstance(subject, torch.nn.Module) else subject


def _code(function: Any) -> Code | None:
    code = getattr(function, "__code__", None)
    return code_of(code) if isinstance(code, CodeType) else None
