"""Measures the time for which Dynamo traces each line, and the functions that are called there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from types import CodeType
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks, leave_no_trace
from breakscan.recording.hooks.object_facts import code_of, current_compile_id
from breakscan.recording.records import Code, TracingTimed

LEAST_PART = 0.002
"""The least share of the time of all lines of a compilation: what took less is part of the line that called it."""


@dataclass(slots=True)
class _Line:
    """A line of a function, called from where it was.  ``seconds`` are its own."""

    code: Code
    line: int
    seconds: float = 0.0
    inner: dict[tuple[Code, int], _Line] = field(default_factory=dict)

    def total(self) -> float:
        return self.seconds + sum(line.total() for line in self.inner.values())


@dataclass(slots=True)
class _Frame:
    """A function that is traced now: ``lines`` is where its lines are kept, ``current`` the one that it is at."""

    code: Code
    lines: dict[tuple[Code, int], _Line]
    current: _Line


class LineHook(Hook):
    """Measures the lines of the compilations that have not ended: the time between two lines belongs to the first of
    them.  The line at which a graph ends is the one at which it goes to the backend, and that is no tracing."""

    name = "lines"
    without = "how long lines were traced is missing"
    wraps = (
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.run",
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.starts_line",
        "torch._dynamo.output_graph:OutputGraph.mark_bytecode_tracing_stop",
    )
    during_exports = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._thread = threading.local()
        self._trees: dict[str, dict[tuple[Code, int], _Line]] = {}

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        enter, line = self.guarded(self._enter), self.guarded(self._line)
        leave, stop = self.guarded(self._leave), self.guarded(self._stop)

        def run(self: Any) -> Any:
            enter(self.f_code, self.parent is None)
            try:
                return original(self)
            except Exception as error:
                leave_no_trace(error)
                raise
            finally:
                leave()

        def starts_line(self: Any, lineno: int) -> Any:
            if self.lineno != lineno:
                line(lineno)
            return original(self, lineno)

        def mark_bytecode_tracing_stop(self: Any) -> Any:
            stop()
            return original(self)

        wrappers: tuple[Any, ...] = (run, starts_line, mark_bytecode_tracing_stop)
        return next(wrapper for wrapper in wrappers if wrapper.__name__ == name)  # type: ignore[no-any-return]

    def record(self, compile_id: str) -> TracingTimed | None:
        """The record of a compilation that has ended, once; None without anything."""
        tree = self._trees.pop(compile_id, None)
        return _record(compile_id, tree) if tree else None

    def _enter(self, code: CodeType, is_root: bool) -> None:
        """A function is traced from here on.  One that is started over adds to what it took before."""
        stack = self._stack()
        self._tick(stack)
        if is_root or not stack:
            self._thread.stopped = False
            lines = self._trees.setdefault(current_compile_id() or "", {})
        else:
            lines = stack[-1].current.inner
        at = code_of(code)
        stack.append(_Frame(at, lines, _line_in(lines, at, at.line)))

    def _line(self, number: int) -> None:
        stack = self._stack()
        self._tick(stack)
        if stack:
            frame = stack[-1]
            frame.current = _line_in(frame.lines, frame.code, number)

    def _leave(self) -> None:
        stack = self._stack()
        self._tick(stack)
        if stack:
            stack.pop()

    def _stop(self) -> None:
        self._tick(self._stack())
        self._thread.stopped = True

    def _stack(self) -> list[_Frame]:
        stack: list[_Frame] | None = getattr(self._thread, "stack", None)
        if stack is None:
            stack = self._thread.stack = []
        return stack

    def _tick(self, stack: list[_Frame]) -> None:
        """The time since the last tick belongs to the line that is traced now."""
        now = perf_counter()
        if stack and not self._thread.stopped:
            stack[-1].current.seconds += now - self._thread.last
        self._thread.last = now


def _line_in(lines: dict[tuple[Code, int], _Line], code: Code, number: int) -> _Line:
    key = code, number
    found = lines.get(key)
    if found is None:
        found = lines[key] = _Line(code, number)
    return found


def _record(compile_id: str, tree: dict[tuple[Code, int], _Line]) -> TracingTimed:
    least = LEAST_PART * sum(line.total() for line in tree.values())
    kept = list(_in_order(tree, 0, least))
    codes = {line.code: None for _, line in kept}
    numbers = {code: number for number, code in enumerate(codes)}
    return TracingTimed(
        compile_id=compile_id,
        codes=tuple(codes),
        functions=tuple(numbers[line.code] for _, line in kept),
        lines=tuple(line.line for _, line in kept),
        depths=tuple(depth for depth, _ in kept),
        seconds=tuple(line.total() for _, line in kept),
    )


def _in_order(lines: dict[tuple[Code, int], _Line], depth: int, least: float) -> Iterator[tuple[int, _Line]]:
    for line in lines.values():
        if line.total() >= least:
            yield depth, line
            yield from _in_order(line.inner, depth + 1, least)
