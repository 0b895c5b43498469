"""The state of a function that the entries of a file reach, and what functions of other files return and emit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from breakscan.check.interpreter.value_log import Notes
from breakscan.check.interpreter.values import UNKNOWN, ClassOrObject, Container, Function, Module, Namespace, Value
from breakscan.check.project.imports import Drawn, Project
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Condition, Mode, Place, Region
from breakscan.rulebook.events import Event, EventKind

# The state of a function that the entries of a file reach.


EventKey = tuple[EventKind, str, str | None, int, int, int, int]
"""The kind, form, callee and span of an event."""


@dataclass(frozen=True, slots=True)
class CallPath:
    """The facts on every path to a method: results of tests of attributes of its object, by their names, conditions,
    and the test that decides whether it is called."""

    outcomes: Mapping[str, bool] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    test: Condition | None = None


@dataclass(slots=True)
class State:
    """The state of a function: its parameters so far, its result, and the events of its last run."""

    parameters: dict[str, Value]
    region: Region | None
    place: Place = Place.PLAIN
    via: str | None = None
    returns: Value = UNKNOWN
    events: dict[EventKey, Event] = field(default_factory=dict)
    calls: set[FunctionInfo] = field(default_factory=set)
    handles_tensors: bool = False
    mixed: bool = False
    """True if its calls give it different things."""
    chosen: Condition | None = None
    """The condition under which an inner function runs that is called only as one of several."""
    path: CallPath | None = None
    """The facts at all its calls; None while nothing has called it."""
    closure: dict[str, Value] | None = None
    """The names of the enclosing function, for an inner one."""
    in_wrapper: bool = False
    """True if nothing but what decorators put around functions reaches it, and it is in another file."""
    ran: bool = False
    running: bool = False
    changes: int = 0
    """The number of changes of an input since the function ran first."""
    callers: dict[FunctionInfo, None] = field(default_factory=dict)
    """The functions that used what it returns."""


MOST_DEEP = 12
MOST_KEPT_A_FILE = 400
MOST_LOANS = 150
"""The limit of summaries for one file: three times what any file of large libraries needs.  Where functions call each
other with further arguments each time, there is no end to it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a function of another file for some arguments: its result, the states of all functions that it
    calls, and the notes, if any were taken."""

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
    """True if a value means the same in any file: no module or function of the caller's is in it."""
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
