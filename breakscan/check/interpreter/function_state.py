"""The state of a function that the entries of a file reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakscan.check.interpreter.values import UNKNOWN, Value
from breakscan.check.project.index import FunctionInfo
from breakscan.model.findings import Condition, Place, Region
from breakscan.rulebook.events import Event, EventKind

EventKey = tuple[EventKind, str, str | None, int, int, int, int]
"""The kind, form, callee and span of an event."""


@dataclass(frozen=True, slots=True)
class CallPath:
    """What holds on every path to a method: what tests of attributes of its object give, by their names, conditions,
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
    """Whether its calls give it different things."""
    chosen: Condition | None = None
    """The condition under which an inner function runs that is called only as one of several."""
    path: CallPath | None = None
    """What holds wherever it is called; None while nothing has called it."""
    closure: dict[str, Value] | None = None
    """The names of the enclosing function, for an inner one."""
    in_wrapper: bool = False
    """Whether nothing but what decorators put around functions reaches it, and it is in another file."""
    ran: bool = False
    running: bool = False
    changes: int = 0
    """How often an input has changed since the function ran first."""
    callers: dict[FunctionInfo, None] = field(default_factory=dict)
    """The functions that used what it returns."""
