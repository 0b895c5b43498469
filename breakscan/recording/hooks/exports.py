"""Hooks into exports with ``torch.export``, or compiles ahead of time with AOTInductor, and how that ended."""

from __future__ import annotations

import inspect
import itertools
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from breakscan.recording.hooks.hook import Hook, Hooks, leave_no_trace
from breakscan.recording.hooks.object_facts import calling_stack, stack_of
from breakscan.recording.hooks.targets import name_of, written_code
from breakscan.recording.records import Code, ExportEnded, StackFrame


@dataclass(frozen=True, slots=True)
class _Begun:
    target: str
    code: Code | None
    strict: bool | None
    stack: tuple[StackFrame, ...]
    at: float


class ExportHook(Hook):
    """Records each outermost export: every one goes through ``_export``."""

    name = "exports"
    without = "what torch.export.export exported, and why that failed, is missing"
    wraps: ClassVar[tuple[str, ...]] = ("torch.export._trace:_export",)
    imported_by = ("torch.export._draft_export",)
    waits_for: ClassVar[str | None] = "torch.export._trace"
    during_exports = True
    way = "export"
    holds = 1
    """The depth that a call adds while it runs: not, where what is compiled meanwhile is the
    program's."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self.names = InternedNames()
        self.exported: WeakKeyDictionary[Any, tuple[str, Code | None]] = WeakKeyDictionary()

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        begin, end = self.guarded(self._begun), self.guarded(self._ended)
        depth, names = self.hooks.exporting, self.hooks.of(ExportHook).names

        def export(*args: Any, **kwargs: Any) -> Any:
            begun = None if depth.level else begin(original, args, kwargs)
            depth.level += self.holds
            try:
                with names.as_alone() if isinstance(self, DraftHook) else nullcontext():
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

    def _begun(self, original: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Begun:
        given = inspect.signature(original).bind(*args, **kwargs)
        given.apply_defaults()
        subject = next(iter(given.arguments.values()))
        ahead = isinstance(self, AheadHook)
        known = self.hooks.of(ExportHook).exported.get(subject) if ahead else None
        target, code = known or (name_of(subject), None if ahead else written_code(subject))
        strict = given.arguments.get("strict")
        stack = calling_stack(sys._getframe(1))
        return _Begun(target, code, None if strict is None else bool(strict), stack, time.perf_counter())

    def _ended(self, begun: _Begun, result: Any, error: Exception | None) -> None:
        seconds = time.perf_counter() - begun.at
        if error is None and self.way in ("export", "draft_export"):
            self.hooks.of(ExportHook).exported[result] = begun.target, begun.code
        self.hooks.write(
            ExportEnded(
                way=self.way,
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
            )
        )


class DraftHook(ExportHook):
    """The same for ``draft_export``."""

    name = "drafts"
    without = "what draft_export exported is missing"
    wraps = ("torch.export._draft_export:draft_export",)
    waits_for = "torch.export._draft_export"
    way = "draft_export"


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


def _operations(result: Any) -> int | None:
    """The operations of an exported program; None of anything else."""
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


class InternedNames:
    """Keeps the names of files that torch would have numbered without us.

    ``draft_export`` turns the trace on for itself, and leaves out of its report the files that were numbered before.
    Without a handler, torch numbers next to none; with ours, most.
    """

    def __init__(self) -> None:
        self._alone: dict[str, int] | None = None

    def saw(self, metadata: Mapping[str, Any]) -> None:
        """A record of the trace.  Torch's own handler stands until the first record, which names of files precede."""
        if self._alone is None and "str" not in metadata:
            self._alone = dict(_table())

    @contextmanager
    def as_alone(self) -> Iterator[None]:
        """Torch knows those names alone while the block runs.  Where the program has the trace on, it knows all."""
        if any(map(_writes, logging.getLogger("torch.__trace").handlers)):
            yield
            return
        table = _table()
        with_us = None if self._alone is None else dict(table)
        if self._alone is not None:
            _fill(table, self._alone)
        try:
            yield
        finally:
            self._alone = dict(table)
            if with_us is not None:
                _fill(table, with_us)


def _writes(handler: logging.Handler) -> bool:
    """Return whether the handler is the program's: not ours, nor torch's own, which without a folder gives up at its
    first record."""
    if type(handler).__module__.startswith("breakscan."):
        return False
    return type(handler).__name__ != "LazyTraceHandler" or getattr(handler, "root_dir", None) is not None


def _table() -> dict[str, int]:
    from torch._logging import structured

    return structured.INTERN_TABLE


def _fill(table: dict[str, int], names: Mapping[str, int]) -> None:
    table.clear()
    table.update(names)
