"""What the program exports with ``torch.export``, or compiles ahead of time with AOTInductor, and how that ended.

Wraps ``_export`` of ``torch.export._trace``, through which every export goes, ``draft_export`` of
``torch.export._draft_export``, ``aoti_compile_and_package`` and ``aot_compile`` of ``torch._inductor``, and
``torch._dynamo.aot_compile.aot_compile_fullgraph``, which serves ``aot_compile`` of compiled functions.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from breakscan.record.hooks.interned_names import InternedNames
from breakscan.record.hooks.object_facts import calling_stack, stack_of
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.hooks.targets import name_of, written_code
from breakscan.record.records import Code, ExportEnded, ExportIssue, StackFrame

TRACE = "torch.export._trace"
DRAFT = "torch.export._draft_export"
INDUCTOR = "torch._inductor"
COMPILED = "torch._dynamo.aot_compile"
MODULES = (TRACE, DRAFT, INDUCTOR)
"""Those whose functions are wrapped: a program may load them only when it exports."""

_NAME = "_export"
_DRAFTING = "draft_export"
_COMPILING = "aot_compile"
_AHEAD_OF_TIME = ("aoti_compile_and_package", "aot_compile")


@dataclass(frozen=True, slots=True)
class _Begun:
    way: str
    target: str
    code: Code | None
    strict: bool | None
    stack: tuple[StackFrame, ...]
    at: float


class _Depth(threading.local):
    """How many calls of this thread are inside one another."""

    level = 0


class ExportWatch:
    """Hands each outermost call to ``sink`` when it has ended.  ``guarded`` makes a function of ours one that raises
    nothing."""

    def __init__(self, sink: Callable[[ExportEnded], object], guarded: Callable[..., Callable[..., Any]]) -> None:
        self._sink = sink
        self._begin = guarded(self._begun)
        self._end = guarded(self._ended)
        self._depth = _Depth()
        self._names = InternedNames()
        self._exported: WeakKeyDictionary[Any, tuple[str, Code | None]] = WeakKeyDictionary()

    def saw(self, metadata: Mapping[str, Any]) -> None:
        """A record of the structured trace."""
        self._names.saw(metadata)

    def is_running(self) -> bool:
        """Whether this thread exports right now: what is compiled meanwhile serves the export."""
        return self._depth.level > 0

    @contextmanager
    def exports(self) -> Iterator[bool]:
        """Watches ``torch.export.export`` while the block runs.  ``TRACE`` is loaded already.  Yields False where this
        torch has no such hook: nothing is recorded then."""
        original = getattr(sys.modules[TRACE], _NAME, None)
        with wrapped([TRACE], _NAME, self._wrap("export")) as found:
            replacement = getattr(sys.modules[TRACE], _NAME, None)
            try:
                yield found
            finally:
                # Imported since, it took the wrapper.
                late = sys.modules.get(DRAFT)
                if found and getattr(late, _NAME, None) is replacement:
                    setattr(late, _NAME, original)

    @contextmanager
    def drafts(self) -> Iterator[bool]:
        """As :meth:`exports`, for ``draft_export``; ``DRAFT`` is loaded."""
        with wrapped([DRAFT], "draft_export", self._wrap(_DRAFTING)) as found:
            yield found

    @contextmanager
    def ahead_of_time(self) -> Iterator[bool]:
        """As :meth:`exports`, for AOTInductor; ``INDUCTOR`` is loaded."""
        package, compile_ = _AHEAD_OF_TIME
        wrap = self._wrap("aot_inductor")
        with wrapped([INDUCTOR], package, wrap) as packages, wrapped([INDUCTOR], compile_, wrap) as compiles:
            yield packages and compiles

    @contextmanager
    def compiled_ahead(self) -> Iterator[bool]:
        """As :meth:`exports`, for ``aot_compile`` of what ``torch.compile`` gave; ``COMPILED`` is loaded.  The program
        runs what is compiled there."""
        with wrapped([COMPILED], "aot_compile_fullgraph", self._wrap(_COMPILING, holds=0)) as found:
            yield found

    def _wrap(self, way: str, *, holds: int = 1) -> Callable[[Any], Callable[..., Any]]:
        """``holds`` is by how much the calls are inside one another while this one runs: not, where what is compiled
        meanwhile is the program's."""

        def wrap(original: Any) -> Callable[..., Any]:
            def export(*args: Any, **kwargs: Any) -> Any:
                begun = None if self._depth.level else self._begin(way, original, args, kwargs)
                self._depth.level += holds
                try:
                    with self._names.as_alone() if way == _DRAFTING else nullcontext():
                        result = original(*args, **kwargs)
                except Exception as error:
                    if begun is not None:
                        self._end(begun, None, error)
                    leave_no_trace(error)
                    raise
                finally:
                    self._depth.level -= holds
                if begun is not None:
                    self._end(begun, result, None)
                return result

            return export

        return wrap

    def _begun(self, way: str, original: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Begun:
        given = inspect.signature(original).bind(*args, **kwargs)
        given.apply_defaults()
        subject = next(iter(given.arguments.values()))
        known = self._exported.get(subject) if way == "aot_inductor" else None
        target, code = known or (name_of(subject), None if way == "aot_inductor" else written_code(subject))
        strict = given.arguments.get("strict")
        stack = calling_stack(sys._getframe(1))
        return _Begun(way, target, code, None if strict is None else bool(strict), stack, time.perf_counter())

    def _ended(self, begun: _Begun, result: Any, error: Exception | None) -> None:
        seconds = time.perf_counter() - begun.at
        if error is None and begun.way in ("export", _DRAFTING):
            self._exported[result] = begun.target, begun.code
        self._sink(
            ExportEnded(
                way=begun.way,
                target=begun.target,
                code=begun.code,
                stack=begun.stack,
                strict=begun.strict,
                at=begun.at,
                seconds=seconds,
                ops=_operations(result),
                error=None if error is None else type(error).__name__,
                text="" if error is None else str(error),
                failed_at=() if error is None else _stack_of_failure(error),
                issues=tuple(_issues(getattr(result, "_report", None))),
            )
        )


def _operations(result: Any) -> int | None:
    """Of an exported program; None of anything else."""
    graph = getattr(getattr(result, "graph_module", None), "graph", None)
    return None if graph is None else sum(node.op == "call_function" for node in graph.nodes)


def _stack_of_failure(error: Exception) -> tuple[StackFrame, ...]:
    """The traced frames where Dynamo traced, else those that the exception went through."""
    return stack_of(getattr(error, "real_stack", None)) or tuple(_frames_of(error.__traceback__))


def _frames_of(traceback: TracebackType | None) -> Iterator[StackFrame]:
    """Outermost first, without code that torch writes and runs, which is no module's."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if traceback.tb_frame.f_globals.get("__name__") is not None:
            columns = _columns(code, traceback.tb_lasti)
            yield StackFrame(code.co_filename, traceback.tb_lineno, code.co_name, *columns)
        traceback = traceback.tb_next


def _columns(code: CodeType, instruction: int) -> tuple[int | None, int | None]:
    """Python 3.10 does not know them."""
    positions: Callable[[], Iterable[tuple[int | None, ...]]] | None = getattr(code, "co_positions", None)
    if positions is None:
        return None, None
    line, end_line, column, end_column = next(itertools.islice(positions(), instruction // 2, None))
    return column, end_column if line == end_line else None


def _issues(report: Any) -> Iterator[ExportIssue]:
    """What ``draft_export`` reports.  A failure that torch expects is none."""
    names = getattr(report, "str_to_filename", {})
    for failure in getattr(report, "failures", ()):
        data = failure.data
        if not getattr(failure, "xfail", False):
            yield ExportIssue(
                kind=str(failure.failure_type),
                about=str(data.get("expr") or data.get("op") or ""),
                reason=str(data.get("reason") or ""),
                stack=tuple(_interned(data.get("user_stack") or data.get("stack") or (), names)),
                count=int(data.get("occurrences") or 1),
            )


def _interned(stack: Iterable[Mapping[str, Any]], names: Mapping[Any, str]) -> Iterator[StackFrame]:
    from torch._logging import structured

    known = {number: name for name, number in structured.INTERN_TABLE.items()} | dict(names)
    for frame in stack:
        if frame["filename"] in known:
            yield StackFrame(known[frame["filename"]], int(frame["line"]), str(frame["name"]))
