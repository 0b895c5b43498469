"""Hooks into calls of torch.compile, frames that Dynamo skips silently, code that is loaded compiled, and exports with
``torch.export`` or compiles ahead of time with AOTInductor."""

import inspect
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from types import CodeType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet, ref

from breakscan.recording.hooks.hook import Hook, Hooks, calling_stack, code_of, leave_no_trace, stack_of
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.parsers.frames import is_written_by_fx
from breakscan.recording.records import Code, CompileCalled, ExportEnded, FrameEnded, PackageInstalled, StackFrame


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
        self._asked: dict[int, ref[Any]] = {}

    def before(self, context: Any, fn: Any, *_: Any, **__: Any) -> None:
        subject, compiler = _what_it_stands_for(fn), _compiler_of(context)
        key = self.hooks.of(RunHook).key_of(context, subject)
        record = CompileCalled(
            target=name_of(subject),
            code=_code(_function(subject)),
            stack=calling_stack(sys._getframe(1)),
            key=id(context.callback) if key is None else key,
            backend=getattr(compiler, "compiler_name", None) or getattr(compiler, "__name__", None),
            fullgraph=bool(getattr(context, "fullgraph", False)) or self.hooks.of(FullgraphHook).concerns(context),
            settings=_settings_of(compiler),
            again=self._is_again(subject),
        )
        if record.code:
            self.codes.add(record.code)
        self.hooks.write(record)

    def _is_again(self, subject: Any) -> bool:
        """Return whether the object was asked for before; of functions that are made anew, their code."""
        owner = getattr(subject, "__self__", None)
        about = getattr(subject, "__code__", subject) if owner is None else owner
        held = self._asked.get(id(about))
        with suppress(TypeError):
            self._asked[id(about)] = ref(about)
        return held is not None and held() is about


class SkipHook(Hook):
    """Records the frames that the compiler skips silently.  Of hundreds, what the user asked for counts."""

    name = "skips"
    without = "compiled functions that the compiler passes over in silence may be missing"
    wraps = ("torch._dynamo.convert_frame:CatchErrorsWrapper._handle_skip",)  # since torch 2.13

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._skipped: set[tuple[Code, str]] = set()

    def before(self, wrapper: Any, result: Any, frame: Any, *_: Any, **__: Any) -> None:
        reason = getattr(result, "skip_reason", None)
        if reason is not None and getattr(result, "guarded_code", None) is None:
            self.record(frame.f_code, reason)

    def record(self, code: CodeType, reason: str) -> None:
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
    """The code of a function, or of the ``forward`` of a module, below the decorators, which an export runs as well."""
    function = _function(subject)
    return _code(inspect.unwrap(function) if callable(function) else function)


def _function(subject: Any) -> Any:
    import torch

    return type(subject).forward if isinstance(subject, torch.nn.Module) else subject


def _code(function: Any) -> Code | None:
    code = getattr(function, "__code__", None)
    return code_of(code) if isinstance(code, CodeType) else None


class ExportHook(Hook):
    """Records each outermost export: every one goes through ``_export``."""

    name = "exports"
    without = "what torch.export.export exported, and why that failed, is missing"
    wraps: ClassVar[tuple[str, ...]] = ("torch.export._trace:_export",)
    imported_by = ("torch.export._draft_export",)
    waits_for: ClassVar[str | None] = "torch.export._trace"
    during_exports = True
    way = "export"
    holds = 1  # the depth that a call adds while it runs: not, where what is compiled meanwhile is the program's

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self.exported: WeakKeyDictionary[Any, tuple[str, Code | None]] = WeakKeyDictionary()

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        begin, end, depth = self.guarded(self._begun), self.guarded(self._ended), self.hooks.exporting

        def export(*args: Any, **kwargs: Any) -> Any:
            begun = None if depth.level else begin(original, args, kwargs)
            depth.level += self.holds
            try:
                with self.names_as_alone() if isinstance(self, DraftHook) else nullcontext():
                    result = original(*args, **kwargs)
            except Exception as error:
                if begun is not None:
                    end(begun, None, error)
                leave_no_trace(error)
                raise
            finally:
                depth.level -= self.holds
            if begun is not None:
                end(begun, result, None)
            return result

        return export

    def _begun(self, original: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ExportEnded:
        given = inspect.signature(original).bind(*args, **kwargs)
        given.apply_defaults()
        subject = next(iter(given.arguments.values()))
        ahead = isinstance(self, AheadHook)
        known = self.hooks.of(ExportHook).exported.get(subject) if ahead else None
        target, code = known or (name_of(subject), None if ahead else written_code(subject))
        strict, stack = given.arguments.get("strict"), calling_stack(sys._getframe(1))
        strict = None if strict is None else bool(strict)
        return ExportEnded(self.way, target, code, stack, strict, time.perf_counter(), 0.0, None, None, "", ())

    def _ended(self, begun: ExportEnded, result: Any, error: Exception | None) -> None:
        ended = replace(begun, seconds=time.perf_counter() - begun.at)
        if error is not None:
            ended = replace(ended, error=type(error).__name__, text=str(error), failed_at=_stack_of_failure(error))
        elif (graph := getattr(getattr(result, "graph_module", None), "graph", None)) is not None:
            self.hooks.of(ExportHook).exported[result] = begun.target, begun.code
            ended = replace(ended, ops=sum(node.op == "call_function" for node in graph.nodes))
        self.hooks.write(ended)


class DraftHook(ExportHook):
    """The same for ``draft_export``, which leaves files out of its report that torch numbered before: without our
    handler of the trace, those before its first record and in earlier drafts alone, unless the program has it on."""

    name = "drafts"
    without = "what draft_export exported is missing"
    wraps = ("torch.export._draft_export:draft_export",)
    waits_for = "torch.export._draft_export"
    way = "draft_export"
    _alone: dict[str, int] | None = None

    def saw(self, metadata: Mapping[str, Any]) -> None:
        """A record of the trace: torch's own handler stands until the first one, which names of files precede."""
        if self._alone is None and "str" not in metadata:
            from torch._logging.structured import INTERN_TABLE

            self._alone = dict(INTERN_TABLE)

    @contextmanager
    def names_as_alone(self) -> Iterator[None]:
        """While the block runs, torch knows the names of files that it would know without us."""
        from torch._logging.structured import INTERN_TABLE as table

        if os.environ.get("TORCH_TRACE"):
            yield
            return
        with_us = dict(table)
        table.clear()
        table.update(self._alone or {})
        try:
            yield
        finally:
            self._alone = dict(table)
            table.clear()
            table.update(with_us)


class AheadHook(ExportHook):
    """The same for AOTInductor."""

    name = "ahead"
    without = "what AOTInductor compiled is missing"
    wraps = ("torch._inductor:aoti_compile_and_package", "torch._inductor:aot_compile")
    waits_for = "torch._inductor"
    way = "aot_inductor"


class AotHook(ExportHook):
    """The same for ``aot_compile`` of what ``torch.compile`` gave.  The program runs what is compiled there."""

    name = "aot"
    without = "what aot_compile compiled, and why that failed, is missing"
    wraps = ("torch._dynamo.aot_compile:aot_compile_fullgraph",)
    waits_for = None
    way = "aot_compile"
    holds = 0


MODULES = tuple(hook.waits_for for hook in (ExportHook, DraftHook, AheadHook) if hook.waits_for)
"""The modules whose functions are wrapped as soon as they are loaded: a program may import functions from them then."""


def _stack_of_failure(error: Exception) -> tuple[StackFrame, ...]:
    """The traced frames where Dynamo traced, else those of the exception, but for code that torch writes."""
    frames = traceback.extract_tb(error.__traceback__)
    own = (frame for frame in frames if not is_written_by_fx(frame.filename))
    return stack_of(getattr(error, "real_stack", None)) or stack_of(own)
