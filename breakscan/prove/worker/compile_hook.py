"""Hooks into ``torch.compile``: each callable that it returns is replaced by another one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, Protocol

from breakscan.prove.worker.protocol import CompileOption


class Wrapping(Protocol):
    """Decides what the program gets instead of a compiled callable."""

    def __call__(self, original: Any, compiled: Callable[..., object], context: Any) -> Callable[..., object]: ...


class CompileHook:
    """``wrap`` is asked for each compiled function, ``made_module`` is called with each module that ``torch.compile``
    returned, and the number of compiled callables before it was made."""

    def __init__(self, wrap: Wrapping, count: Callable[[], int], made_module: Callable[[Any, int], None]) -> None:
        self.contexts: list[Any] = []
        self._wrap = wrap
        self._count = count
        self._made_module = made_module
        self._paused = False

    def install(self, _: ModuleType) -> None:
        """Hooks in.  Called after ``torch._dynamo`` has been imported."""
        import torch
        from torch._dynamo.eval_frame import OptimizeContext

        original: Any = OptimizeContext.__call__

        def call(context: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._count()
            compiled = original(context, fn, *args, **kwargs)
            self.contexts.append(context)
            if isinstance(compiled, torch.nn.Module):
                self._made_module(compiled, known)
            if self._paused or not isinstance(compiled, FunctionType):
                return compiled
            return self._wrap(fn, compiled, context)

        disguise(call, original)
        OptimizeContext.__call__ = call  # type: ignore[method-assign,assignment]

    def compile(self, fn: Callable[..., object], options: Mapping[str, CompileOption]) -> tuple[Any, Any]:
        """What ``torch.compile`` returns for these keyword arguments, not wrapped, and Dynamo's context of it."""
        import torch
        from torch._dynamo.eval_frame import OptimizeContext

        # The hook may be gone: the recorder restores what was there before both.
        below: Any = OptimizeContext.__call__
        contexts = []

        def call(context: Any, *args: Any, **kwargs: Any) -> Any:
            contexts.append(context)
            return below(context, *args, **kwargs)

        disguise(call, below)
        self._paused = True
        OptimizeContext.__call__ = call  # type: ignore[method-assign,assignment]
        keywords: dict[str, Any] = dict(options)
        try:
            compiled = torch.compile(fn, **keywords)
        finally:
            OptimizeContext.__call__ = below  # type: ignore[method-assign]
            self._paused = False
        return compiled, contexts[-1] if contexts else None

    def compile_like(
        self, fn: Callable[..., object], context: Callable[..., Callable[..., object]]
    ) -> Callable[..., object]:
        """What the ``torch.compile`` call that made Dynamo's context returns for another function, not wrapped."""
        self._paused = True
        try:
            return context(fn)
        finally:
            self._paused = False

    def remove_timers(self) -> None:
        """Removes the recorder's hooks from what ``torch.compile`` made: they would be timed, too."""
        for context in self.contexts:
            hooks = context.enter_exit_hooks
            hooks[:] = [hook for hook in hooks if not hasattr(hook, "meter")]


def innermost(fn: Any) -> Callable[..., object]:
    """What was compiled, without the wrappers of Dynamo around it."""
    while (inner := getattr(fn, "_torchdynamo_orig_callable", None)) is not None:
        fn = inner
    original: Callable[..., object] = fn
    return original


def stands_for(compiled: Callable[..., object], call: Callable[..., object]) -> Callable[..., object]:
    """``call`` as a callable that Dynamo takes for ``compiled``."""

    @functools.wraps(compiled)
    def called(*args: object, **kwargs: object) -> object:
        return call(*args, **kwargs)

    disguise(called, compiled)
    called._torchdynamo_wrapper_id = id(called)  # type: ignore[attr-defined]
    return called


def disguise(ours: Any, original: Any) -> None:
    """Dynamo skips the files of torch: it has to skip our function as well."""
    code = original.__code__
    ours.__code__ = ours.__code__.replace(co_filename=code.co_filename, co_name=code.co_name)
