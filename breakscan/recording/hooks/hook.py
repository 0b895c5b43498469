"""The base of hooks into torch, which wrap private functions of torch without torch or the user noticing.

Nothing that goes wrong in a hook reaches the user's program: it becomes a record.
"""

from __future__ import annotations

import atexit
import pkgutil
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import FunctionType
from typing import Any, ClassVar, ParamSpec, TypeVar

from breakscan.recording.hooks.object_facts import OURS
from breakscan.recording.records import HookFailed, HookInstalled, Record
from breakscan.recording.trace_fallback import TraceAndHooks

P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound="Hook")


class Hook:
    """One kind of datum of a run: the functions of torch that are wrapped for it, and what is recorded of their calls.

    Most hooks define :meth:`before`, :meth:`after` or :meth:`raised`; others wrap functions in their own way, or need
    no wrapping.
    """

    name: ClassVar[str] = "recorder"
    without: ClassVar[str] = "something is missing"
    """The clause of a report if torch lacks what the hook needs."""
    wraps: ClassVar[tuple[str, ...]] = ()
    """The functions, as ``module:Class.function``."""
    imported_by: ClassVar[tuple[str, ...]] = ()
    """Modules that import these functions by their names."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Other private names of torch without which the hook does nothing."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Private names that it can do without, and attributes that the module sets on its objects."""
    waits_for: ClassVar[str | None] = None
    """A module that a program may never load: importing Inductor takes longer than many programs run."""
    during_exports: ClassVar[bool] = False
    """It sees what an export compiles on its way, which is not for the program to run."""
    may_be_traced: ClassVar[bool] = False
    """Dynamo may trace the wrapped functions: there, they are called alone."""

    def __init__(self, hooks: Hooks) -> None:
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

    def installed(self) -> AbstractContextManager[bool]:
        """Records while the block runs.  Yields False if this torch lacks what that needs: nothing is recorded then."""
        return wrapped(self.wraps, self.wrap, self.imported_by, self.needs)

    def guarded(self, function: Callable[P, T]) -> Callable[P, T | None]:
        """The function, whose exceptions become records."""
        if self.during_exports:
            return self.hooks.guarded(type(self), function)

        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            return None if self.hooks.exporting.level else function(*args, **kwargs)

        return self.hooks.guarded(type(self), call)

    def _guarded_if_own(self, method: str) -> Callable[..., Any] | None:
        return None if getattr(type(self), method) is getattr(Hook, method) else self.guarded(getattr(self, method))


@contextmanager
def written_at_end(write: Callable[[], object]) -> Iterator[None]:
    """Writes what is left when the block ends, or the process."""
    atexit.register(write)
    try:
        yield
    finally:
        atexit.unregister(write)
        write()


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
        self._available: set[str] = set()
        self._failed: set[str] = set()
        self._failing: set[str] = set()
        self._stack = ExitStack()
        self._hooks = {kind: kind(self) for kind in kinds}
        self._waiting: dict[type[Hook], Hook] = {}

    def of(self, kind: type[H]) -> H:
        """The hook of a class."""
        hook = self._hooks[kind]
        assert isinstance(hook, kind)
        return hook

    def works(self, name: str) -> bool:
        """Return whether a hook saw what the trace speaks of.  The hook for frames comes after the trace: it may not
        fail."""
        return name in self._available and not self.has_failed(name, ever=name == "frames")

    def has_failed(self, name: str, *, ever: bool) -> bool:
        """Return whether a hook failed when it was called last, or ever."""
        return name in (self._failed if ever else self._failing)

    def install(self, left_out: Collection[type[Hook]]) -> None:
        """Installs all but those that are left out.  The last one is the outermost: what the others see is seen while
        it is at work."""
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
        """Takes all hooks out of torch."""
        self._stack.close()

    def guarded(self, hook: type[Hook], function: Callable[P, T]) -> Callable[P, T | None]:
        """The function, whose exceptions become records of the hook."""

        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                self._failing.add(hook.name)
                self._report_failure(hook, error)
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

    def _report_failure(self, hook: type[Hook], error: Exception) -> None:
        """Once a hook: a hook that fails, fails often."""
        if hook.name not in self._failed:
            self._failed.add(hook.name)
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
    names that are needed.

    Dynamo reads the file names of the frames above it: to see where the user's code ends, and whether a
    function under ``torch.compiler.disable(recursive=False)`` called it.  So the wrapper carries the file name
    of what it wraps, and a traceback that runs through it shows torch alone, as it would without us.
    """
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
    importers = [sys.modules[module] for module in imported_by if module in sys.modules]
    sharing = [owner, *(module for module in importers if getattr(module, name, None) is original)]
    for holder in sharing:
        setattr(holder, name, replacement)
    try:
        yield
    finally:
        # A module that was imported since took the wrapper.
        late = [module for module in map(sys.modules.get, imported_by) if getattr(module, name, None) is replacement]
        for holder in [*sharing, *late]:
            setattr(holder, name, original)


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
    runs: some functions of ours are called while compiled code runs, and Dynamo would try each, and count it.  Does
    nothing if this torch has no such list."""
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
