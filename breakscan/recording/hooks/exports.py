"""Hooks into exports with ``torch.export``, or compiles ahead of time with AOTInductor, and how that ended."""

from __future__ import annotations

import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from breakscan.recording.hooks.hook import Hook, Hooks, leave_no_trace
from breakscan.recording.hooks.object_facts import calling_stack, stack_of
from breakscan.recording.hooks.targets import name_of, written_code
from breakscan.recording.parsers.frames import is_written_by_fx
from breakscan.recording.records import Code, ExportEnded, StackFrame


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
    """The traced frames where Dynamo traced, else those that the exception went through, but for code that torch writes
    and runs, which is no module's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = (frame for frame in frames if not is_written_by_fx(frame.filename))
    return stack_of(getattr(error, "real_stack", None)) or stack_of(own)
