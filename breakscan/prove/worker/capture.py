"""Captures the first calls of each outermost compiled callable of the program, with the state that they reach.

The program's own calls run eager.  Nothing is compiled before the calls are measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from breakscan.prove.worker.captured_call import CapturedCall, CapturedCallable
from breakscan.prove.worker.compile_hook import CompileHook, innermost, stands_for
from breakscan.prove.worker.protocol import StateDigests
from breakscan.prove.worker.random_state import rng_state
from breakscan.prove.worker.state_snapshot import StateSnapshot
from breakscan.prove.worker.tensor_values import digests
from breakscan.prove.worker.torch_modes import Modes, eager_stance

if TYPE_CHECKING:
    from torch.nn import Module

MOST_CALLABLES = 4
"""Compiled callables that are captured; others are only named."""


class ProgramStopped(BaseException):
    """All calls have been captured: the program ends here."""


class Capture:
    """``calls`` of each callable are captured.

    ``full`` is called, within the last of them, when there is nothing left to wait for; then the program is stopped.
    If the last one is the only one, it is called within the next call, as the program may run a backward pass before.
    The program gets ``patience`` more seconds to call what it has compiled and not called yet.
    """

    def __init__(self, calls: int, patience: float, full: Callable[[], None]) -> None:
        self.callables: list[CapturedCallable] = []
        self.left_out: list[str] = []
        self.stopping = False
        self.failed: tuple[str, BaseException] | None = None
        """The callable that raised last, and the exception."""
        self.hook = CompileHook(self._wrap, lambda: len(self.callables), self._made_module)
        self._calls = calls
        self._patience = patience
        self._full = full
        self._busy = False
        self._thread = threading.get_ident()
        self._full_since: float | None = None

    @property
    def captured(self) -> list[CapturedCallable]:
        """The callables of which a call was captured."""
        return [one for one in self.callables if one.calls]

    def _wrap(self, original: Any, compiled: Callable[..., object], context: Any) -> Callable[..., object]:
        original = innermost(original)
        captured = CapturedCallable(_name(original), original, compiled, context=context)
        self.callables.append(captured)

        def call(*args: object, **kwargs: object) -> object:
            if self._busy or threading.get_ident() != self._thread:
                captured.passed = captured.passed or not captured.calls
                return compiled(*args, **kwargs)
            return self._called(captured, args, kwargs)

        return stands_for(compiled, call)

    def _made_module(self, module: Any, known: int) -> None:
        """``torch.compile`` was given a module: it returns another one, around the callables that it made for it."""
        for captured in self.callables[known:]:
            captured.module = module

    def _called(self, captured: CapturedCallable, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        self._busy = True
        try:
            if self.stopping:
                raise ProgramStopped
            if not captured.calls and len(self.captured) >= MOST_CALLABLES and not captured.passed:
                self.left_out.append(captured.name)
                captured.passed = True
            if not captured.passed or captured.calls:
                self._take(captured, args, kwargs)
            try:
                with eager_stance():
                    result = captured.original(*args, **kwargs)
            except Exception as error:
                self.failed = captured.name, error
                raise
            if captured.calls:
                captured.calls[-1].has_returned = True
                _watch_backward(captured.calls[-1], result)
            return result
        finally:
            self._busy = False

    def _take(self, captured: CapturedCallable, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        if len(captured.calls) < self._calls:
            modules: dict[str, Module] = {}
            args, kwargs = _cut_off(args), _cut_off(kwargs)
            inputs = StateSnapshot({"args": args, "kwargs": kwargs}, modules)
            captured.calls.append(CapturedCall(args, kwargs, inputs, rng_state(), Modes.now()))
            if len(captured.calls) in (1, self._calls):
                captured.state = state_of(captured, modules)
            if len(captured.calls) == 1 and captured.state is not None:
                first = captured.calls[0]
                first.state = captured.state
                values = {**captured.state.values, **inputs.values}
                captured.start = StateDigests(digests(values), digests(first.rng))
        if self._is_full():
            self.stopping = True
            self._full()
            raise ProgramStopped

    def _is_full(self) -> bool:
        if any(len(one.calls) < self._calls or one.may_run_backward for one in self.captured):
            self._full_since = None
            return False
        self._full_since = self._full_since or time.monotonic()
        waits = any(not one.calls and not one.passed for one in self.callables)
        return not waits or time.monotonic() - self._full_since > self._patience

    def finish(self) -> None:
        """Takes the state that is still missing when the program ends by itself."""
        for captured in self.captured:
            if len(captured.calls) < self._calls:
                modules: dict[str, Module] = {}
                last = captured.calls[-1]
                StateSnapshot({"args": last.args, "kwargs": last.kwargs}, modules)
                captured.state = state_of(captured, modules)


def state_of(captured: CapturedCallable, modules: dict[str, Module]) -> StateSnapshot:
    """What the callable can reach, and the modules among its arguments."""
    import torch

    subject = subject_of(captured.original)
    owner = getattr(subject, "__self__", None)
    roots: dict[str, object] = {"": getattr(subject, "__func__", subject)}
    if owner is not None:
        roots = {"self": owner, "": subject.__func__}
    if isinstance(subject, torch.nn.Module):
        roots = {"self": subject}
    return StateSnapshot({**roots, **modules})


def subject_of(original: Any) -> Any:
    """What is compiled, without the wrapper that Dynamo puts around callables that have no code of the user's."""
    while not hasattr(original, "__self__") and (inner := getattr(original, "__wrapped__", None)) is not None:
        if not getattr(original, "__globals__", {}).get("__name__", "").startswith("torch."):
            break
        original = inner
    return original


def _cut_off(tree: Any) -> Any:
    """Returns the arguments with a leaf in place of each tensor that depends on earlier computations, whose backward
    pass can run only once.
    """
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    def is_inner(leaf: object) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.requires_grad and not leaf.is_leaf

    if not any(map(is_inner, tree_leaves(tree))):
        return tree
    return tree_map(lambda leaf: leaf.detach().requires_grad_() if is_inner(leaf) else leaf, tree)


def _watch_backward(call: CapturedCall, result: object) -> None:
    import torch
    from torch.utils._pytree import tree_leaves

    def seen(*_: object) -> None:
        call.backward = True

    for leaf in tree_leaves(result):
        if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None:
            leaf.grad_fn.register_prehook(seen)


def _name(original: Any) -> str:
    import torch

    subject = subject_of(original)
    for one in (subject, getattr(subject, "__self__", None)):
        if isinstance(one, torch.nn.Module):
            return type(one).__qualname__
    return str(getattr(subject, "__qualname__", type(subject).__qualname__))
