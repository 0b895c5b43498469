"""Hooks into what goes around the compiler: calls of a plain model that is also compiled, methods of what was compiled
that go to the original, and state dicts with the names of a compiled model."""

import _thread
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from operator import attrgetter
from types import CodeType, FrameType, MethodType
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks, calling_stack, code_of, current_compile_id
from breakscan.recording.hooks.runs import RunHook
from breakscan.recording.hooks.targets import name_of
from breakscan.recording.records import LateHookSeen, PlainCallsRan, StateKeysSeen

_TOOLS = (3, 4)  # the numbers that ``sys.monitoring`` reserves for nobody
_ENTRY = "compile_wrapper"  # the function of Dynamo that calls compiled code
_NAME, _CODE = attrgetter("f_code.co_name"), attrgetter("f_code")
_OF_TORCH = "torch."


@dataclass(slots=True)
class _Tally:
    """The calls of a function from one line until now, and the sum of both numbers when they were written."""

    first: PlainCallsRan
    calls: int = 0
    seconds: float = 0.0
    written: float = 0.0


class PlainCallHook(Hook):
    """Records calls of the ``forward`` of modules that Dynamo has traced, where they do not come through it.  Compiled
    code runs other code objects, so ``sys.monitoring`` reports the plain calls alone, and costs the others nothing.
    Python 3.10 and 3.11 have no such thing: a thread looks at the stacks now and then, and sees how long such calls
    took."""

    name = "plain-calls"
    without = "calls of the plain model next to the compiled one are missing"
    reads = ("torch._dynamo.symbolic_convert:symbolic_locals", "torch._dynamo.eval_frame:compile_wrapper")
    every = 0.02
    """Seconds between two looks at the stacks, on a Python without ``sys.monitoring``."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._codes: dict[int, weakref.ref[CodeType]] = {}
        self.modules: dict[int, tuple[weakref.ref[Any], bool]] = {}  # with a compiled form, or a copy of one
        self._known: dict[tuple[int, str, int], _Tally] = {}
        self._tool: int | None = None
        self._sampling = False

    @contextmanager
    def installed(self) -> Iterator[bool]:
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is not None:
            self._tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
            if self._tool is not None:
                monitoring.use_tool_id(self._tool, "breakscan")
                monitoring.register_callback(self._tool, monitoring.events.PY_START, self._called)
        try:
            with super().installed():
                yield monitoring is None or self._tool is not None
        finally:
            self._sampling = False
            if self._tool is not None:
                # Up to Python 3.13, the tool's number is freed alone: its events would be reported ever after.
                monitoring.register_callback(self._tool, monitoring.events.PY_START, None)
                for code in filter(None, (reference() for reference in self._codes.values())):
                    monitoring.set_local_events(self._tool, code, 0)
                monitoring.free_tool_id(self._tool)

    def ended(self) -> None:
        for tally in list(self._known.values()):
            if tally.calls + tally.seconds > tally.written:
                self._write_one(tally)

    def _write_one(self, tally: _Tally) -> None:
        tally.written = tally.calls + tally.seconds
        self.hooks.write(replace(tally.first, calls=tally.calls, seconds=tally.seconds))

    def _take(self, frame: FrameType, calls: int, seconds: float) -> None:
        """A plain call pays for this: nothing keeps the compiler off here, which does not run."""
        try:
            if not self.hooks.exporting.level:
                self._add(frame, calls, seconds)
        except Exception as error:
            self.hooks.report_failure(type(self), error)

    def traced(self, tracer: Any) -> None:
        """Dynamo traces a function: the module whose ``forward`` it is has a compiled form from now on."""
        import torch

        code: CodeType = tracer.f_code
        if code.co_name != "forward" or not code.co_argcount:
            return
        name = code.co_varnames[0]
        own = tracer.f_locals.get(name) if tracer.inline_depth == 0 else _value_of(tracer.symbolic_locals.get(name))
        if not isinstance(own, torch.nn.Module):
            return
        self.modules[id(own)] = weakref.ref(own), False
        if tracer.inline_depth:
            self.hooks.of(LateHook).traced(own)
        if id(code) not in self._codes:
            self._codes[id(code)] = weakref.ref(code)
            self._watch(code)

    def _watch(self, code: CodeType) -> None:
        monitoring: Any = getattr(sys, "monitoring", None)
        if self._tool is not None:
            monitoring.set_local_events(self._tool, code, monitoring.events.PY_START)
        elif monitoring is None and not self._sampling:
            self._sampling = True
            # ``threading`` would list it among the program's.
            _thread.start_new_thread(self._sample, ())

    def _called(self, code: CodeType, _: int) -> None:
        caller = frame = sys._getframe(1)
        # Where a break made a function run eager, its calls pay for this.
        while caller.f_back is not None:
            caller = caller.f_back
            if caller.f_code.co_name == _ENTRY:
                return
        if self._outermost(frame) is frame:
            self._take(frame, 1, 0.0)

    def _sample(self) -> None:
        before = time.perf_counter()
        while self._sampling:
            time.sleep(self.every)
            now = time.perf_counter()
            for frame in sys._current_frames().values():
                if (found := self._outermost(frame)) is not None:
                    self._take(found, 0, min(now - before, 2 * self.every))
            frame = found = None  # type: ignore[assignment]
            before = now

    def _outermost(self, frame: FrameType | None) -> FrameType | None:
        """The outermost frame of a stack that is one of these functions; None below compiled code."""
        frames: deque[Any] = deque()
        # Another thread's frames may end while Python code runs here, and CPython 3.11 has crashed over one that did.
        try:
            frames.extend(accumulate(repeat("f_back"), getattr, initial=frame))
        except AttributeError:
            frames.pop()
        if _ENTRY in map(_NAME, frames) or self._codes.keys().isdisjoint(map(id, map(_CODE, frames))):
            return None
        watched = ((one, self._codes.get(id(one.f_code))) for one in reversed(frames))
        return next((one for one, code in watched if code is not None and code() is one.f_code), None)

    def _add(self, frame: FrameType, calls: int, seconds: float) -> None:
        code = frame.f_code
        held = frame.f_locals
        own = held.get(code.co_varnames[0])
        if type(held) is dict:
            # Before Python 3.13, it would keep alive what the function lets go.
            held.clear()
        known = self.modules.get(id(own))
        if known is None or known[0]() is not own:
            return
        caller = frame.f_back
        while caller is not None and caller.f_globals.get("__name__", "").startswith(_OF_TORCH):
            caller = caller.f_back
        if caller is None:
            return
        key = (id(code), caller.f_code.co_filename, caller.f_lineno)
        tally = self._known.get(key)
        if tally is None:
            first = PlainCallsRan(name_of(own), code_of(code), calling_stack(caller), 0, 0.0, is_copy=known[1])
            tally = self._known[key] = _Tally(first)
        tally.calls += calls
        tally.seconds += seconds
        if tally.calls + tally.seconds >= 2 * tally.written:
            # A program that is killed leaves the order of magnitude.
            self._write_one(tally)


class CopyHook(Hook):
    """Finds copies of modules that were compiled in place: a copy is not compiled."""

    name = "copies"
    without = "calls of copies of compiled modules are missing"
    wraps = ("torch.nn.modules.module:Module.__getstate__", "torch.nn.modules.module:Module.__setstate__")
    may_be_traced = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._classes: set[type] = set()

    def before(self, module: Any, *state: Any) -> None:
        if not state and vars(module).get("_compiled_call_impl") is not None:
            self._classes.add(type(module))
        elif state and type(module) in self._classes:
            self.hooks.of(PlainCallHook).modules[id(module)] = weakref.ref(module), True


class LateHook(Hook):
    """Records hooks that compiled code ignores: they were registered on a module after it was traced within something
    else.  Those of what is compiled itself run."""

    name = "late-hooks"
    without = "hooks that compiled code ignores are missing"
    wraps = (
        "torch.nn.modules.module:Module.register_forward_hook",
        "torch.nn.modules.module:Module.register_forward_pre_hook",
        "torch.nn.modules.module:Module.register_full_backward_hook",
        "torch.nn.modules.module:Module.register_full_backward_pre_hook",
        "torch.utils.hooks:RemovableHandle.remove",
    )
    needs = ("torch._dynamo.config:skip_nnmodule_hook_guards",)
    may_be_traced = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._inside: weakref.WeakKeyDictionary[Any, set[str | None]] = weakref.WeakKeyDictionary()
        """The compiles in which a module was traced."""
        self._late: dict[int, tuple[set[str | None], LateHookSeen]] = {}

    def ended(self) -> None:
        self._removed(*self._late)

    def traced(self, module: Any) -> None:
        """A module is traced within something else: hooks that it has by now are part of that."""
        compiles = self._inside.setdefault(module, set())
        self._removed(*(number for number, (those, _) in self._late.items() if those is compiles))
        compiles.add(current_compile_id())

    def after(self, handle: Any, module: Any, hook: Any = None, *_: Any, **__: Any) -> None:
        from torch._dynamo import config

        if handle is None:
            self._removed(module.id)
        elif (compiles := self._inside.get(module)) and config.skip_nnmodule_hook_guards:
            runs = self.hooks.of(RunHook).runs_of(compiles)
            seen = LateHookSeen(name_of(module), name_of(hook), calling_stack(sys._getframe(1)), runs)
            self._late[handle.id] = compiles, seen

    def _removed(self, *numbers: int) -> None:
        for compiles, seen in filter(None, (self._late.pop(number, None) for number in numbers)):
            if runs := max(0, self.hooks.of(RunHook).runs_of(compiles) - seen.runs):
                self.hooks.write(replace(seen, runs=runs))


class MethodHook(Hook):
    """Records methods that are taken from what ``torch.compile`` made of a module: they are those of the original."""

    name = "methods"
    without = "methods of compiled models that run the original are missing"
    wraps = ("torch._dynamo.eval_frame:OptimizedModule.__getattr__",)

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._seen: set[tuple[int, int]] = set()

    def wrap(self, name: str, original: Any) -> Any:
        record, seen = self.guarded(self._record), self._seen

        def __getattr__(self: Any, name: str) -> Any:
            value = original(self, name)
            if type(value) is MethodType:
                # Once for each place in the program: it may be one that is often passed.
                caller = sys._getframe(1)
                place = (id(caller.f_code), caller.f_lasti)
                if place not in seen:
                    seen.add(place)
                    record(self, name, value)
            return value

        return __getattr__

    def _record(self, compiled: Any, name: str, method: MethodType) -> None:
        code = getattr(method, "__code__", None)
        is_plain = method.__self__ is compiled._orig_mod and not hasattr(method, "_torchdynamo_orig_callable")
        if not is_plain or code is None or method.__module__.startswith(_OF_TORCH):
            return
        stack = calling_stack(sys._getframe(1))
        self.hooks.write(PlainCallsRan(name_of(compiled._orig_mod), code_of(code), stack, 0, 0.0, method=name))


class _KeysHook(Hook):
    """Records state dicts whose keys have the name under which a compiled model holds the original."""

    without = "checkpoints with the names of a compiled model are missing"
    may_be_traced = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._seen: set[object] = set()

    def record(self, way: str, keys: int, fits: bool) -> None:
        stack = calling_stack(sys._getframe(1))
        if stack not in self._seen:
            self._seen.add(stack)
            self.hooks.write(StateKeysSeen(way, keys, fits, stack))


class SavedKeysHook(_KeysHook):
    name = "saved-keys"
    wraps = ("torch.serialization:save",)
    imported_by = ("torch",)

    def before(self, value: Any, *_: Any, **__: Any) -> None:
        parts = [value, *value.values()] if isinstance(value, dict) else []
        if keys := sum(_is_prefixed(part) for part in parts if isinstance(part, dict) for part in part):
            self.record("saved", keys, True)


class LoadedKeysHook(_KeysHook):
    """Those that a model takes none of, since it has no such names, or since it has such names and they lack them."""

    name = "loaded-keys"
    wraps = ("torch.nn.modules.module:Module.load_state_dict",)

    def before(self, module: Any, state: Any, *_: Any, **__: Any) -> None:
        if not isinstance(state, Mapping) or not state:
            return
        is_prefixed = [_is_prefixed(key) for key in state]
        names = [name for name, _ in module.named_modules()]
        if any(is_prefixed) != any(map(_is_prefixed, names)):
            own = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
            self.record("loaded", len(state), not own.isdisjoint(state))


def _is_prefixed(key: object) -> bool:
    return isinstance(key, str) and "_orig_mod" in key.split(".")


def _value_of(tracker: Any) -> Any:
    """The object that a variable tracker of Dynamo's has the value of.  Dynamo is not asked: it would guard on it."""
    held = {} if tracker is None else object.__getattribute__(tracker, "__dict__")
    cache = held.get("_cache")
    return held.get("value") if cache is None else cache.value


AROUND = (PlainCallHook, CopyHook, LateHook, MethodHook, SavedKeysHook, LoadedKeysHook)
"""The hooks, in the order in which they are installed."""
