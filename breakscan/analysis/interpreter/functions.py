"""What the functions return and emit that the entries of a file reach."""

from __future__ import annotations

import ast
from itertools import islice

from breakscan.analysis.interpreter.annotations import annotated_value
from breakscan.analysis.interpreter.arguments import Arguments
from breakscan.analysis.interpreter.decorators import Decorators
from breakscan.analysis.interpreter.frame import Frame, Interpreter
from breakscan.analysis.interpreter.function_state import State
from breakscan.analysis.interpreter.signatures import ParameterChange
from breakscan.analysis.interpreter.statements import returned_value, run_body, run_statement
from breakscan.analysis.interpreter.summaries import Summary, SummaryCache, is_untied
from breakscan.analysis.interpreter.values import UNKNOWN, Sort, Value, container_of
from breakscan.analysis.project.entry_points import is_untraced
from breakscan.analysis.project.index import FunctionInfo
from breakscan.findings import Place, Region
from breakscan.source.walking import own_nodes

MOST_RUNS = 6
"""A function's parameters and place settle within a few runs; recursion through containers may not."""
MOST_BORROWED_RUNS = 2
"""So for a function of another file, whose findings are also those of its own."""
MOST_CALLS_DEEP = 40
MOST_SILENT_CALLS_DEEP = 3
MOST_SILENT_CALLS = 500
"""Ten times what the files of large libraries take."""
MOST_NODES_OF_SMALL = 60
"""A function with no more is interpreted for each of its calls by itself."""
MOST_BORROWED = 1500
"""How many functions of other files the entries of one file may draw in."""


class Functions:
    """The functions that one program reaches."""

    def __init__(self, program: Interpreter, summaries: SummaryCache) -> None:
        self._program = program
        self._summaries = summaries
        self._decorators = Decorators()
        self.states: dict[FunctionInfo, State] = {}
        self._lent: list[tuple[Summary, Region | None]] = []
        self._silent: dict[object, Value] = {}
        self._silent_calls: set[FunctionInfo] = set()
        self._stale: dict[FunctionInfo, dict[str, Value] | None] = {}
        self._depth = 0
        self._borrowed = 0

    def call(
        self, frame: Frame, node: ast.AST, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None = None
    ) -> Value:
        """What a call at a node returns; the function is interpreted for these arguments too."""
        declared = annotated_value(info.index, getattr(info.node, "returns", None))
        if is_untraced(info) or self._depth > MOST_CALLS_DEEP:
            return declared
        if frame.silent:
            return declared if declared.sort is not Sort.UNKNOWN else self._call_silently(info, given, closure)
        if self._exhausted(info):
            return declared
        result = self._returned(frame, node, info, given, closure)
        if info.is_generator:
            return container_of(declared.item())
        known = result.sort not in (Sort.UNKNOWN, Sort.NAMESPACE) or declared.sort is Sort.UNKNOWN
        return result if known else declared

    def _returned(
        self, frame: Frame, node: ast.AST, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None
    ) -> Value:
        caller = self.states.get(frame.function) if frame.function is not None else None
        place, via = frame.place_of(node)
        own = info.index is self._program.index
        if not own and closure is None and place is Place.PLAIN:
            summary = self._borrow(info, given, caller)
            if summary is not None:
                return summary.returns
        state = self.states.get(info)
        if state is None:
            state = self.states[info] = State({}, caller.region if caller else None)
        if caller is not None:
            caller.calls.add(info)
            state.region = state.region or caller.region
        change = self._program.signatures.join_arguments(info, state, given)
        if state.place is Place.PLAIN and place is not Place.PLAIN:
            state.place = place
            state.via = via or (frame.function.qualname if frame.function else None)
            change = max(change, ParameterChange.IN_PART)
        if not state.runs or change is ParameterChange.TO_TENSOR or (change is ParameterChange.IN_KIND and own):
            self._interpret(info, state, closure)
        elif change and own:
            self._stale[info] = closure
        if state.mixed and _is_small(info) and info not in self._silent_calls and not info.is_generator:
            # What comes back depends on what this call gives: the other calls have no say in it.
            return self._call_silently(info, given, closure)
        return state.returns

    def _borrow(self, info: FunctionInfo, given: Arguments, caller: State | None) -> Summary | None:
        """What a function of another file does apart from this one, where the arguments allow it."""
        signatures = self._program.signatures
        parameters = {
            name: signatures.in_general(info, name, value) for name, value in signatures.given(info, given).items()
        }
        if not all(map(is_untied, parameters.values())):
            return None
        summary = self._summaries.lend(info, parameters)
        if summary is not None:
            self._lent.append((summary, caller.region if caller else None))
            if caller is not None:
                caller.calls.add(info)
        return summary

    def run_once(self, info: FunctionInfo, closure: dict[str, Value] | None = None) -> None:
        """Interprets a function that is known of, unless it has been."""
        if not self.states[info].runs:
            self._interpret(info, self.states[info], closure)

    def settle(self) -> None:
        """Interprets again what was called with other arguments meanwhile, and takes over what was borrowed."""
        while self._stale:
            info, closure = self._stale.popitem()
            self._interpret(info, self.states[info], closure)
        for summary, region in self._lent:
            for info, lent in summary.states.items():
                own = self.states.get(info)
                if own is None:
                    own = self.states[info] = State({}, region, runs=MOST_RUNS)
                own.region = own.region or region
                own.events = {**lent.events, **own.events}
                own.calls |= lent.calls
                own.handles_tensors = own.handles_tensors or lent.handles_tensors
        self._lent = []

    def _exhausted(self, info: FunctionInfo) -> bool:
        """Whether a function of another file is left alone, for so much of other files has been interpreted."""
        if info.index is self._program.index or info in self.states:
            return False
        self._borrowed += 1
        return self._borrowed > MOST_BORROWED

    def _call_silently(self, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None) -> Value:
        """What one call returns, by itself and without events."""
        if len(self._silent_calls) >= MOST_SILENT_CALLS_DEEP or info in self._silent_calls:
            return UNKNOWN
        body = info.node.body
        if not isinstance(body, list) or isinstance(info.node, ast.AsyncFunctionDef) or info.is_generator:
            return UNKNOWN
        if info.index is not self._program.index and not _is_small(info):
            return UNKNOWN
        key = info, tuple(given.positional), tuple(given.named.items()), closure is None
        if key in self._silent:
            return self._silent[key]
        if len(self._silent) >= MOST_SILENT_CALLS:
            return UNKNOWN
        frame = Frame(self._program, info, {**(closure or {}), **self._program.signatures.given(info, given)})
        frame.silent = True
        self._silent_calls.add(info)
        try:
            self._silent[key] = result = returned_value(frame, run_body(frame, body))
        finally:
            self._silent_calls.discard(info)
        return result

    def _interpret(self, info: FunctionInfo, state: State, closure: dict[str, Value] | None) -> None:
        if state.running or state.runs >= (MOST_RUNS if info.index is self._program.index else MOST_BORROWED_RUNS):
            return
        if info.owner is not None:
            self._program.attributes.read(info.owner)
        self._stale.pop(info, None)
        state.runs += 1
        state.running = True
        self._depth += 1
        try:
            # Names of the enclosing function that are bound later are seen too: a closure reads them when called.
            frame = Frame(self._program, info, {**(closure or {}), **state.parameters}, state.place, state.via)
            frame.conditions += self._decorators.replaced(info)
            body = info.node.body
            if isinstance(body, list):
                reaches_end = run_body(frame, body)
            else:
                run_statement(frame, ast.copy_location(ast.Return(body), body))
                reaches_end = False
            state.returns = returned_value(frame, reaches_end)
            state.events = frame.events
            state.handles_tensors = frame.saw_tensor
        finally:
            state.running = False
            self._depth -= 1

    def call_wrappers(self, frame: Frame, node: ast.AST, info: FunctionInfo, given: Arguments) -> None:
        """Calls what the decorators of a function put around it: that is traced, too."""
        if frame.silent or not info.decorators:
            return
        for name in info.decorators:
            wrapper = self._decorators.wrapper(name, info)
            if wrapper is not None and wrapper not in self.states and not is_untraced(wrapper):
                self.call(frame, node, wrapper, given)


def _is_small(info: FunctionInfo) -> bool:
    if info.small is None:
        nodes = list(islice(own_nodes(info.node), MOST_NODES_OF_SMALL + 1))
        loops = any(isinstance(node, ast.For | ast.While | ast.Try | ast.With) for node in nodes)
        info.small = len(nodes) <= MOST_NODES_OF_SMALL and not loops
    return info.small
