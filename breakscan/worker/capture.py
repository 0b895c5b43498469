"""Captures what the program hands to what ``torch.compile`` gave it: the first calls of each outermost compiled
callable, with the state that they reach.

While it is captured, the program's own calls run eager: what is compiled is compiled later, for measuring alone.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from breakscan.worker.state_snapshot import StateSnapshot, digests, rng_state
from breakscan.worker.torch_modes import Modes

MOST_DOORS = 4
"""Compiled callables that are captured; more are named."""


class ProgramStopped(BaseException):
    """All that is wanted has been captured: the program ends here."""


@dataclass(slots=True)
class CapturedCall:
    """One call: its arguments, the values in them, and what it ran under.  ``state`` is what it found beside its
    inputs, where that is kept: of a first call, which often finds what later ones do not.  ``backward`` says that the
    program went back through its result."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: StateSnapshot
    rng: dict[str, Any]
    modes: Modes
    state: StateSnapshot | None = None
    backward: bool = False


@dataclass(slots=True)
class CapturedCallable:
    """One compiled callable.  ``original`` is what was compiled, ``compiled`` what ``torch.compile`` gave for it,
    ``state`` what its last captured call could reach beside its inputs."""

    name: str
    original: Callable[..., Any]
    compiled: Callable[..., Any]
    cases: list[CapturedCall] = field(default_factory=list)
    state: StateSnapshot | None = None
    start: dict[str, str] = field(default_factory=dict)
    """Digests of all that the first call could reach: what the program has come to before it."""
    context: Any = None
    """What ``torch.compile`` was told, as Dynamo keeps it."""
    module: Any = None
    """The module that ``torch.compile`` gave, where it was given one."""
    passed: bool = False
    """It is not waited for: there are too many callables, or it runs within another one."""

    @property
    def entry(self) -> Callable[..., Any]:
        """What the program calls: a module around ``compiled`` takes time as well."""
        if self.module is None:
            return self.compiled
        self.module.forward = self.compiled
        module: Callable[..., Any] = self.module
        return module

    @property
    def backward(self) -> bool:
        """Whether the program goes back through its results; behind the last captured call it is stopped."""
        return any(case.backward for case in self.cases)


class Capture:
    """``calls`` of each callable are captured.  ``full`` is called, within the last of them, when there is nothing left
    to wait for; then the program is stopped.  For what is compiled and not called yet, the program is given
    ``patience`` seconds more."""

    def __init__(self, calls: int, patience: float, full: Callable[[], None]) -> None:
        self.doors: list[CapturedCallable] = []
        self.left_out: list[str] = []
        self.contexts: list[Any] = []
        self.stopping = False
        self.failed: tuple[str, BaseException] | None = None
        """The callable that raised last, and what."""
        self._calls = calls
        self._patience = patience
        self._full = full
        self._busy = False
        self._doorless = False
        self._thread = threading.get_ident()
        self._full_since: float | None = None

    def hook(self, _: ModuleType) -> None:
        """Puts a door before all that torch.compile gives from now on.  Behind the import of ``torch._dynamo``."""
        from torch._dynamo.eval_frame import OptimizeContext

        original: Any = OptimizeContext.__call__
        capture = self

        def call(context: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
            known = len(capture.doors)
            compiled = original(context, fn, *args, **kwargs)
            capture.contexts.append(context)
            if isinstance(compiled, _module_class()):
                # Around what it has been given for the calls of the module.
                for door in capture.doors[known:]:
                    door.module = compiled
            if capture._doorless or not isinstance(compiled, FunctionType):
                return compiled
            return capture.door(fn, compiled, context)

        _disguise(call, original)
        OptimizeContext.__call__ = call  # type: ignore[method-assign,assignment]

    def compile(self, fn: Any, how: Mapping[str, Any]) -> tuple[Any, Any]:
        """What ``torch.compile`` gives when it is told ``how``, without a door before it, and Dynamo's context of
        it."""
        import torch
        from torch._dynamo.eval_frame import OptimizeContext

        # The hook may be gone: the recorder puts back what stood there before both.
        below: Any = OptimizeContext.__call__
        contexts = []

        def call(context: Any, *args: Any, **kwargs: Any) -> Any:
            contexts.append(context)
            return below(context, *args, **kwargs)

        _disguise(call, below)
        self._doorless = True
        OptimizeContext.__call__ = call  # type: ignore[method-assign,assignment]
        try:
            compiled = torch.compile(fn, **how)
        finally:
            OptimizeContext.__call__ = below  # type: ignore[method-assign]
            self._doorless = False
        return compiled, contexts[-1] if contexts else None

    def door(self, fn: Any, compiled: Any, context: Any) -> Any:
        """Stands for ``compiled``, and looks at its calls."""
        while (inner := getattr(fn, "_torchdynamo_orig_callable", None)) is not None:
            fn = inner
        door = CapturedCallable(_name(fn), fn, compiled, context=context)
        self.doors.append(door)
        capture = self

        @functools.wraps(compiled)
        def called(*args: Any, **kwargs: Any) -> Any:
            if capture._busy or threading.get_ident() != capture._thread:
                door.passed = door.passed or not door.cases
                return compiled(*args, **kwargs)
            return capture._called(door, args, kwargs)

        _disguise(called, compiled)
        called._torchdynamo_wrapper_id = id(called)  # type: ignore[attr-defined]
        return called

    @property
    def captured(self) -> list[CapturedCallable]:
        """The callables of which there is a call."""
        return [door for door in self.doors if door.cases]

    def _called(self, door: CapturedCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        self._busy = True
        try:
            if self.stopping:
                raise ProgramStopped
            if not door.cases and len(self.captured) >= MOST_DOORS and not door.passed:
                self.left_out.append(door.name)
                door.passed = True
            if not door.passed or door.cases:
                self._take(door, args, kwargs)
            try:
                with torch.compiler.set_stance("force_eager"):
                    result = door.original(*args, **kwargs)
            except Exception as error:
                self.failed = door.name, error
                raise
            if door.cases:
                _watch_backward(door.cases[-1], result)
            return result
        finally:
            self._busy = False

    def _take(self, door: CapturedCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(door.cases) < self._calls:
            modules: dict[str, Any] = {}
            args, kwargs = _cut_off(args), _cut_off(kwargs)
            inputs = StateSnapshot({"args": args, "kwargs": kwargs}, modules)
            door.cases.append(CapturedCall(args, kwargs, inputs, rng_state(), Modes.now()))
            if len(door.cases) in (1, self._calls):
                door.state = state_of(door, modules)
            if len(door.cases) == 1 and door.state is not None:
                door.cases[0].state = door.state
                for values in (door.state.values, inputs.values, door.cases[0].rng):
                    door.start.update(digests(values))
        if self._is_full():
            self.stopping = True
            self._full()
            raise ProgramStopped

    def _is_full(self) -> bool:
        if any(len(door.cases) < self._calls for door in self.captured):
            self._full_since = None
            return False
        self._full_since = self._full_since or time.monotonic()
        waits = any(not door.cases and not door.passed for door in self.doors)
        return not waits or time.monotonic() - self._full_since > self._patience

    def finish(self) -> None:
        """The program has ended by itself: what is missing of the state is taken now."""
        for door in self.captured:
            if len(door.cases) < self._calls:
                modules: dict[str, Any] = {}
                StateSnapshot({"args": door.cases[-1].args, "kwargs": door.cases[-1].kwargs}, modules)
                door.state = state_of(door, modules)


def state_of(door: CapturedCallable, modules: dict[str, Any]) -> StateSnapshot:
    """What the callable can reach, and the modules among its arguments."""
    subject = _subject(door.original)
    owner = getattr(subject, "__self__", None)
    roots = {"": getattr(subject, "__func__", subject)} if owner is None else {"self": owner, "": subject.__func__}
    if isinstance(subject, _module_class()):
        roots = {"self": subject}
    return StateSnapshot({**roots, **modules})


def _subject(original: Any) -> Any:
    """What is compiled, out of the wrapper that Dynamo puts around what has no code of the user's."""
    while not hasattr(original, "__self__") and (inner := getattr(original, "__wrapped__", None)) is not None:
        if not getattr(original, "__globals__", {}).get("__name__", "").startswith("torch."):
            break
        original = inner
    return original


def _module_class() -> Any:
    import torch

    return torch.nn.Module


def _cut_off(tree: Any) -> Any:
    """The arguments with a leaf in place of each tensor that earlier computations lead to: those cannot be gone back
    through more than once."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    def is_inner(leaf: Any) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.requires_grad and not leaf.is_leaf

    if not any(map(is_inner, tree_leaves(tree))):
        return tree
    return tree_map(lambda leaf: leaf.detach().requires_grad_() if is_inner(leaf) else leaf, tree)


def _watch_backward(case: CapturedCall, result: Any) -> None:
    import torch
    from torch.utils._pytree import tree_leaves

    def seen(*_: Any) -> None:
        case.backward = True

    for leaf in tree_leaves(result):
        if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None:
            leaf.grad_fn.register_prehook(seen)


def _name(original: Any) -> str:
    subject = _subject(original)
    for one in (subject, getattr(subject, "__self__", None)):
        if isinstance(one, _module_class()):
            return type(one).__qualname__
    return str(getattr(subject, "__qualname__", type(subject).__qualname__))


def _disguise(ours: FunctionType | Any, original: Any) -> None:
    """Dynamo passes over the files of torch: it shall pass over the door as well."""
    code = original.__code__
    ours.__code__ = ours.__code__.replace(co_filename=code.co_filename, co_name=code.co_name)
