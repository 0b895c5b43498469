"""One function under interpretation: its names, where it stands, and the events that it emits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from breakscan.analysis.index import FunctionInfo
from breakscan.analysis.values import UNKNOWN, Sure, Value
from breakscan.findings import Confidence, Place
from breakscan.rulebook.events import Argument, Event, EventKind

if TYPE_CHECKING:
    from breakscan.analysis.program import Program

_CONFIDENCE = {Sure.CERTAIN: Confidence.CERTAIN, Sure.LIKELY: Confidence.LIKELY, Sure.POSSIBLE: Confidence.POSSIBLE}

EventKey = tuple[EventKind, str, str | None, int, int, int, int]


class Frame:
    """The state of one pass over one function, or over the body of the file (``function`` is None)."""

    def __init__(
        self,
        program: Program,
        function: FunctionInfo | None,
        names: dict[str, Value],
        place: Place = Place.PLAIN,
        via: str | None = None,
    ) -> None:
        self.program = program
        self.index = program.index
        self.api = program.api
        self.function = function
        self.names = names
        self.returned: list[Value] = []
        self.events: dict[EventKey, Event] = {}
        self.silent = False
        """Set while the body of the file is read: nothing there is compiled."""
        self._base_place = place
        self._via = via
        self._places: list[Place] = []
        self.conditions: list[str] = []

    @property
    def place(self) -> Place:
        """The innermost place that decides a break's verdict here, else that of the calls that lead here."""
        return self._places[-1] if self._places else self._base_place

    @property
    def via(self) -> str | None:
        """The caller whose frame a break here gives up, where it is a call that stands in such a place."""
        return None if self._places else self._via

    @contextmanager
    def within(self, place: Place) -> Iterator[None]:
        if place is not Place.PLAIN:
            self._places.append(place)
        try:
            yield
        finally:
            if place is not Place.PLAIN:
                self._places.pop()

    @contextmanager
    def leaving_loops(self) -> Iterator[None]:
        """Inside ``return`` and ``raise``: no path leads back to the head of a loop, so Dynamo sees none."""
        saved = self._places
        self._places = [place for place in saved if place is not Place.LOOP]
        try:
            yield
        finally:
            self._places = saved

    @contextmanager
    def under(self, *conditions: str | None) -> Iterator[None]:
        """While these conditions, in words, hold."""
        kept = len(self.conditions)
        self.conditions += [c for c in conditions if c and c not in self.conditions]
        try:
            yield
        finally:
            del self.conditions[kept:]

    def look_up(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        return self.program.look_up_global(name)

    def emit(
        self,
        kind: EventKind,
        node: ast.AST,
        *,
        form: str = "",
        callee: str | None = None,
        attribute: str | None = None,
        operand: Value = UNKNOWN,
        arguments: tuple[Argument, ...] = (),
        sure: Sure = Sure.CERTAIN,
    ) -> None:
        """Notes an event at a node, if a rule could want it."""
        if self.silent or callee in self.program.ignored_callees or not self.program.rules.wants(kind, callee):
            return
        line, column, end_line, end_column = self.program.span(node)
        conditions = [*self.conditions, *([operand.optional] if operand.optional else [])]
        condition = " and ".join(dict.fromkeys(conditions)) or None
        event = Event(
            kind=kind,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            form=form,
            callee=callee,
            attribute=attribute,
            operands=operand.words(),
            arguments=arguments,
            place=self.place,
            via=self.via,
            confidence=_CONFIDENCE[sure],
            operand_confidence=_CONFIDENCE[operand.sure],
            condition=condition,
            text=self.program.text_of(node),
        )
        self.events[kind, form, callee, line, column, end_line, end_column] = event
