"""Function summaries: what functions of other files return and emit, cached by arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from breakscan.check.interpreter.function_state import State
from breakscan.check.interpreter.value_log import Notes
from breakscan.check.interpreter.values import ClassOrObject, Container, Function, Module, Namespace, Value
from breakscan.check.project.imports import Drawn, Project
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Mode

MOST_DEEP = 12
MOST_KEPT_A_FILE = 400
MOST_LOANS = 150
"""How many summaries one file may make: three times what any file of large libraries needs.  Where functions call each
other with further arguments each time, there is no end to it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a function of another file returns for some arguments, the states of all functions that it calls, and what
    was noted, if notes were taken."""

    returns: Value
    states: dict[FunctionInfo, State]
    drawn: Drawn
    notes: Notes | None


class Isolated(Protocol):
    """An interpretation that knows nothing of the file that calls; ``program.Program`` implements it."""

    notes: Notes | None
    closures: list[dict[str, Value]]

    @property
    def states(self) -> dict[FunctionInfo, State]: ...
    def run_apart(self, info: FunctionInfo, parameters: dict[str, Value]) -> Value: ...
    def release(self) -> None: ...


class SummaryCache:
    """Interprets functions for other files, each apart from what those files know."""

    def __init__(self, project: Project, mode: Mode, start: Callable[[ModuleIndex, SummaryCache], Isolated]) -> None:
        self._project = project
        self._mode = mode
        self._start = start
        self._running: set[object] = set()
        self._made = 0

    def lend(self, info: FunctionInfo, parameters: dict[str, Value]) -> Summary | None:
        """The summary of a call; None while the function is being interpreted for the same arguments."""
        key = info, self._mode, tuple(parameters.items())
        known = info.index.remembered.get(key)
        if isinstance(known, Summary) and self._project.draw_again(known.drawn):
            return known
        if key in self._running or len(self._running) >= MOST_DEEP or self._made >= MOST_LOANS:
            return None
        self._made += 1
        self._running.add(key)
        try:
            with self._project.recording() as drawn:
                apart = self._start(info.index, self)
                returns = apart.run_apart(info, parameters)
                states, notes = apart.states, apart.notes
                info.index.closures += apart.closures
                apart.closures = []
                apart.release()
        finally:
            self._running.discard(key)
        loan = Summary(returns, states, drawn, notes)
        if len(info.index.remembered) < MOST_KEPT_A_FILE and not self._project.is_full:
            info.index.remembered[key] = loan
        return loan


def is_untied(value: Value) -> bool:
    """Whether a value means the same in any file: no module or function of the caller's is in it."""
    match value:
        case Module() | Function():
            return False
        case Namespace():
            return value.bound is None
        case ClassOrObject():
            return all(map(is_untied, value.choices))
        case Container():
            parts = (*(value.elements or ()), *(part for _, part in value.keys))
            return all(map(is_untied, parts)) and (value.element is None or is_untied(value.element))
    return True
