"""Hooks into calls of torch.compile, frames that Dynamo skips silently, and code that is loaded compiled."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from typing import Any
from weakref import WeakSet

from breakscan.recording.hooks.hook import Hook, Hooks
from breakscan.recording.hooks.object_facts import calling_stack, code_of
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.records import Code, CompileCalled, FrameEnded, PackageInstalled


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
            from torch._dynamo import config

            patch: Any = config.patch
            self._thread.depth = getattr(self._thread, "depth", 0) + 1
            try:
                # As under ``fullgraph=True``: what is captured there must not break here.
                with patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
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


class TargetHook(Hook):
    """Records each function or module that ``torch.compile`` is asked for."""

    name = "targets"
    without = "what torch.compile was called for is missing"
    wraps = ("torch._dynamo.eval_frame:OptimizeContext.__call__",)
    reads = (
        "torch._dynamo.convert_frame:_torchdynamo_orig_backend", "torch._dynamo.eval_frame:_torchdynamo_orig_callable",
        "torch.nn.modules.module:_compiled_call_impl", "torch.nn.modules.module:_call_impl",
        "torch.nn.modules.module:_wrapped_call_impl",
    )  # fmt: skip

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self.codes: set[Code] = set()

    def before(self, context: Any, fn: Any, *_: Any, **__: Any) -> None:
        subject, compiler = _what_it_stands_for(fn), _compiler_of(context)
        record = CompileCalled(
            target=name_of(subject),
            code=_code(_function(subject)),
            stack=calling_stack(sys._getframe(1)),
            key=id(context.callback),
            backend=getattr(compiler, "compiler_name", None) or getattr(compiler, "__name__", None),
            fullgraph=bool(getattr(context, "fullgraph", False)) or self.hooks.of(FullgraphHook).concerns(context),
            settings=_settings_of(compiler),
        )
        if record.code:
            self.codes.add(record.code)
        key = self.hooks.of(RunHook).key_of(context)
        self.hooks.write(record if key is None else replace(record, key=key))


class SkipHook(Hook):
    """Records the frames that the compiler skips silently.  It passes over hundreds, rightly: what the user asked to
    compile is what counts."""

    name = "skips"
    without = "compiled functions that the compiler passes over in silence may be missing"
    wraps = ("torch._dynamo.convert_frame:CatchErrorsWrapper._handle_skip",)
    """Since torch 2.13."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._skipped: set[tuple[Code, str]] = set()

    def before(self, wrapper: Any, result: Any, frame: Any, *_: Any, **__: Any) -> None:
        reason = getattr(result, "skip_reason", None)
        if reason is not None and getattr(result, "guarded_code", None) is None:
            self.record(frame.f_code, reason)

    def record(self, code: CodeType, reason: str) -> None:
        """Records a skip once."""
        frame = code_of(code)
        if frame in self.hooks.of(TargetHook).codes and (frame, reason) not in self._skipped:
            self._skipped.add((frame, reason))
            self.hooks.write(FrameEnded(frame, None, reason, (), raised=False, limit=False))


class PackageHook(Hook):
    """Records functions whose compiled code was made by an earlier process
    (``torch._dynamo.config.caching_precompile``): nothing is compiled then, and nothing in the trace reports it."""

    name = "packages"
    without = "functions that were loaded compiled are shown as never called"
    wraps = ("torch._dynamo.package:CompilePackage.install",)
    reads = ("torch._dynamo.package:_codes",)
    during_exports = True

    def after(self, _: Any, package: Any, *__: Any, **___: Any) -> None:
        self.hooks.write(PackageInstalled(tuple(map(code_of, package._codes)), calling_stack(sys._getframe(1))))


def is_compiled(function: object) -> bool:
    """Return whether it is what ``torch.compile`` returned, or a module whose ``compile()`` was called."""
    if getattr(function, "_compiled_call_impl", None) is not None:
        return True
    # A module looks for an attribute among its children: ask the object itself.
    return "_torchdynamo_orig_callable" in getattr(function, "__dict__", {}) or hasattr(type(function), "dynamo_ctx")


def _compiler_of(context: Any) -> Any:
    """The backend without the wrappers of Dynamo."""
    compiler = context.callback
    while (inner := getattr(compiler, "_torchdynamo_orig_backend", None)) is not None:
        compiler = inner
    return compiler


def _settings_of(compiler: Any) -> dict[str, str]:
    """Inductor's wrapper holds the options of a mode in place of its name."""
    given = {"dynamic": getattr(compiler, "dynamic", None), "options": getattr(compiler, "config", None)}
    others = getattr(compiler, "kwargs", None)
    given |= others if type(others) is dict else {}
    return {name: repr(value) for name, value in given.items() if _is_plain(value) and value not in (None, {})}


def _is_plain(value: Any) -> bool:
    """Return whether Python reads the value again from its ``repr``."""
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


def written_code(subject: Any) -> Code | None:
    """The code of a function, or of the ``forward`` of a module, below the decorators, which an export runs as it does
    all other code."""
    function = _function(subject)
    return _code(inspect.unwrap(function) if callable(function) else function)


def _function(subject: Any) -> Any:
    import torch

    return type(subject).forward if isinstance(subject, torch.nn.Module) else subject


def _code(function: Any) -> Code | None:
    code = getattr(function, "__code__", None)
    return code_of(code) if isinstance(code, CodeType) else None
