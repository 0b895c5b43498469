"""The base of hooks into torch, which wrap private functions of torch without torch or the user noticing, and the facts
that they read out of torch's objects: code, stacks, compile ids and values, as strings and numbers.  Nothing that goes
wrong in a hook reaches the user's program: it becomes a record."""

import atexit
import dis
import itertools
import os
import pkgutil
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from traceback import FrameSummary
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar, ParamSpec, TypeVar

from breakscan.recording.parsers.guards import with_article
from breakscan.recording.records import Code, HookFailed, HookInstalled, Record, StackFrame
from breakscan.recording.traced import TraceAndHooks

OURS = str(Path(__file__).parent.parent.parent) + os.sep  # the folder of breakscan's own code
_COLUMNS = ("colno", "end_colno")  # attributes of a frame summary since Python 3.11
LONGEST = 80  # characters of a value that a report shows
PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MOST_ITEMS = 8  # items of a tuple that a report shows
_STORES = {"STORE_FAST": 1, "STORE_DEREF": 1, "STORE_GLOBAL": 1, "STORE_FAST_STORE_FAST": 2, "STORE_FAST_LOAD_FAST": 1}
"""Instructions that store in variables: in the first of those that they name (Python 3.13), or in both."""
_WITHOUT_NUMBER = (partial, FunctionType, MethodType, BuiltinFunctionType, ModuleType, CodeType, type)


def code_of(code: CodeType) -> Code:
    return Code(code.co_filename, code.co_firstlineno, code.co_name)


def stack_of(frames: Iterable[FrameSummary] | None) -> tuple[StackFrame, ...]:
    return tuple(
        StackFrame(frame.filename, frame.lineno or 1, frame.name, *(getattr(frame, key, None) for key in _COLUMNS))
        for frame in frames or ()
    )


def calling_stack(frame: FrameType | None) -> tuple[StackFrame, ...]:
    """The stack that ends in ``frame``, outermost first, without frames of ours."""
    frames: list[StackFrame] = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(OURS):
            frames.append(StackFrame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(frames))


def frame_above_dynamo() -> FrameType | None:
    """The frame that called the one that Dynamo was called for."""
    frame: FrameType | None = sys._getframe(1)
    above = frame
    while frame is not None:
        if frame.f_code.co_filename.endswith("convert_frame.py"):
            above = frame.f_back
        frame = frame.f_back
    return above


def stack_above_dynamo() -> tuple[StackFrame, ...]:
    """The stack above the frame that Dynamo was called for, outermost first."""
    return calling_stack(frame_above_dynamo())


def current_compile_id() -> str | None:
    """The id of the compile that runs in this thread, such as ``0/1``."""
    from torch._guards import CompileContext

    current = CompileContext.current_compile_id()
    return None if current is None else str(current)


def value_in_words(value: Any) -> str:
    """A value as a report can show it.  Calls no ``__repr__`` of the user's."""
    import torch

    if type(value) in PLAIN:
        return _cut(repr(value))
    if isinstance(value, Enum):
        return _cut(f"{type(value).__qualname__}.{value.name}")
    if isinstance(value, torch.dtype | torch.device | torch.Size | torch.memory_format):
        return _cut(str(value))
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, type):
        return f"the class {_cut(value.__qualname__)}"
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        return f"the function {_cut(value.__qualname__)}"
    if isinstance(value, CodeType):
        return f"the code of {_cut(value.co_name)} at line {value.co_firstlineno}"
    if type(value) in (tuple, list) and 0 < len(value) <= _MOST_ITEMS and all(type(one) in PLAIN for one in value):
        return _cut(repr(value))
    if type(value) in (tuple, list, dict, set):
        items = f"{len(value)} item{'' if len(value) == 1 else 's'}" if value else "nothing"
        return f"a {type(value).__name__} of {items}"
    return with_article(_cut(type(value).__qualname__))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def held_by(value: object) -> list[dict[str, Any]]:
    """The attributes that an object itself holds, and a module's parts; none where that would run the program's
    code."""
    if any(isinstance(vars(kind).get("__dict__"), property) for kind in type(value).__mro__):
        return []
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    parts = [held, *(held.get(key) for key in ("_parameters", "_buffers", "_modules"))] if type(held) is dict else []
    return [part for part in parts if isinstance(part, dict)]


class ObjectNumbers:
    """Numbers for modules, parameters and objects of the program's classes.  None is kept alive."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = itertools.count()

    def of(self, names: Mapping[str, Any] | None) -> dict[str, int]:
        """The numbers of those among variables."""
        return {name: number for name, value in (names or {}).items() if (number := self._of(value)) is not None}

    def _of(self, value: Any) -> int | None:
        import torch

        is_tensor = isinstance(value, torch.Tensor) and not issubclass(type(value), torch.nn.Parameter)
        if is_tensor or isinstance(value, _WITHOUT_NUMBER):
            return None
        held = self._numbers.get(id(value))
        if held is None or held[0]() is not value:
            try:
                held = weakref.ref(value), next(self._next)
            except TypeError:
                return None
            self._numbers[id(value)] = held
        return held[1]


def names_stored_after_break(code: CodeType) -> tuple[str, ...]:
    """The variables that get the value of the call at which a graph broke: several, where it is unpacked."""
    if "___stack0" not in code.co_varnames or "___stack1" in code.co_varnames:
        return ()
    instructions = iter(dis.get_instructions(code))
    target = next((one.argval for one in instructions if one.opname == "JUMP_FORWARD"), None)
    found = next((one for one in instructions if one.offset == target), None)
    parts = found.argval if found is not None and found.opname == "UNPACK_SEQUENCE" else 1
    names: list[str] = []
    for one in itertools.chain([] if found is None or parts > 1 else [found], instructions):
        stored = _STORES.get(one.opname)
        if stored is None or len(names) >= parts:
            break
        names += (one.argval if type(one.argval) is tuple else (one.argval,))[:stored]
    return tuple(names) if len(names) == parts else ()


P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound="Hook")


class Hook:
    """One kind of datum of a run: the functions of torch that are wrapped for it, and what is recorded of their calls.
    Most hooks define :meth:`before`, :meth:`after` or :meth:`raised`; others wrap in their own way, or need not."""

    name: ClassVar[str] = "recorder"
    without: ClassVar[str] = "something is missing"  # the clause of a report if torch lacks what the hook needs
    wraps: ClassVar[tuple[str, ...]] = ()  # the functions, as ``module:Class.function``
    imported_by: ClassVar[tuple[str, ...]] = ()  # modules that import these functions by their names
    needs: ClassVar[tuple[str, ...]] = ()  # other private names of torch without which the hook does nothing
    reads: ClassVar[tuple[str, ...]] = ()  # private names that it can do without, and attributes set on objects
    waits_for: ClassVar[str | None] = None  # a module that may never load: Inductor takes long
    during_exports: ClassVar[bool] = False  # it sees what an export compiles, which the program does not run
    may_be_traced: ClassVar[bool] = False  # Dynamo may trace the wrapped functions: there, they are called alone

    def __init__(self, hooks: "Hooks") -> None:
        self.hooks = hooks

    def before(self, *args: Any, **kwargs: Any) -> None:
        """Called before a wrapped function, with its arguments."""

    def after(self, *args: Any, **kwargs: Any) -> None:
        """Called after it with its result and its arguments, unless it raised."""

    def raised(self, error: Exception) -> None:
        """Called where it raised."""

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """The replacement of a function.  It calls functions of ours through :meth:`guarded`."""
        before, after, raised = map(self._guarded_if_own, ("before", "after", "raised"))
        if self.may_be_traced:
            from torch.compiler import is_dynamo_compiling as is_traced
        else:
            is_traced = bool

        def call(*args: Any, **kwargs: Any) -> Any:
            if is_traced():
                return original(*args, **kwargs)
            if before is not None:
                before(*args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except Exception as error:
                if raised is not None:
                    raised(error)
                leave_no_trace(error)
                raise
            if after is not None:
                after(result, *args, **kwargs)
            return result

        return call

    def ended(self) -> None:
        """Called when the recording ends, or the process."""

    @contextmanager
    def installed(self) -> Iterator[bool]:
        """Records while the block runs.  Yields False if this torch lacks what that needs: nothing is recorded then."""
        with wrapped(self.wraps, self.wrap, self.imported_by, self.needs) as is_there, ExitStack() as stack:
            if (ended := self._guarded_if_own("ended")) is not None:
                atexit.register(ended)
                stack.callback(ended)
                stack.callback(atexit.unregister, ended)
            yield is_there

    def guarded(self, function: Callable[P, T]) -> Callable[P, T | None]:
        """The function, whose exceptions become records."""
        if self.during_exports:
            return self.hooks.guarded(type(self), function)

        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            return None if self.hooks.exporting.level else function(*args, **kwargs)

        return self.hooks.guarded(type(self), call)

    def _guarded_if_own(self, method: str) -> Callable[..., Any] | None:
        return None if getattr(type(self), method) is getattr(Hook, method) else self.guarded(getattr(self, method))


class _Depth(threading.local):
    """The depth of exports of this thread inside one another."""

    level = 0


class Hooks:
    """The hooks of one recording, and what they share: ``write`` takes records, ``merged`` makes one record of what a
    hook and the structured trace say, ``exporting`` is true if this thread exports right now."""

    def __init__(self, kinds: Iterable[type[Hook]], write: Callable[[Record], None]) -> None:
        self.write = write
        self.exporting = _Depth()
        self.merged = TraceAndHooks(self.works)
        self.failed: set[str] = set()  # the names of the hooks that ever failed
        self._available: set[str] = set()
        self._failing: set[str] = set()
        self._stack = ExitStack()
        self._hooks = {kind: kind(self) for kind in kinds}
        self._waiting: dict[type[Hook], Hook] = {}

    def of(self, kind: type[H]) -> H:
        hook = self._hooks[kind]
        assert isinstance(hook, kind)
        return hook

    def works(self, name: str) -> bool:
        """Return whether a hook saw what the trace speaks of: it did not fail when it was called last.  The hook for
        frames comes after the trace: it may never fail."""
        return name in self._available and name not in (self.failed if name == "frames" else self._failing)

    def install(self, left_out: Collection[type[Hook]]) -> None:
        """Installs all but those that are left out.  The last one is the outermost: it is at work around the others."""
        for kind, hook in self._hooks.items():
            if kind in left_out:
                continue
            if kind.waits_for is not None:
                self._waiting[kind] = hook
            else:
                self._install(hook)
        self.loaded()

    def loaded(self, executed: str | None = None) -> None:
        """Installs the hooks for modules of torch that the program has loaded by now; ``executed`` is one whose import
        is about to end.  Cheap to call again and again."""
        if not self._waiting:
            return
        for kind in [kind for kind in self._waiting if kind.waits_for == executed or _is_loaded(kind.waits_for)]:
            # Two threads may ask at once.
            hook = self._waiting.pop(kind, None)
            if hook is not None:
                self._install(hook)

    def close(self) -> None:
        self._stack.close()

    def guarded(self, hook: type[Hook], function: Callable[P, T]) -> Callable[P, T | None]:
        """The function, whose exceptions become records of the hook."""

        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                self._failing.add(hook.name)
                self.report_failure(hook, error)
                return None
            self._failing.discard(hook.name)
            return result

        return untraced(call)

    def _install(self, hook: Hook) -> None:
        def install() -> None:
            available = self._stack.enter_context(hook.installed())
            if available:
                self._available.add(hook.name)
            self.write(HookInstalled(hook.name, available, "" if available else hook.without))

        self.guarded(type(hook), install)()

    def report_failure(self, hook: type[Hook], error: Exception) -> None:
        """Once a hook: a hook that fails, fails often."""
        if hook.name not in self.failed:
            self.failed.add(hook.name)
            with suppress(Exception):
                self.write(HookFailed(hook.name, f"{type(error).__name__}: {error}", hook.without))


def untraced(function: Callable[P, T]) -> Callable[P, T]:
    """The function, kept off the compiler.  If a compiled function falls back to eager, Dynamo compiles what it
    calls, and would compile a hook that is called there as well."""
    from torch.compiler import disable

    return disable(function)  # type: ignore[no-any-return, no-untyped-call]


def leave_no_trace(error: BaseException) -> None:
    """Takes the frame that handles an exception, and raises it again, out of its traceback: torch prints it, to the
    user, where a backend fails.  Python 3.10 puts it back."""
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next


@contextmanager
def wrapped(
    functions: Sequence[str],
    wrap: Callable[[str, Any], Callable[..., Any]],
    imported_by: Iterable[str] = (),
    needs: Iterable[str] = (),
) -> Iterator[bool]:
    """Replaces each function, ``module:Class.function``, by ``wrap(name, original)`` while the block runs; also in the
    modules that import it by its name.  Yields False, with nothing replaced, if this torch lacks one of them or of the
    names that are needed.  Dynamo reads the file names of the frames above it: to see where the user's code ends, and
    whether a function under ``torch.compiler.disable(recursive=False)`` called it.  So the wrapper carries the file
    name of what it wraps, and a traceback that runs through it shows torch alone, as it would without us."""
    places = [_place(function) for function in functions]
    is_there = all(isinstance(getattr(owner, name, None), FunctionType) for owner, name in places)
    if not is_there or any(_resolved(name) is None for name in needs):
        yield False
        return
    with ExitStack() as stack:
        for owner, name in places:
            stack.enter_context(_replaced(owner, name, wrap, imported_by))
        yield True


@contextmanager
def _replaced(
    owner: Any, name: str, wrap: Callable[[str, Any], Callable[..., Any]], imported_by: Iterable[str]
) -> Iterator[None]:
    original = getattr(owner, name)
    replacement = wrap(name, original)
    assert isinstance(replacement, FunctionType)
    code = original.__code__
    replacement.__code__ = replacement.__code__.replace(
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=code.co_name
    )
    # Dynamo names a function that it does not trace by these.
    for attribute in ("__module__", "__name__", "__qualname__"):
        setattr(replacement, attribute, getattr(original, attribute))
    modules = [module for module in map(sys.modules.get, imported_by) if module]
    for holder in (owner, *(module for module in modules if getattr(module, name, None) is original)):
        setattr(holder, name, replacement)
    try:
        yield
    finally:
        # A module that was imported since took the wrapper, and Dynamo wraps methods of modules when it first compiles.
        for holder in (owner, *filter(None, map(sys.modules.get, imported_by))):
            found = getattr(holder, name, None)
            if found is replacement:
                setattr(holder, name, original)
            for cell in getattr(found, "__closure__", None) or ():
                with suppress(ValueError):  # an empty one
                    if cell.cell_contents is replacement:
                        cell.cell_contents = original


def _place(function: str) -> tuple[Any, str]:
    """The object that holds a function, and the name under which it does."""
    owner, _, name = function.rpartition("." if "." in function.partition(":")[2] else ":")
    return _resolved(owner), name


def _resolved(name: str) -> Any:
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


def _is_loaded(module: str | None) -> bool:
    """Return whether a module is loaded: not while it is being imported, as its functions are not all there then."""
    found = sys.modules.get(module or "")
    return found is not None and not getattr(getattr(found, "__spec__", None), "_initializing", False)


@contextmanager
def own_code_skipped() -> Iterator[None]:
    """Adds breakscan's folder to those that Dynamo skips (``torch._dynamo.trace_rules.SKIP_DIRS``) while the block
    runs: some functions of ours are called while compiled code runs, and Dynamo would try each, and count it."""
    from torch._dynamo import trace_rules

    folders = getattr(trace_rules, "SKIP_DIRS", None)
    take_in = getattr(trace_rules, "_recompile_re", None)
    if not isinstance(folders, list) or take_in is None or OURS in folders:
        yield
        return
    folders.append(OURS)
    take_in()
    # Not in a finally: where Python ends, and closes this, torch cannot read its lists any more, and would say so.
    yield
    folders.remove(OURS)
    take_in()
