"""One function under interpretation: its names, the current place, and the events that it emits."""

import ast
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from breakscan.check.interpreter.module_names import ClassAttributes, DynamoConfig, ModuleNames
from breakscan.check.interpreter.parameters import as_observed, observed_value, seen_attribute, seen_of
from breakscan.check.interpreter.signatures import CallPath, EventKey, Signatures
from breakscan.check.interpreter.value_log import Notes
from breakscan.check.interpreter.values import UNKNOWN, Arguments, Function, NoneValue, Sure, Value, has_outcome
from breakscan.check.project.imports import Project
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Condition, ConditionKind, Confidence, Mode, Place
from breakscan.rulebook.events import Argument, Event, EventKind
from breakscan.rulebook.matching import RuleIndex
from breakscan.rulebook.torch_facts.table import TorchApi
from breakscan.source.spans import span, text_of
from breakscan.source.walking import blocks, is_name, walk

_CONFIDENCE = {Sure.CERTAIN: Confidence.CERTAIN, Sure.LIKELY: Confidence.LIKELY, Sure.POSSIBLE: Confidence.POSSIBLE}
_Exits = tuple[tuple[tuple[int, int], bool], ...]
"""The ends of the ``return`` (True) and ``continue`` (False) statements of a loop, in order."""


def _exits(loop: ast.stmt) -> _Exits:
    found: list[tuple[tuple[int, int], bool]] = []
    queue: list[tuple[ast.stmt, bool]] = [(node, True) for node in getattr(loop, "body", [])]
    while queue:
        node, own = queue.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Continue) and own):
            found.append(((node.end_lineno or 0, node.end_col_offset or 0), isinstance(node, ast.Return)))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner_own = own and not isinstance(node, ast.For | ast.AsyncFor | ast.While)
            queue += [(inner, inner_own) for block in blocks(node) for inner in block]
    return tuple(sorted(found))


class Interpreter(Protocol):
    """The interface of the program under interpretation for evaluation; ``program.Program`` implements it."""

    project: Project
    index: ModuleIndex
    api: TorchApi
    rules: RuleIndex
    mode: Mode
    notes: Notes | None
    names: ModuleNames
    attributes: ClassAttributes
    signatures: Signatures
    config: DynamoConfig
    closures: list[dict[str, Value]]
    inner: dict[FunctionInfo, tuple[FunctionInfo, Function]]

    def evaluate(self, frame: "Frame", node: ast.expr | None) -> Value: ...
    def apply(self, frame: "Frame", node: ast.Call, callee: Value, arguments: Arguments) -> Value: ...
    def call_function(
        self,
        frame: "Frame",
        node: ast.AST,
        info: FunctionInfo,
        given: Arguments,
        closure: dict[str, Value] | None = None,
    ) -> Value: ...
    def call_wrappers(self, frame: "Frame", info: FunctionInfo, given: Arguments) -> None: ...
    def truth_while_traced(self, info: FunctionInfo) -> bool | None: ...
    def pass_callables(self, frame: "Frame", node: ast.AST, values: list[Value]) -> None: ...
    def has_borrowed(self, info: FunctionInfo) -> bool: ...
    def lambda_info(self, node: ast.Lambda, frame: "Frame") -> FunctionInfo: ...


class Frame:
    """The state of one pass over one function, or over the body of a file (``function`` is None)."""

    def __init__(
        self,
        program: Interpreter,
        function: FunctionInfo | None,
        names: dict[str, Value],
        place: Place = Place.PLAIN,
        via: str | None = None,
        index: ModuleIndex | None = None,
    ) -> None:
        self.program = program
        self.index = index or (function.index if function is not None else program.index)
        self.api = program.api
        self.function = function
        self.receiver = function.receiver if function is not None else None
        self.names = names
        self.seen = seen_of(function) if function is not None else None
        """The observations of a recorded run for the function, where they are taken for true."""
        self.parameters = frozenset(names)
        """The names that it starts with."""
        self.notes = program.notes.of(self.index) if program.notes is not None else None
        """The notes that facts are kept in, if they are."""
        self.returned: list[Value] = []
        self.events: dict[EventKey, Event] = {}
        self.silent = False
        """Set while the body of the file is read: nothing there is compiled."""
        self.asked = False
        """Set where the function is only asked what it returns while it is traced."""
        self.traced = True
        """False where Python itself computes with NumPy: in code that sets something up."""
        self.silent_events = False
        self.saw_tensor = False
        self.loops = 0
        """Loops around the current statement that are in their second round."""
        self._base_place = place
        self._via = via
        self._places: list[tuple[Place, _Exits]] = []
        self.entries: dict[str, dict[str, Value]] = {}
        """The tensors that the function has stored in mappings of which nothing else is known, by name and key."""
        self.conditions: list[Condition] = []
        self.tests: list[tuple[ast.expr, bool]] = []
        """The tests that enclose the current statement, each with its outcome."""
        self.nones: tuple[Mapping[str, bool], ...] = ()
        """The arguments that are None, or are not, for each call; empty where not all calls are known."""
        self.outcomes: Mapping[str, bool] = {}
        """Outcomes of tests of attributes of its object on the way here, see :class:`.CallPath`."""
        self.caller_test: Condition | None = None
        """The test of its object that decides whether the function is called."""

    def as_seen(self, node: ast.Attribute, value: Value) -> Value:
        """The value of an attribute, with what a recorded run showed of it."""
        if self.seen is None or self.function is None:
            return value
        seen = seen_attribute(self.function, self.seen, node)
        observed = observed_value(seen, self.index) if seen is not None else None
        return value if observed is None else as_observed(value, observed)

    def place_of(self, node: ast.AST) -> tuple[Place, str | None]:
        """The innermost place that decides a break's verdict at a node, and whose call it is that stands there.  Dynamo
        takes a frame for a loop if, in the order of the code, a jump back past the break comes before the next
        ``return`` (``maybe_has_backedge``, torch 2.13): a ``return`` further down the body hides the loop."""
        hidden, end = False, (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))
        for place, exits in reversed(self._places):
            if place is not Place.LOOP:
                return place, None
            hidden = hidden or next((is_return for at, is_return in exits if at >= end), False)
            if not hidden:
                return Place.LOOP, None
        return self._base_place, self._via

    @contextmanager
    def within(self, place: Place, loop: ast.stmt | None = None) -> Iterator[None]:
        """Sets the place while statements inside ``place`` run; ``loop`` is the statement, if it is a loop."""
        if place is not Place.PLAIN:
            self._places.append((place, _exits(loop) if loop is not None else ()))
        try:
            yield
        finally:
            if place is not Place.PLAIN:
                self._places.pop()

    @contextmanager
    def under(self, *conditions: Condition, muted: bool = False) -> Iterator[None]:
        """Adds conditions to a block; ``muted`` mutes the events of code that only leads to an exception."""
        kept, was = len(self.conditions), self.silent_events
        self.conditions += [c for c in conditions if c not in self.conditions]
        self.silent_events = was or muted
        try:
            yield
        finally:
            del self.conditions[kept:]
            self.silent_events = was

    def restore(self, names: dict[str, Value]) -> None:
        """Gives the names the values that they had, or have after code that need not run."""
        if names is not self.names:
            self.names.clear()
            self.names.update(names)

    def evaluate(self, node: ast.expr | None) -> Value:
        """The value of an expression; see ``expressions``."""
        return self.program.evaluate(self, node)

    def look_up(self, name: str) -> Value:
        return self.names[name] if name in self.names else self.program.names.look_up(name, self.index)

    def _is_ruled_out(self, condition: Condition | None) -> bool:
        """True if the tests that lead to the current statement contradict the condition of a value."""
        if condition is None:
            return False
        if condition.kind is ConditionKind.GIVEN and isinstance(self.names.get(condition.subject), NoneValue):
            return True
        opposite = replace(condition, outcome=not condition.outcome)
        return opposite in self.conditions or opposite in [has_outcome(*test) for test in self.tests]

    def wants(self, kind: EventKind, callee: str | None, form: str = "") -> bool:
        """True if a rule may match such an event here."""
        ignored = self.silent or self.silent_events or callee in self.program.config.ignored_callees
        return not ignored and self.program.rules.wants(kind, callee, form)

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
        """Records an event at a node if a rule may match it."""
        if not self.wants(kind, callee, form):
            return
        where = span(self.index.module, node)
        place, via = self.place_of(node)
        if self._is_ruled_out(operand.optional):
            return
        conditions = [*self.conditions, *([operand.optional] if operand.optional else [])]
        confidence, test, rare = _CONFIDENCE[sure], None, False
        if reports := self.program.rules.reports(kind, callee):
            confidence, test, rare = self._rarity(confidence, callee or "")
        event = Event(
            kind,
            *where,
            form=form,
            callee=callee,
            attribute=attribute,
            operands=operand.words(),
            arguments=arguments,
            place=place,
            via=via,
            confidence=confidence,
            operand_confidence=_CONFIDENCE[operand.sure],
            conditions=tuple(dict.fromkeys(conditions)),
            test=test,
            rare=rare,
            text=text_of(self.index.module, node),
        )
        if reports:
            self._make_arguments_as_rare(event)
        key = kind, form, callee, *where
        self.events[key] = event

    def _rarity(self, confidence: Confidence, callee: str) -> tuple[Confidence, Condition | None, bool]:
        """The certainty that the current statement reports something, the test on which that depends, and whether it
        hardly ever holds: so it is of warnings, but for a flag that is on by default."""
        test = has_outcome(*self.tests[-1]) if self.tests else self.caller_test
        defaults = self.function.defaults if self.function is not None else {}
        is_rare = test is not None and getattr(defaults.get(test.subject), "value", None) is not test.outcome
        is_warning = callee.rpartition(".")[2].startswith(("warn", "error", "critical", "exception"))
        if any(condition.kind is ConditionKind.RAISED for condition in self.conditions):
            confidence = Confidence.POSSIBLE
        kinds = (ConditionKind.FLAG, ConditionKind.DEVICE)
        known = (c for c in self.conditions if test and c.kind in kinds and c.subject == test.subject)
        condition = next(known, test)
        return confidence, condition, is_rare and (is_warning or getattr(condition, "kind", None) is ConditionKind.FLAG)

    def _make_arguments_as_rare(self, report: Event) -> None:
        """The arguments of a call that reports something depend on the conditions of the call."""
        if report.test is None and report.confidence is not Confidence.POSSIBLE:
            return
        start, end = (report.line, report.column), (report.end_line, report.end_column)
        for key, event in self.events.items():
            if start <= (event.line, event.column) and (event.end_line, event.end_column) <= end:
                confidence = event.confidence if report.confidence is not Confidence.POSSIBLE else Confidence.POSSIBLE
                self.events[key] = replace(event, test=report.test, rare=report.rare, confidence=confidence)

    # -- the facts on every path by which the methods of its object call one another ---------------------------

    def path_to(self, node: ast.AST, info: FunctionInfo) -> CallPath:
        """The facts at a node that calls a function."""
        called = node.func if isinstance(node, ast.Call) else None
        is_own = isinstance(called, ast.Attribute) and called.attr == info.name and is_name(called.value, self.receiver)
        names_of_file = self.index.assigned - self.parameters
        flags = (c for c in self.conditions if c.kind is ConditionKind.FLAG and c.subject in names_of_file)
        if not is_own:
            return CallPath(conditions=tuple(flags))
        names = [{part.id for part in walk(test) if isinstance(part, ast.Name)} for test, _ in self.tests]
        tests = [has_outcome(*test) for test, used in zip(self.tests, names, strict=True) if used == {self.receiver}]
        start = f"{self.receiver}."
        own = (c for c in self.conditions if c.kind is ConditionKind.TEST and c.subject.startswith(start))
        return CallPath(self.outcomes, (*flags, *own), tests[-1] if tests else self.caller_test)

    def learn_outcomes(self, test: ast.expr, outcome: bool, but: Collection[ast.AST]) -> None:
        """Adds the outcomes of tests of attributes of the object, now that a test has one; without those operands that
        a tensor decides: Dynamo does not know them the second time either."""
        if found := self._decided(test, outcome, but):
            self.outcomes = {**self.outcomes, **found}

    def _decided(self, test: ast.expr, outcome: bool, but: Collection[ast.AST]) -> dict[str, bool]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._decided(test.operand, not outcome, but)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is outcome:
            return {k: v for value in test.values for k, v in self._decided(value, outcome, but).items()}
        is_known = isinstance(test, ast.Attribute) and is_name(test.value, self.receiver) and test not in but
        return {test.attr: outcome} if is_known and isinstance(test, ast.Attribute) else {}

    def forget_outcomes(self, node: ast.AST) -> None:
        """Forgets the outcomes if a call, or a store, may change the object."""
        if self.outcomes and any(is_name(part, self.receiver) or is_name(part, "super") for part in walk(node)):
            self.outcomes = {}
