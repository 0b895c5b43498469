"""Captures the first calls of each outermost compiled callable of the program, with the state that they reach.

``torch.compile`` is hooked: each callable that it returns is replaced by another one.  The program's own calls run
eager, and nothing is compiled before the calls are measured."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from traceback import walk_stack
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from breakscan.prove.call_result import differentiable
from breakscan.prove.protocol import CallStart, CompileOption
from breakscan.prove.state import OF_DYNAMO, PLAIN, ObjectWalk, StateSnapshot, digests
from breakscan.prove.torch_state import Modes, eager_stance, rng_state, torch
from breakscan.recording.bootstrap import eager_compile


class CompileHook:
    """``wrap`` is called with what ``torch.compile`` was given and with the function that it returns, and returns the
    wrapper that the program gets; ``callables`` has each, ``contexts`` their arguments, as Dynamo keeps them."""

    def __init__(self, wrap: Callable[[CapturedCallable], Callable[..., object]]) -> None:
        self.callables: list[CapturedCallable] = []
        self.contexts: list[Any] = []
        self._wrap = wrap
        self._paused = False
        self.units = False
        """If only callables that are asked for are captured, as the program calls them: it compiles parts of them."""

    def install(self, _: ModuleType) -> None:
        """Hooks in.  Called after ``torch._dynamo`` has been imported."""
        from torch._dynamo.eval_frame import OptimizeContext

        original: Any = OptimizeContext.__call__

        def call(context: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
            known = len(self.callables)
            compiled = original(context, fn, *args, **kwargs)
            self.contexts.append(context)
            if isinstance(compiled, torch.nn.Module):
                # It is another one, around the callables that were made for it.
                for captured in self.callables[known:]:
                    captured.module = compiled
            if self._paused or not isinstance(compiled, FunctionType):
                return compiled
            if self.units and all(one.f_code.co_filename != eager_compile.__file__ for one, _ in walk_stack(None)):
                return compiled
            compiled = fn if self.units else compiled
            while (inner := getattr(fn, "_torchdynamo_orig_callable", None)) is not None:
                fn = inner
            self.callables.append(CapturedCallable(_name(fn), fn, compiled, context=context))
            return _stand_in(compiled, self._wrap(self.callables[-1]))

        disguise(call, original)
        OptimizeContext.__call__ = call  # type: ignore[method-assign,assignment]

    def compile(self, fn: Callable[..., object], options: Mapping[str, CompileOption]) -> Any:
        """The value that ``torch.compile`` returns for these keyword arguments, not wrapped."""
        keywords: dict[str, Any] = dict(options)
        self._paused = True
        try:
            return torch.compile(fn, **keywords)
        finally:
            self._paused = False

    def remove_timers(self) -> None:
        """Removes the recorder's hooks from what ``torch.compile`` made: they would be timed, too."""
        for context in self.contexts:
            hooks = context.enter_exit_hooks
            hooks[:] = [hook for hook in hooks if not hasattr(hook, "of")]


def _stand_in(compiled: Callable[..., object], call: Callable[..., object]) -> Callable[..., object]:
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


@dataclass(slots=True)
class CapturedCall:
    """One call: its arguments, the values in them, and the modes that it ran in.  ``state`` is the state that the call
    found besides its inputs, kept for a first call only: later calls often find another one.  ``has_returned`` says
    that the program has its result, ``backward`` that the program ran the backward pass of it."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    inputs: StateSnapshot
    rng: dict[str, torch.Tensor]
    modes: Modes
    state: StateSnapshot | None = None
    has_returned: bool = False
    backward: bool = False


@dataclass(slots=True)
class CapturedCallable:
    """One compiled callable.  ``original`` is what was compiled, ``compiled`` what ``torch.compile`` returned for it.
    ``state`` is what its last captured call could reach besides its inputs."""

    name: str
    original: Callable[..., object]
    compiled: Callable[..., object]
    calls: list[CapturedCall] = field(default_factory=list)
    state: StateSnapshot | None = None
    start: CallStart = field(default_factory=dict)
    """That of the first call."""
    context: Callable[..., Callable[..., object]] | None = None
    """The arguments of ``torch.compile``, as Dynamo keeps them."""
    module: Any = None
    """The module that ``torch.compile`` returned, if it was given one."""
    instead: Callable[..., object] | None = None
    """The callable that the program's own calls run, while its loop is timed."""
    ends: Sequence[str] | None = None
    """The paths of the parts of its result from which the backward pass starts, if not all."""
    passed: bool = False
    """It is not waited for: there are too many callables, or it runs within another one."""

    @property
    def entry(self) -> Callable[..., object]:
        """The object that the program calls.  A module around ``compiled`` takes time as well."""
        if self.module is None:
            return self.compiled
        self.module.forward = self.compiled
        module: Callable[..., object] = self.module
        return module

    @property
    def backward(self) -> bool:
        """Return True if the program runs the backward pass of its results, as far as it got."""
        return any(call.backward for call in self.calls)

    @property
    def may_run_backward(self) -> bool:
        """Return True if only later calls show if the program runs the backward pass of its only captured call."""
        if len(self.calls) != 1:
            return False
        call = self.calls[0]
        return call.modes.grad and not call.modes.inference and not call.has_returned

    def snapshots(self) -> list[StateSnapshot]:
        """All of its snapshots, in an order that is the same in all processes."""
        assert self.state is not None
        own = [call.state for call in self.calls if call.state is not None]
        return [self.state, *own, *(call.inputs for call in self.calls)]

    def snapshots_of(self, call: CapturedCall) -> tuple[StateSnapshot, StateSnapshot]:
        """The state and the inputs of one of its calls."""
        state = call.state or self.state
        assert state is not None
        return state, call.inputs


PATIENCE = 10.0
"""Seconds for which the program goes on to call what it has compiled and not called yet."""
MOST_CALLABLES = 4
"""Compiled callables that are captured; others are only named."""


LONGEST_LATER = 4.0
"""Seconds for which later calls are looked at."""
MOST_LATER = 11
FIRST_LATER = 4
MOST_BYTES = 64 << 20
"""Of the values of a later call that are kept."""


class LaterCalls:
    """The values that the program's calls have after those that are captured: those whose arguments or state are of
    another kind than before, the first ones, the 8th, 16th, … of all, and the last one."""

    def __init__(self) -> None:
        self._kept: list[dict[str, Any]] = []
        self._last: dict[str, Any] | None = None
        """The last call, if it is not among those kept."""
        self._looked_at: dict[str, Any] = {}
        """The call that was looked at last."""
        self._objects: dict[int, tuple[str, object]] = {}
        self._kinds: set[str] = set()
        self._looked = 0
        self._hooked: dict[int, set[str]] = {}
        """The modules with hooks or in place of others at the first look, by the number of the callable."""
        self._until: float | None = None

    def look(self, number: int, captured: CapturedCallable, given: tuple[Any, Any], seen: Sequence[UserFrame]) -> bool:
        """Looks at a call of the callable with this number, after those that frames had ``seen``.  Returns whether to
        go on."""
        state = captured.state
        self._until = self._until or time.monotonic() + LONGEST_LATER
        if state is None or time.monotonic() > self._until or len(self._kept) >= MOST_LATER:
            return False
        self._looked += 1
        self._objects = self._objects or {id(one): (path, one) for path, one in reversed(objects_of(seen).items())}
        args, kwargs = self._named(given)
        inputs, walk = ObjectWalk({"args": args, "kwargs": kwargs}, {}), state.walk_again()
        plains = {path: value for path, value in walk.plains.items() if path in state.setters}
        sizes = {path: _layout(tensor) for path, tensor in inputs.tensors.items()}
        own = state.walk
        layers = ((path, one, own.layers[path]) for path, one in walk.layers.items() if path in own.layers)
        hooked = {path for path, one, was in layers if one is not was or one._forward_hooks or one._forward_pre_hooks}
        new_hooks = sorted(hooked - self._hooked.setdefault(number, hooked))
        both = [path for path in own.tensors if path in walk.tensors]
        turned = [path for path in both if (path in walk.grads) != (path in own.grads)]
        # Numbers that each call changes are of one kind.
        flags = {path: value for path, value in plains.items() if isinstance(value, (bool, str))}
        modes = asdict(Modes.now())
        kind = repr((number, inputs.plains, sizes, flags, modes, new_hooks, turned))
        is_new = kind not in self._kinds
        self._kinds.add(kind)
        other = {path: value for path, value in plains.items() if value != state.plains.get(path)}
        self._last = {"callable": number, "args": args, "kwargs": kwargs, "plains": other, "values": {}}
        self._last |= {"modes": modes, "hooked": new_hooks, "turned": turned, "error": None}
        self._looked_at = self._last
        if is_new or self._looked <= FIRST_LATER or not self._looked & (self._looked - 1):
            values = state.now().values
            if sum(value.nbytes for value in values.values()) <= MOST_BYTES:
                self._last["values"] = values
            self.kept()
        return True

    def kept(self) -> list[dict[str, Any]]:
        """The parts of each call that are kept: its callable, arguments and modes, and what differs of the state."""
        # Only what any process can read is kept.
        with contextlib.suppress(Exception):
            if self._last is not None:
                written = io.BytesIO()
                torch.save(self._last, written)
                self._looked_at = torch.load(io.BytesIO(written.getvalue()), weights_only=True)
                self._kept.append(self._looked_at)
        self._last = None
        return self._kept

    def failed(self, error: Exception) -> None:
        """Notes what the call that was looked at last raises."""
        self._looked_at["error"] = type(error).__qualname__

    def _named(self, tree: Any) -> Any:
        """The arguments with the paths of objects that each process has itself."""
        from torch.utils._pytree import tree_map

        def named(leaf: object) -> object:
            is_data = isinstance(leaf, (torch.Tensor, *PLAIN)) or id(leaf) not in self._objects
            return leaf if is_data else f"{OBJECT}{self._objects[id(leaf)][0]}"

        return tree_map(named, tree)


OBJECT = "\0object "
"""Before the path of an object of the program, in the arguments of a later call."""


def objects_of(frames: Sequence[UserFrame]) -> dict[str, object]:
    """The objects that frames of the program can see, by path, without those in modules."""
    return dict(ObjectWalk(_names_in(frames), {}).held)


def _names_in(frames: Sequence[UserFrame]) -> dict[str, object]:
    """The values that frames of the program can see, by name; the innermost frame decides."""
    return {key: own for *_, held in reversed(frames) for key, own in held.items() if not key.startswith("__")}


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    """The sizes of a tensor, how it lies in memory, and how many bytes its integers take."""
    is_integers = tensor.dtype in (torch.int64, torch.int32, torch.int16) and tensor.numel()
    taken = int(tensor.max()).bit_length() // 8 if is_integers else 0
    strides = tensor.stride() if tensor.layout is torch.strided else ()
    return tuple(tensor.shape), strides, str(tensor.dtype), taken


UserFrame = tuple[CodeType, int, dict[str, Any]]
"""A frame of the program at a call: its code, the line, and all names that it can see."""


def own_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that it is called from, without those of torch and breakscan."""
    ours = tuple(os.path.dirname(os.path.abspath(path)) + os.sep for path in (torch.__file__, __file__))
    while frame is not None:
        if not os.path.abspath(frame.f_code.co_filename).startswith(ours):
            yield frame
        frame = frame.f_back


class ProgramStopped(BaseException):
    """All calls have been captured: the program ends here."""


class Capture:
    """``calls`` of each callable are captured.

    ``first`` is called before the first of them.  ``full`` is called, within the last of them, when there is nothing
    left to wait for; then the program is stopped.  If the last one is the only one, it is called within the next call,
    as the program may run a backward pass before.  The program gets :data:`PATIENCE` to call what it has compiled and
    not called yet."""

    def __init__(
        self, calls: int, first: Callable[[], None], full: Callable[[], None], later: LaterCalls | None = None
    ) -> None:
        self.later = later
        self._first = first
        self.left_out: list[str] = []
        self.stopping = False
        self.failed: tuple[str, BaseException] | None = None
        """The callable that raised last, and the exception."""
        self.hook = CompileHook(self._wrap)
        self.callables = self.hook.callables
        self._calls = calls
        self._full = full
        self._busy = False
        self._thread = threading.get_ident()
        self._full_since: float | None = None
        self.frames: list[UserFrame] = []
        """Those that have made the last captured call, the innermost first."""
        self.step_modes: Modes | None = None
        """The modes in which the program steps its optimizer: those of its loop."""
        self._hooked: torch.utils.hooks.RemovableHandle | None = None

    @property
    def captured(self) -> list[CapturedCallable]:
        """The callables of which a call was captured."""
        return [one for one in self.callables if one.calls]

    def _wrap(self, captured: CapturedCallable) -> Callable[..., object]:
        compiled = captured.compiled

        def call(*args: object, **kwargs: object) -> object:
            if captured.instead is not None:
                return captured.instead(*args, **kwargs)
            if self._busy or threading.get_ident() != self._thread:
                captured.passed = captured.passed or not captured.calls
                return compiled(*args, **kwargs)
            return self._called(captured, args, kwargs)

        return call

    def _called(self, captured: CapturedCallable, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        self._busy = True
        try:
            if self.stopping:
                raise ProgramStopped
            if not captured.calls and len(self.captured) >= MOST_CALLABLES and not captured.passed:
                self.left_out.append(captured.name)
                captured.passed = True
            is_later = (not captured.passed or captured.calls) and self._take(captured, args, kwargs)
            try:
                with eager_stance():
                    result = captured.original(*args, **kwargs)
            except Exception as error:
                self.failed = captured.name, error
                if is_later and self.later is not None:
                    self.later.failed(error)
                raise
            if captured.calls and not is_later:
                last = captured.calls[-1]
                last.has_returned = True
                watch_backward(result, lambda: setattr(last, "backward", True))
            return result
        finally:
            self._busy = False

    def _take(self, captured: CapturedCallable, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
        """Returns True if it is a call after all captured ones, which is looked at."""
        if len(captured.calls) < self._calls:
            if not self.captured:
                from torch.optim.optimizer import register_optimizer_step_pre_hook

                self._first()
                self._hooked = register_optimizer_step_pre_hook(self._stepped)
            args, kwargs = _cut_off(args), _cut_off(kwargs)
            inputs = StateSnapshot({"args": args, "kwargs": kwargs}, {})
            frames = own_frames(sys._getframe())
            self.frames = [(one.f_code, one.f_lineno, {**one.f_globals, **one.f_locals}) for one in frames]
            captured.calls.append(CapturedCall(args, kwargs, inputs, rng_state(), Modes.now()))
            if len(captured.calls) in (1, self._calls):
                captured.state = state_of(captured)
            if len(captured.calls) == 1 and captured.state is not None:
                first = captured.calls[0]
                first.state = captured.state
                texts = {
                    "values": digests({**captured.state.values, **inputs.values}),
                    "generators": digests(first.rng),
                    "plains": {path: repr(value)[:200] for path, value in captured.state.plains.items()},
                }
                if len(self.captured) == 1:
                    # An optimizer, say, which no call reaches.
                    around = ObjectWalk(_names_in(self.frames), None)
                    state = {id(one): path for path, one in captured.state.tensors.items()}
                    texts["plains"] |= {path: repr(value)[:200] for path, value in around.plains.items()}
                    texts["plains"] |= {path: state[id(it)] for path, it in around.held if id(it) in state}
                every = {(kind, name): text for kind in texts for name, text in texts[kind].items()}
                captured.start = {key: every[key] for key in every if not any(map(key[1].count, OF_DYNAMO))}
        if self._is_full():
            number = next(at for at, one in enumerate(self.captured) if one is captured) if captured.calls else 0
            if self.later is not None and self.later.look(number, captured, (args, kwargs), self.frames):
                return True
            self.stopping = True
            self._unhook()
            self._full()
            raise ProgramStopped
        return False

    def _unhook(self) -> None:
        """Removes what watches the optimizers: a compiled step of one would not be compiled as a whole."""
        if self._hooked is not None:
            self._hooked.remove()

    def _stepped(self, *_: object) -> None:
        self.step_modes = self.step_modes or Modes.now()

    def _is_full(self) -> bool:
        if any(len(one.calls) < self._calls or one.may_run_backward for one in self.captured):
            self._full_since = None
            return False
        self._full_since = self._full_since or time.monotonic()
        waits = any(not one.calls and not one.passed for one in self.callables)
        return not waits or time.monotonic() - self._full_since > PATIENCE

    def finish(self) -> None:
        """Takes the state that is still missing when the program ends by itself."""
        self._unhook()
        for captured in self.captured:
            if len(captured.calls) < self._calls:
                captured.state = state_of(captured)


def state_of(captured: CapturedCallable) -> StateSnapshot:
    """The objects that the callable can reach, and the modules among the arguments of its last call."""
    subject = subject_of(captured.original)
    is_module = isinstance(subject, torch.nn.Module)
    owner = subject if is_module else getattr(subject, "__self__", None)
    roots = {} if owner is None else {"self": owner}
    if not is_module:
        roots[""] = getattr(subject, "__func__", subject)
    return StateSnapshot({**roots, **(captured.calls[-1].inputs.walk.modules or {})})


def subject_of(original: Any) -> Any:
    """The object that is compiled, without Dynamo's wrapper around callables that have no code of the user's."""
    while not hasattr(original, "__self__") and (inner := getattr(original, "__wrapped__", None)) is not None:
        if not getattr(original, "__globals__", {}).get("__name__", "").startswith("torch."):
            break
        original = inner
    return original


def _cut_off(tree: Any) -> Any:
    """The arguments with leaves in place of tensors of earlier computations: their backward pass can run only once."""
    from torch.utils._pytree import tree_leaves, tree_map

    def is_inner(leaf: object) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.requires_grad and not leaf.is_leaf

    if not any(map(is_inner, tree_leaves(tree))):
        return tree
    return tree_map(lambda leaf: leaf.detach().requires_grad_() if is_inner(leaf) else leaf, tree)


def watch_backward(result: object, seen: Callable[[], object]) -> None:
    """Calls ``seen`` when the backward pass of a result runs."""
    for leaf in differentiable(result):
        if leaf.grad_fn is not None:
            leaf.grad_fn.register_prehook(lambda *_: seen())


def module_of(original: Any) -> torch.nn.Module | None:
    """The module that was compiled, or a method of which was compiled."""
    subject = subject_of(original)
    parts = (subject, getattr(subject, "__self__", None))
    return next((one for one in parts if isinstance(one, torch.nn.Module)), None)


def place_of(original: Any, frames: Sequence[UserFrame]) -> tuple[str, str] | None:
    """The module and the name in it under which a program of these frames keeps what it compiles."""
    subject, module = subject_of(original), module_of(original)
    owner = module or getattr(subject, "__self__", None)
    if owner is None:
        name = getattr(subject, "__qualname__", "<>")
        return None if "<" in name else (subject.__module__, name)
    suffix = "" if module is not None and _is_called(subject) else f".{subject.__name__}"
    names = (one["__name__"] for *_, one in frames)
    held = ((its, name, value) for its in names for name, value in vars(sys.modules[its]).items())
    return next(((its, f"{name}{suffix}") for its, name, value in held if value is owner), None)


def _is_called(subject: Any) -> bool:
    """True for a module, and for a method that runs where it is called."""
    calling = ("forward", "__call__", "_call_impl", "_wrapped_call_impl")
    return getattr(subject, "__name__", "forward") in calling


def _name(original: Any) -> str:
    subject = subject_of(original)
    subject = module_of(original) or subject if _is_called(subject) else subject
    return str(getattr(subject, "__qualname__", type(subject).__qualname__))
