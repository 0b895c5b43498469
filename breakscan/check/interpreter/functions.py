"""The results and events of the functions that the entries of a file reach."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.frame import Frame, Interpreter
from breakscan.check.interpreter.signatures import ParameterChange, State
from breakscan.check.interpreter.statements import returned_value, run_body, run_statement
from breakscan.check.interpreter.value_log import Notes
from breakscan.check.project.entry_points import is_untraced
from breakscan.check.project.imports import KeptAnswer, Project
from breakscan.check.project.index import FunctionInfo
from breakscan.model.findings import Condition, ConditionKind, Mode, Place, Region
from breakscan.source.walking import own_nodes, walk


# Decorators of the project, applied to the functions and methods below them.
@dataclass(frozen=True, slots=True)
class Wrapper:
    """A function that calls what a decorator was given.  ``wrapped`` is the name by which it calls it."""

    info: FunctionInfo
    wrapped: str


def wrapper_of(project: Project, name: str, info: FunctionInfo) -> Wrapper | None:
    """The value that a decorator of the project returns in place of the function that it gets."""

    def find() -> tuple[Wrapper | None, str | None]:
        found = info.index.function_named(name)
        return (_wrapper_in(found), _choice(found)) if found is not None else (None, None)

    wrapper, flag = project.once(("wrapper", info.index, name), info.index, find)
    decorators = getattr(info.node, "decorator_list", []) if flag else ()
    given = {keyword.arg for one in decorators if isinstance(one, ast.Call) for keyword in one.keywords}
    return wrapper if flag not in given else None


def replacing_conditions(project: Project, info: FunctionInfo) -> list[Condition]:
    """The condition under which a method runs, where a decorator of its class replaces it."""
    for name in info.owner.decorators if info.owner is not None else ():

        def find(decorator: str = name) -> frozenset[str]:
            found = info.index.function_named(decorator)
            nodes = walk(found.node) if found is not None else ()
            return frozenset(n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))

        if info.name in project.once(("set by", info.index, name), info.index, find):
            return [Condition(ConditionKind.PASSED_ON, info.name, classes=(name.rpartition(".")[2],))]
    return []


def _wrapper_in(decorator: FunctionInfo) -> Wrapper | None:
    """The inner function that calls what the decorator, or the decorator that it makes, is given."""
    given = {a.arg for a in (*decorator.node.args.posonlyargs, *decorator.node.args.args)}
    for node in decorator.own_nodes:
        if isinstance(node, ast.FunctionDef):
            made = decorator.index.all_functions[node]
            called = {n.func.id for n in own_nodes(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            wrapped = sorted(given & called)
            if wrapped:
                return Wrapper(made, wrapped[0])
            return _wrapper_in(_handed_on(made, {a.arg for a in node.args.args}) or made)
    handed = _handed_on(decorator, given)
    return _wrapper_in(handed) if handed is not None and handed is not decorator else None


def _handed_on(info: FunctionInfo, given: set[str]) -> FunctionInfo | None:
    """The decorator to whom a function hands what it is given, if it does nothing but return what that makes. If a flag
    that is off by default tests another one, the other is left out."""
    last = info.node.body[-1] if isinstance(info.node.body, list) else None
    if isinstance(last, ast.If) and _choice(info):
        last = last.orelse[-1]
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    values = (*call.args, *(keyword.value for keyword in call.keywords))
    handed = {value.id for value in values if isinstance(value, ast.Name)}
    return info.index.function_named(call.func.id) if given & handed else None


def _choice(info: FunctionInfo) -> str | None:
    """The flag, off by default, that decides between two things that a function returns at its end."""
    last = info.node.body[-1] if isinstance(info.node.body, list) else None
    if not isinstance(last, ast.If) or not last.orelse or not isinstance(last.test, ast.Name):
        return None
    default = info.defaults.get(last.test.id)
    return last.test.id if isinstance(default, ast.Constant) and default.value is False else None


# Results of single calls, by themselves and without events: where an object is set up, and where the result of a
# small function depends on its arguments.
MOST_SINGLE_CALLS_DEEP = 3
MOST_CALLS = 500
"""Ten times what the files of large libraries take."""
MOST_NODES_OF_SMALL = 60
_NOT_IN_SMALL = (ast.For, ast.While, ast.Try, ast.With)


class SingleCalls:
    """The results of calls in one program, kept by their arguments."""

    def __init__(self, program: Interpreter) -> None:
        self._program = program
        self._results: dict[object, av.Value] = {}
        self.running, self._asked = set[FunctionInfo](), set[FunctionInfo]()

    def result(
        self, info: FunctionInfo, given: av.Arguments, closure: dict[str, av.Value] | None, *, traced: bool
    ) -> av.Value:
        """The value that a call returns; unknown where the interpretation would take too long."""
        if len(self.running) >= MOST_SINGLE_CALLS_DEEP or info in self.running:
            return av.UNKNOWN
        body = info.node.body
        if not isinstance(body, list) or isinstance(info.node, ast.AsyncFunctionDef) or info.is_generator:
            return av.UNKNOWN
        if info.index is not self._program.index and not is_small(info):
            return av.UNKNOWN
        key = info, tuple(given.positional), tuple(given.named.items()), closure is None, traced
        if key in self._results:
            return self._results[key]
        if len(self._results) >= MOST_CALLS:
            return av.UNKNOWN
        frame = Frame(self._program, info, {**(closure or {}), **self._program.signatures.given(info, given)})
        frame.silent, frame.traced = True, traced
        self.running.add(info)
        self._results[key] = av.UNKNOWN
        try:
            with self._program.project.sparing(info.index, info.node):
                self._results[key] = returned_value(frame, run_body(frame, body))
        finally:
            self.running.discard(info)
        return self._results[key]

    def truth(self, info: FunctionInfo) -> bool | None:
        """The truth of what a function returns while it is traced, whatever it is called with, if only that decides it.
        What handles exceptions is left out: most are those of imports."""
        body, node = info.node.body, info.node
        text = "\n".join(info.index.module.lines[node.lineno - 1 : node.end_lineno])
        is_open = info in self._asked or isinstance(node, ast.AsyncFunctionDef) or info.is_generator
        if is_open or len(self._asked) >= MOST_SINGLE_CALLS_DEEP or not _ASKS_FOR_TRACING.search(text):
            return None
        frame = Frame(self._program, info, dict.fromkeys(self._program.signatures.declared(info), av.UNKNOWN))
        frame.silent = frame.asked = True
        self._asked.add(info)
        try:
            reaches_end = not isinstance(body, list) or run_body(frame, body)
        finally:
            self._asked.discard(info)
        known = {getattr(one, "truth", None) for one in frame.returned}
        return known.pop() if len(known) == 1 and not reaches_end else None


_ASKS_FOR_TRACING = re.compile("compil|trac|script|export|fx_proxy")
"""A part of the name of each function that reports if code is traced."""


def is_small(info: FunctionInfo) -> bool:
    """True if a function is short and has no loops."""
    if info.small is None:
        nodes = info.own_nodes
        info.small = len(nodes) <= MOST_NODES_OF_SMALL and not any(isinstance(node, _NOT_IN_SMALL) for node in nodes)
    return info.small


MOST_DEEP = 12
MOST_KEPT_A_FILE = 400
MOST_LOANS = 150
"""The limit of summaries for one file: three times what any file of large libraries needs.  Where functions call each
other with further arguments each time, there is no end to it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a function of another file for some arguments, the states of all functions that it calls, and the
    notes, if any were taken."""

    returns: av.Value
    states: dict[FunctionInfo, State]
    notes: Notes | None


class SummaryCache:
    """Interprets functions for other files, each apart from what those files know, as ``interpret`` does."""

    def __init__(
        self,
        project: Project,
        mode: Mode,
        interpret: "Callable[[FunctionInfo, dict[str, av.Value], SummaryCache], Summary]",
    ) -> None:
        self._project = project
        self._mode = mode
        self._interpret = interpret
        self.running: set[object] = set()
        self.depth = 0
        """The calls that are being interpreted, one in another, in all files."""
        self._made = 0

    def lend(self, info: FunctionInfo, parameters: dict[str, av.Value]) -> Summary | None:
        """The summary of a call; None while the function is being interpreted for the same arguments."""
        key = info, self._mode, tuple(parameters.items())
        known = info.index.remembered.get(key)
        if isinstance(known, KeptAnswer) and self._project.draw_again(known):
            return cast(Summary, known.answer)
        if key in self.running or len(self.running) >= MOST_DEEP or self._made >= MOST_LOANS:
            return None
        self._made += 1
        self.running.add(key)
        try:
            loan = self._project.recorded(lambda: self._interpret(info, parameters, self))
        finally:
            self.running.discard(key)
        if len(info.index.remembered) < MOST_KEPT_A_FILE and not self._project.is_full:
            info.index.remembered[key] = loan
        return loan.answer


def is_untied(value: av.Value) -> bool:
    """True if a value means the same in any file: no module or function of the caller's is in it."""
    match value:
        case av.Module() | av.Function():
            return False
        case av.Namespace():
            return value.bound is None
        case av.ClassOrObject():
            return all(map(is_untied, value.choices))
        case av.Container():
            parts = (*(value.elements or ()), *(part for _, part in value.keys))
            return all(map(is_untied, parts)) and (value.element is None or is_untied(value.element))
    return True


MOST_CHANGES = 5
"""The inputs of a function settle within a few joins; recursion through containers may not."""
MOST_CHANGES_BORROWED = 1
"""The same for a function of another file: the check of that file finds the rest."""
MOST_CALLS_DEEP = 40
FEW_CALLS_DEEP = 10
MOST_BORROWED = 1500
"""The number of functions of other files that the entries of one file may have interpreted."""


class Functions:
    """The functions that one program reaches."""

    def __init__(self, program: Interpreter, summaries: SummaryCache) -> None:
        self._program = program
        self._summaries = summaries
        self._wrapped: dict[FunctionInfo, FunctionInfo] = {}
        """The functions that the wrappers of interpreted decorators wrap."""
        self.states: dict[FunctionInfo, State] = {}
        self._lent: list[tuple[Summary, Region | None]] = []
        self._single_calls = SingleCalls(program)
        self.truth = self._single_calls.truth
        self._queue: dict[FunctionInfo, None] = {}
        """Functions whose inputs have changed since they ran."""
        self._borrowed = 0

    def call(
        self,
        frame: Frame,
        node: ast.AST,
        info: FunctionInfo,
        given: av.Arguments,
        closure: dict[str, av.Value] | None = None,
    ) -> av.Value:
        """The value that a call at a node returns; the function is interpreted for these arguments too."""
        declared = self._program.signatures.declared_result(info)
        wrappers = (wrapper_of(self._program.project, name, info) for name in info.decorators)
        around = [info, *(one.info for one in wrappers if one is not None)]  # a decorator may keep the compiler out
        if self._summaries.depth > MOST_CALLS_DEEP or any(is_untraced(one, self._program.mode) for one in around):
            return declared
        if frame.silent:
            single = self._single_calls
            known = not isinstance(declared, av.Unknown)
            return declared if known else single.result(info, given, closure, traced=frame.traced)
        if info.index is not self._program.index and info not in self.states:
            self._borrowed += 1
            if self._borrowed > MOST_BORROWED:
                return declared
        result = self._returned(frame, node, info, given, closure)
        if info.is_generator:
            return av.container_of(av.item_of(declared))
        known = not isinstance(result, av.Unknown | av.Namespace) or isinstance(declared, av.Unknown)
        return result if known else declared

    def _returned(
        self, frame: Frame, node: ast.AST, info: FunctionInfo, given: av.Arguments, closure: dict[str, av.Value] | None
    ) -> av.Value:
        caller = self.states.get(frame.function) if frame.function is not None else None
        place, via = frame.place_of(node)
        if info.index is not self._program.index and closure is None and place is Place.PLAIN:
            summary = self._borrow(info, given, caller)
            if summary is not None:
                return summary.returns
        is_new = info not in self.states
        state = self._reached(info, caller, caller is not None and caller.in_wrapper)
        if frame.function is not None and self._wrapped.get(frame.function) is info:
            # A wrapper passes on what the function is interpreted for already.  If a break makes the wrapper run eager,
            # the function is compiled by itself.
            state.callers[frame.function] = None
            return state.returns
        known = len(state.nones or ())
        change = self._join_arguments(info, state, given)
        path = frame.path_to(node, info)
        joined = path if state.path is None else state.path.joined(path)
        if state.ran and ((state.path is not None and joined != state.path) or len(state.nones or ()) != known):
            # Less holds than before: not one of the changes that never settle.
            self._queue[info] = None
        state.path = joined
        if info.nested and (is_new or state.chosen is not None):
            chosen = next((c for c in frame.conditions if c.kind is ConditionKind.CHOSEN), None)
            if is_new or chosen is None:
                state.chosen = chosen  # else it is called only as one of several
                change = max(change, ParameterChange.NONE if is_new else ParameterChange.IN_PART)
        if state.place is Place.PLAIN and place is not Place.PLAIN and frame.function is not info:
            state.place = place
            state.via = via or (frame.function.qualname if frame.function else None)
            change = max(change, ParameterChange.IN_PART)
        if change or not state.ran:
            state.closure = closure
            self._update(info, state, change)
        if frame.function is not None:
            state.callers[frame.function] = None
        single = self._single_calls
        if state.mixed and is_small(info) and info not in single.running and not info.is_generator:
            # The result depends on what this call gives, not on the other calls.
            return single.result(info, given, closure, traced=True)
        return state.returns

    def _reached(self, info: FunctionInfo, caller: State | None, in_wrapper: bool) -> State:
        """The state of a function that is called."""
        state = self.states.get(info)
        if state is None:
            state = self.states[info] = State({}, caller.region if caller else None)
            state.in_wrapper = info.index is not self._program.index
        state.in_wrapper = state.in_wrapper and in_wrapper
        if caller is not None:
            caller.calls.add(info)
            state.region = state.region or caller.region
        return state

    def _join_arguments(self, info: FunctionInfo, state: State, given: av.Arguments) -> ParameterChange:
        was_mixed = state.mixed
        change = self._program.signatures.join_arguments(info, state, given)
        if state.mixed and not was_mixed and is_small(info):
            self._wake_callers(state)  # from now on each of them gets the result of its own call
        return change

    def _borrow(self, info: FunctionInfo, given: av.Arguments, caller: State | None) -> Summary | None:
        """The summary of a function of another file, where the arguments allow it."""
        if info.receiver is not None and isinstance(given.get(0), av.Module):
            return None  # the program that has the module ties the method to it
        signatures = self._program.signatures
        values = signatures.given(info, given)
        parameters = {name: signatures.in_general(info, name, value) for name, value in values.items()}
        if not all(map(is_untied, parameters.values())):
            return None
        summary = self._summaries.lend(info, parameters)
        if summary is not None:
            self._lent.append((summary, caller.region if caller else None))
            if self._program.notes is not None and summary.notes is not None:
                self._program.notes.include(summary.notes)
            if caller is not None:
                caller.calls.add(info)
        return summary

    def run_once(self, info: FunctionInfo, closure: dict[str, av.Value] | None = None) -> None:
        """Interprets a function that is known of, unless it has been."""
        state = self.states[info]
        if not state.ran:
            state.closure = closure
            self._interpret(info, state)

    def settle(self) -> None:
        """Interprets functions again until no input changes any more, and takes over what was borrowed."""
        while self._queue or self._program.attributes.woken:
            attributes = self._program.attributes
            woken, attributes.woken = attributes.woken, {}
            for info in woken:
                self._wake(info, self.states[info])
            if self._queue:
                info, _ = self._queue.popitem()
                self._interpret(info, self.states[info])
        for summary, region in self._lent:
            for info, lent in summary.states.items():
                own = self.states.get(info)
                if own is None:
                    own = self.states[info] = State({}, region, ran=True, changes=MOST_CHANGES)
                own.region = own.region or region
                own.events = {**lent.events, **own.events}
                own.calls |= lent.calls
                own.handles_tensors = own.handles_tensors or lent.handles_tensors
        self._lent = []

    def _update(self, info: FunctionInfo, state: State, change: ParameterChange) -> None:
        """Interprets a function for the first time, or again for arguments that have changed: at once where the
        caller needs the result, else when everything has been called."""
        own = info.index is self._program.index
        if not state.ran:
            self._interpret(info, state)
            return
        if info in self._queue:
            return  # it will see this change too
        self._wake(info, state, change)
        if info in self._queue and (change is ParameterChange.TO_TENSOR or (change is ParameterChange.IN_KIND and own)):
            self._interpret(info, state)

    def _wake(self, info: FunctionInfo, state: State, change: ParameterChange = ParameterChange.NONE) -> None:
        """Schedules a function to be interpreted again because one of its inputs has changed."""
        if state.in_wrapper and change is not ParameterChange.TO_TENSOR:
            return  # libraries put the same around all functions: the check of their files finds the rest
        most = MOST_CHANGES if info.index is self._program.index else MOST_CHANGES_BORROWED
        if state.changes < most and info not in self._queue:
            state.changes += 1
            self._queue[info] = None

    def _interpret(self, info: FunctionInfo, state: State) -> None:
        if state.running:
            return
        attributes = self._program.attributes
        if info.owner is not None:
            attributes.read(info.owner)
        self._queue.pop(info, None)
        state.ran = state.running = True
        self._summaries.depth += 1
        reader, attributes.reader = attributes.reader, info
        returns: av.Value = av.UNKNOWN
        try:
            with self._program.project.sparing(info.index, info.node):
                returns = self._run(info, state)
        except RecursionError:
            if self._summaries.depth < FEW_CALLS_DEEP:
                raise  # not the calls are nested too deeply, but what is in the function
        finally:
            attributes.reader = reader
            state.running = False
            self._summaries.depth -= 1
        changed = returns != state.returns
        state.returns = returns
        if changed:
            self._wake_callers(state)

    def _run(self, info: FunctionInfo, state: State) -> av.Value:
        """Runs the body of a function.  Returns what it returns."""
        # Names of the enclosing function that are bound later are seen too: a closure reads them when called.
        names = {**(state.closure or {}), **state.parameters}
        frame = Frame(self._program, info, names, state.place, state.via)
        frame.conditions += replacing_conditions(self._program.project, info)
        if state.chosen is not None:
            frame.conditions.append(state.chosen)
        frame.nones = tuple(map(dict, state.nones or ()))
        if state.path is not None:
            frame.outcomes, frame.caller_test = state.path.outcomes, state.path.test
            frame.conditions += state.path.conditions
        body = info.node.body
        if isinstance(body, list):
            reaches_end = run_body(frame, body)
        else:
            run_statement(frame, ast.copy_location(ast.Return(body), body))
            reaches_end = False
        state.events = frame.events
        state.handles_tensors = frame.saw_tensor
        return returned_value(frame, reaches_end)

    def _wake_callers(self, state: State) -> None:
        """Schedules the functions that use a function's result to be interpreted again."""
        for caller in state.callers:
            self._wake(caller, self.states[caller])

    def call_wrappers(self, frame: Frame, info: FunctionInfo, given: av.Arguments) -> None:
        """Calls what the decorators of a function put around it: that is traced, too."""
        if not frame.silent and info.decorators:
            caller = self.states.get(frame.function) if frame.function is not None else None
            self._run_wrappers(info, given, caller)

    def run_wrappers(self, info: FunctionInfo) -> None:
        """Interprets what the decorators of a function put around it that the compiler is handed."""
        state, arguments = self.states[info], info.node.args
        given = [state.parameters[a.arg] for a in (*arguments.posonlyargs, *arguments.args)]
        self._run_wrappers(info, av.Arguments(given, {}), state)

    def _run_wrappers(self, info: FunctionInfo, given: av.Arguments, caller: State | None) -> None:
        """Interprets the wrappers around a function, each for the first function that it wraps."""
        for name in info.decorators:
            wrapper = wrapper_of(self._program.project, name, info)
            if wrapper is None or wrapper.info in self._wrapped or is_untraced(wrapper.info, self._program.mode):
                continue
            self._wrapped[wrapper.info] = info
            state = self._reached(wrapper.info, caller, in_wrapper=True)
            self._join_arguments(wrapper.info, state, given)
            state.nones = None
            state.closure = {**(state.closure or {}), wrapper.wrapped: av.Function(info=info)}
            if state.ran:
                self._wake(wrapper.info, state)
            else:
                self._interpret(wrapper.info, state)
