"""A file under interpretation: runs its functions from the entries of the compiler, and all that they call."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from itertools import islice

from breakscan.analysis.interpreter.annotations import annotated_value
from breakscan.analysis.interpreter.arguments import Arguments
from breakscan.analysis.interpreter.calls import apply
from breakscan.analysis.interpreter.conditions import Condition, ConditionKind
from breakscan.analysis.interpreter.expressions import evaluate
from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.function_state import State
from breakscan.analysis.interpreter.parameters import parameter_values
from breakscan.analysis.interpreter.statements import returned_value, run_body, run_statement
from breakscan.analysis.interpreter.summaries import Summary, SummaryCache, is_untied
from breakscan.analysis.interpreter.value_log import Notes
from breakscan.analysis.interpreter.values import (
    CONSTANT,
    NONE,
    UNKNOWN,
    Sort,
    Sure,
    Value,
    container_of,
    join,
    literal,
)
from breakscan.analysis.project.entry_points import Entry, is_assumed_function, is_untraced
from breakscan.analysis.project.imports import Drawn, Project
from breakscan.analysis.project.index import BUILTINS, ClassInfo, FunctionInfo, GlobalName, ModuleIndex
from breakscan.findings import Place, Region
from breakscan.rulebook.matching import RuleIndex
from breakscan.source.walking import own_nodes, walk
from breakscan.torch_facts.table import DTYPE_CLASS, TorchApi

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


class _Change(IntEnum):
    """How the arguments of a call differ from those of the calls before: if in part only, it is enough to interpret
    the function again when all has been called."""

    NONE = 0
    IN_PART = 1
    IN_KIND = 2
    TO_TENSOR = 3
    """The one change for which a function of another file is looked at again: its own file knows the rest."""


def _change(known: Value | None, merged: Value) -> _Change:
    if known is not None and known.sort is merged.sort:
        return _Change.IN_PART
    return _Change.TO_TENSOR if merged.is_tensor else _Change.IN_KIND


@dataclass(frozen=True, slots=True)
class Setup:
    """What code shows that runs once, when a file is imported or an object made: the names that it binds, what it
    stores in attributes, and what it sets in torch's configuration."""

    names: dict[str, Value]
    stores: list[tuple[ClassInfo, str, Value]]
    flags: frozenset[str]
    ignored_callees: frozenset[str]
    drawn: Drawn


class Program:
    """The functions that the entries of one file reach, in it and in others, and what is known of them."""

    # Evaluation is recursive over its files: they reach one another through the frame.
    evaluate = staticmethod(evaluate)
    apply = staticmethod(apply)

    def __init__(
        self,
        project: Project,
        index: ModuleIndex,
        api: TorchApi,
        rules: RuleIndex,
        lender: SummaryCache | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.project = project
        self.notes = notes
        self._lender = lender or SummaryCache(
            project, lambda other, same: Program(project, other, api, rules, same, notes)
        )
        self.closures: list[dict[str, Value]] = []
        """The names of frames that inner functions keep hold of."""
        self._lent: list[tuple[Summary, Region | None]] = []
        self.index = index
        self.module = index.module
        self.api = api
        self.rules = rules
        self.states: dict[FunctionInfo, State] = {}
        self._attributes: dict[tuple[ClassInfo, str], Value] = {}
        self._initialised: set[ClassInfo] = set()
        self._read: set[tuple[ClassInfo, str]] = set()
        """Attributes that were asked for: what is stored in another one afterwards changes nothing."""
        self._lambdas: dict[ast.Lambda, FunctionInfo] = {}
        self._setups: list[list[tuple[ClassInfo, str, Value]]] = []
        self._silent: dict[object, Value] = {}
        self._stale: dict[FunctionInfo, dict[str, Value] | None] = {}
        self._later: dict[tuple[ClassInfo, str], bool] = {}
        self._makes_parameters: dict[ClassInfo, bool] = {}
        self._set_by: dict[tuple[ModuleIndex, str], frozenset[str]] = {}
        self._wrappers: dict[tuple[ModuleIndex, str], FunctionInfo | None] = {}
        self._declared: dict[FunctionInfo, dict[str, Value]] = {}
        self._globals: dict[ModuleIndex, dict[str, Value]] = {}
        self._imported: dict[tuple[ModuleIndex, str], Value] = {}
        self.ignored_callees: set[str] = set()
        """What the file tells Dynamo to leave out of graphs."""
        self.flags: set[str] = set()
        """Settings of ``torch._dynamo.config`` that the file switches on."""
        self._depth = 0
        self._changed = False
        self._silent_calls: set[FunctionInfo] = set()
        self._borrowed = 0
        self.globals_of(index)

    # -- entries ----------------------------------------------------------------------------------------------

    def run(self, entries: list[Entry]) -> None:
        """Interprets the entries and all that they call, again where an attribute turned out to hold more."""
        for entry in entries:
            self._enter(entry)
        for _ in range(2):
            self._changed = False
            # What calls the others mostly stands below them: it tells what they are called with.
            for entry in reversed(entries):
                state = self.states[entry.function]
                if not state.runs:
                    self._interpret(entry.function, state, None)
                if is_assumed_function(entry.region):
                    self._run_returned(state)
            self._settle()
            if not self._changed:
                break
            for state in self.states.values():
                state.runs = 0

    def _enter(self, entry: Entry) -> None:
        info = entry.function
        compiled = entry.compiled or (info.owner is not None and info.name == "forward")
        seeds = parameter_values(self.api, info, entry=True, compiled=compiled)
        receiver = self._receiver(info, entry.receiver)
        if receiver is not None:
            seeds = {receiver[0]: receiver[1], **seeds}
        known = self.states.get(info)
        if known is None:
            self.states[info] = State(seeds, entry.region)
        elif receiver is not None:
            known.parameters[receiver[0]] = join(known.parameters[receiver[0]], receiver[1])

    def _run_returned(self, state: State) -> None:
        """The function that another one makes and returns, as a decorator does, could be compiled as well."""
        made = state.returns.function if state.returns.sort is Sort.FUNCTION else None
        if made is None or not made.nested or made.index is not self.index or is_untraced(made):
            return
        if made not in self.states:
            path = made.index.module.display
            region = Region(path, made.node.lineno, state.region.how if state.region else "", made.qualname)
            self._enter(Entry(made, region, compiled=False))
        if not self.states[made].runs:
            self._interpret(made, self.states[made], state.returns.closure)

    def _receiver(self, info: FunctionInfo, owner: ClassInfo | None = None) -> tuple[str, Value] | None:
        """The name and value of ``self`` or ``cls``; ``owner`` is the class that has the method, by default its own."""
        name = _first_parameter(info)
        if info.owner is None or info.is_static or name is None:
            return None
        return name, self.instance(owner or info.owner)

    def instance(self, owner: ClassInfo) -> Value:
        sort = Sort.MODULE if self.project.is_module(owner) else Sort.INSTANCE
        return Value(sort, owner=owner, name=owner.qualname)

    # -- functions --------------------------------------------------------------------------------------------

    def call_function(
        self, frame: Frame, node: ast.AST, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None = None
    ) -> Value:
        """What a call, at a node, to a function of the project returns; it is interpreted for these arguments too."""
        declared = annotated_value(info.index, getattr(info.node, "returns", None))
        if is_untraced(info) or self._depth > MOST_CALLS_DEEP:
            return declared
        if frame.silent:
            return declared if declared.sort is not Sort.UNKNOWN else self._call_silently(info, given, closure)
        if self._exhausted(info):
            return declared
        caller = self.states.get(frame.function) if frame.function is not None else None
        if info.index is not self.index and closure is None and frame.place_of(node)[0] is Place.PLAIN:
            loan = self._borrow(info, given, caller)
            if loan is not None:
                return container_of(declared.item()) if info.is_generator else _or_declared(loan.returns, declared)
        state = self.states.get(info)
        if state is None:
            state = self.states[info] = State({}, caller.region if caller else None)
        if caller is not None:
            caller.calls.add(info)
            state.region = state.region or caller.region
        change = self._join_arguments(info, state, given)
        place, via = frame.place_of(node)
        if state.place is Place.PLAIN and place is not Place.PLAIN:
            state.place = place
            state.via = via or (frame.function.qualname if frame.function else None)
            change = max(change, _Change.IN_PART)
        if not state.runs or change is _Change.TO_TENSOR or (change is _Change.IN_KIND and info.index is self.index):
            self._interpret(info, state, closure)
        elif change and info.index is self.index:
            self._stale[info] = closure
        if info.is_generator:
            return container_of(declared.item())
        result = state.returns
        if state.mixed and _is_small(info) and info not in self._silent_calls:
            # What comes back depends on what this call gives: the other calls have no say in it.
            result = self._call_silently(info, given, closure)
        return _or_declared(result, declared)

    def _borrow(self, info: FunctionInfo, given: Arguments, caller: State | None) -> Summary | None:
        """What a function of another file comes to apart from this one, where the arguments allow it."""
        state = State({}, None)
        self._join_arguments(info, state, given)
        parameters = {name: self._in_general(info, name, value) for name, value in state.parameters.items()}
        if not all(map(is_untied, parameters.values())):
            return None
        loan = self._lender.lend(info, parameters)
        if loan is not None:
            self._lent.append((loan, caller.region if caller else None))
            if caller is not None:
                caller.calls.add(info)
        return loan

    def _in_general(self, info: FunctionInfo, name: str, value: Value) -> Value:
        """An object as a function of another file sees it: as one of the class that it asks for."""
        if value.sort is not Sort.INSTANCE or value.owner is None:
            return value
        asked = self._declared_parameters(info).get(name, UNKNOWN).owner
        if asked is None and info.owner is not None and name == _first_parameter(info):
            asked = info.owner
        chain = self.project.bases_of(value.owner)
        if asked is None or asked not in chain or any(set(c.methods) - _MAKING for c in chain[: chain.index(asked)]):
            return value
        return Value(Sort.INSTANCE, value.sure, owner=asked, name=asked.qualname, maybe_none=value.maybe_none)

    def run_apart(self, info: FunctionInfo, parameters: dict[str, Value]) -> Value:
        """Interprets one function, for another file, and returns what it returns."""
        state = self.states[info] = State(dict(parameters), None)
        self._interpret(info, state, None)
        self._settle()
        return state.returns

    def _settle(self) -> None:
        """Interprets again what was called with other arguments meanwhile, and takes over what was lent."""
        while self._stale:
            info, closure = self._stale.popitem()
            self._interpret(info, self.states[info], closure)
        for loan, region in self._lent:
            for info, lent in loan.states.items():
                own = self.states.get(info)
                if own is None:
                    own = self.states[info] = State({}, region, runs=MOST_RUNS)
                own.region = own.region or region
                own.events = {**lent.events, **own.events}
                own.calls |= lent.calls
                own.handles_tensors = own.handles_tensors or lent.handles_tensors
        self._lent = []

    def release(self) -> None:
        """Empties what functions within functions hold of one another, so that nothing is left for the collector."""
        for names in self.closures:
            names.clear()

    def has_borrowed(self, info: FunctionInfo) -> bool:
        """Whether a function of another file has been interpreted already."""
        return info.index is not self.index and info in self.states

    def _exhausted(self, info: FunctionInfo) -> bool:
        """Whether a function of another file is left alone, for so much of other files has been interpreted."""
        if info.index is self.index or info in self.states:
            return False
        self._borrowed += 1
        return self._borrowed > MOST_BORROWED

    def _call_silently(self, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None) -> Value:
        """What a factory makes while an object is set up: nothing there is compiled."""
        if len(self._silent_calls) >= MOST_SILENT_CALLS_DEEP or info in self._silent_calls:
            return UNKNOWN
        body = info.node.body
        if not isinstance(body, list) or isinstance(info.node, ast.AsyncFunctionDef) or info.is_generator:
            return UNKNOWN
        if info.index is not self.index and not _is_small(info):
            return UNKNOWN
        key = info, tuple(given.positional), tuple(given.named.items()), closure is None
        if key in self._silent:
            return self._silent[key]
        if len(self._silent) >= MOST_SILENT_CALLS:
            return UNKNOWN
        state = State({}, None)
        self._join_arguments(info, state, given)
        frame = Frame(self, info, {**(closure or {}), **state.parameters})
        frame.silent = True
        self._silent_calls.add(info)
        try:
            self._silent[key] = result = returned_value(frame, run_body(frame, body))
        finally:
            self._silent_calls.discard(info)
        return result

    def _declared_parameters(self, info: FunctionInfo) -> dict[str, Value]:
        known = self._declared.get(info)
        if known is None:
            known = self._declared[info] = parameter_values(self.api, info, entry=False, compiled=False)
        return known

    def _join_arguments(self, info: FunctionInfo, state: State, given: Arguments) -> _Change:
        """Takes in what a call gives.  Returns how far it differs from what the calls before gave."""
        base = self._declared_parameters(info)
        node = info.node.args
        names = [a.arg for a in [*node.posonlyargs, *node.args]]
        defaults = info.defaults
        change = _Change.NONE
        for position, name in enumerate([*names, *(a.arg for a in node.kwonlyargs)]):
            value = given.get(position if position < len(names) else 10**6, name)
            if value is None and not given.spread and name in defaults:
                value = _default_value(defaults[name], base.get(name, UNKNOWN))
            value = _as_declared(value, base.get(name, UNKNOWN))
            known = state.parameters.get(name)
            merged = value if known is None else join(known, value)
            if merged != known:
                state.mixed = state.mixed or known is not None
                state.parameters[name] = merged
                change = max(change, _change(known, merged))
            elif value != known:
                state.mixed = True
        for extra in (node.vararg, node.kwarg):
            if extra is not None and extra.arg not in state.parameters:
                state.parameters[extra.arg] = base[extra.arg]
        return change

    def _interpret(self, info: FunctionInfo, state: State, closure: dict[str, Value] | None) -> None:
        if state.running or state.runs >= (MOST_RUNS if info.index is self.index else MOST_BORROWED_RUNS):
            return
        if info.owner is not None:
            self._initialise(info.owner)
        self._stale.pop(info, None)
        state.runs += 1
        state.running = True
        self._depth += 1
        try:
            # Names of the enclosing function that are bound later are seen too: a closure reads them when called.
            frame = Frame(self, info, {**(closure or {}), **state.parameters}, state.place, state.via)
            frame.conditions += self._replaced(info)
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
        """Runs what the decorators of a function put around it: that is traced, too."""
        if frame.silent or not info.decorators:
            return
        for name in info.decorators:
            wrapper = self._wrapper(name, info)
            if wrapper is not None and wrapper not in self.states and not is_untraced(wrapper):
                self.call_function(frame, node, wrapper, given)

    def _wrapper(self, decorator: str, info: FunctionInfo) -> FunctionInfo | None:
        """The function that a decorator of the project puts in place of the one that it is given."""
        key = info.index, decorator
        if key not in self._wrappers:
            found = info.index.function_named(decorator)
            self._wrappers[key] = _wrapper_in(found) if found is not None else None
        return self._wrappers[key]

    def _replaced(self, info: FunctionInfo) -> list[Condition]:
        """The condition under which a method runs that a decorator of its class puts another in place of."""
        names = info.owner.decorators if info.owner is not None else ()
        for name in names:
            key = info.index, name
            if key not in self._set_by:
                found = info.index.function_named(name)
                nodes = walk(found.node) if found is not None else ()
                self._set_by[key] = frozenset(
                    n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                )
            if info.name in self._set_by[key]:
                return [Condition(ConditionKind.PASSED_ON, info.name, classes=(name.rpartition(".")[2],))]
        return []

    def pass_callables(self, frame: Frame, node: ast.AST, values: list[Value]) -> None:
        """Functions handed to something that is not known: it may well call them."""
        for value in values:
            if value.sort is Sort.FUNCTION and value.function is not None:
                arguments = [value.bound] if value.bound is not None else []
                given = Arguments(arguments, {}, spread=True)
                self.call_function(frame, node, value.function, given, value.closure)

    def info_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef, index: ModuleIndex | None = None) -> FunctionInfo:
        return (index or self.index).all_functions[node]

    def lambda_info(self, node: ast.Lambda, frame: Frame) -> FunctionInfo:
        if node not in self._lambdas:
            prefix = f"{frame.function.qualname}.<locals>." if frame.function else ""
            self._lambdas[node] = FunctionInfo(node, f"{prefix}<lambda>", frame.index, nested=True)
        return self._lambdas[node]

    # -- names ------------------------------------------------------------------------------------------------

    def globals_of(self, index: ModuleIndex) -> dict[str, Value]:
        """What the names hold that the top level of a file assigns."""
        known = self._globals.get(index)
        if known is None:
            known = self._globals[index] = {}
            setup = self._set_up(index, index, lambda: self._read_globals(index, known))
            # What is no literal of the file's own may be set anew from anywhere.
            known.update({name: CONSTANT if v.literal is not None else v for name, v in setup.names.items()})
        return known

    def _read_globals(self, index: ModuleIndex, names: dict[str, Value]) -> None:
        frame = Frame(self, None, names, index=index)
        frame.silent = True
        self._read_block(frame, index.tree.body)

    def _set_up(self, index: ModuleIndex, key: object, read: Callable[[], None]) -> Setup:
        """What reading code that is run once, and never compiled, shows: remembered for the next file."""
        known = index.remembered.get(key)
        if not isinstance(known, Setup) or not self.project.draw_again(known.drawn):
            # What is remembered holds for any program: it must not take up what this one has set so far.
            outer = self.flags, self.ignored_callees
            self.flags, self.ignored_callees = set(), set()
            self._setups.append([])
            with self.project.recording() as drawn:
                read()
            stores = self._setups.pop()
            names = dict(self._globals.get(index, {})) if key is index else {}
            known = Setup(names, stores, frozenset(self.flags), frozenset(self.ignored_callees), drawn)
            self.flags, self.ignored_callees = outer
            index.remembered[key] = known
        else:
            for owner, name, value in known.stores:
                self.store(owner, name, value)
        self.flags |= known.flags
        self.ignored_callees |= known.ignored_callees
        return known

    def _read_block(self, frame: Frame, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._read_flag(frame.index, node)
                run_statement(frame, node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._read_config(frame.index, node.value)
            elif isinstance(node, ast.If | ast.Try):
                self._read_block(frame, node.body)
                self._read_block(frame, node.orelse)

    def _read_config(self, index: ModuleIndex, call: ast.Call) -> None:
        """``torch._dynamo.config.ignore_logging_functions.add(print)`` and its like: calls that then compile."""
        name = index.dotted(call.func) or ""
        if name.startswith("torch._dynamo.config.") and name.endswith("_logging_functions.add") and call.args:
            self.ignored_callees.add(index.dotted(call.args[0]) or "")

    def _read_flag(self, index: ModuleIndex, node: ast.Assign | ast.AnnAssign) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            name = index.dotted(target) or ""
            on = isinstance(node.value, ast.Constant) and node.value.value is True
            if on and name.startswith("torch._dynamo.config."):
                self.flags.add(name.rsplit(".", 1)[-1])

    def look_up_global(self, name: str, index: ModuleIndex | None = None) -> Value:
        """The value of a name at the top level of a file, by default of the one under interpretation."""
        index = index or self.index
        if name in index.assigned:
            value = self.globals_of(index).get(name)
            if value is not None and (value.sort is not Sort.NONE or name not in index.imports):
                return value
        if name in index.functions:
            return Value(Sort.FUNCTION, function=index.functions[name])
        if name in index.classes:
            return Value(Sort.CLASS, owner=index.classes[name], name=name)
        dotted = index.imports.get(name)
        if dotted is None and index.stars:
            dotted = self.project.star(index, name)
        if dotted is not None:
            return self.imported(dotted, index)
        return Value(Sort.NAMESPACE, name=name) if name in BUILTINS else UNKNOWN

    def imported(self, dotted: str, index: ModuleIndex) -> Value:
        """The value of a dotted name from elsewhere, as a file sees it."""
        key = index, dotted
        if key not in self._imported:
            self._imported[key] = Value(Sort.NAMESPACE, name=dotted)
            self._imported[key] = self._import(dotted, index)
        return self._imported[key]

    def _import(self, dotted: str, index: ModuleIndex) -> Value:
        head, _, last = dotted.rpartition(".")
        if head in ("torch", "math", "numpy") and (last in DTYPE_CLASS or last in ("inf", "nan", "pi", "e")):
            return CONSTANT
        found = self.project.find(dotted, index) if head or dotted in index.imports.values() else None
        if isinstance(found, FunctionInfo):
            return Value(Sort.FUNCTION, function=found)
        if isinstance(found, ClassInfo):
            return Value(Sort.CLASS, owner=found, name=found.qualname)
        if isinstance(found, GlobalName):
            value = self.globals_of(found.index).get(found.name, UNKNOWN)
            return value if value.sort is not Sort.UNKNOWN else Value(Sort.NAMESPACE, name=dotted)
        return Value(Sort.NAMESPACE, name=dotted)

    # -- classes ----------------------------------------------------------------------------------------------

    def _initialise(self, owner: ClassInfo) -> None:
        """Reads the body and ``__init__`` of a class and its bases for the attributes that they set."""
        if owner in self._initialised:
            return
        for info in self.project.bases_of(owner):
            if info not in self._initialised:
                self._initialised.add(info)
                self._set_up(info.index, info, partial(self._read_class, info))

    def _read_class(self, info: ClassInfo) -> None:
        for node in info.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.store(info, node.target.id, annotated_value(info.index, node.annotation))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.store(info, target.id, NONE if node.value.value is None else CONSTANT)
        init = info.methods.get("__init__")
        if init is not None:
            # What may be left out may be given.
            declared = self._declared_parameters(init).items()
            self._read_method(init, {name: UNKNOWN for name, value in declared if value.sort is Sort.NONE})

    def _read_method(self, method: FunctionInfo, known: dict[str, Value]) -> None:
        receiver = self._receiver(method)
        body = method.node.body
        if receiver is not None and isinstance(body, list):
            frame = Frame(self, method, {**self._declared_parameters(method), **dict([receiver]), **known})
            frame.silent = True
            run_body(frame, body)

    def store(self, owner: ClassInfo, name: str, value: Value) -> None:
        """Remembers what an attribute of a class's instances can hold."""
        if value.sort is Sort.TENSOR:
            value = replace(value, intermediate=False, optional=None)
        elif value.literal is not None or value.by_default:
            # Another method may well set it anew.
            value = replace(value, literal=None, by_default=False)
        key = owner, name
        if self._setups:
            self._setups[-1].append((owner, name, value))
        known = self._attributes.get(key)
        merged = value if known is None else join(known, value)
        if merged != known:
            self._attributes[key] = merged
            self._changed = self._changed or key in self._read

    def stored(self, owner: ClassInfo, name: str) -> Value | None:
        """What an attribute of the class's instances can hold, if anything is known of it."""
        self._initialise(owner)
        for base in self.project.bases_of(owner):
            self._read.add((base, name))
            if (base, name) in self._attributes:
                return self._attribute_of_class(owner, base, name)
        return None

    def _attribute_of_class(self, owner: ClassInfo, base: ClassInfo, name: str) -> Value:
        value = self._attributes[base, name]
        if value.sort is Sort.NONE and self._set_later(owner, name):
            value = next(
                self._attributes[b, name] for b in self.project.bases_of(owner) if (b, name) in self._attributes
            )
        return value

    def _set_later(self, owner: ClassInfo, name: str) -> bool:
        """Whether a method other than ``__init__`` sets an attribute; it is read, if so."""
        if (owner, name) not in self._later:
            chain = self.project.bases_of(owner)
            methods = [
                m for info in chain for m in info.methods.values() if m.name != "__init__" and name in _stores_of(m)
            ]
            self._later[owner, name] = bool(methods)
            for method in methods:
                self._set_up(method.index, method, partial(self._read_method, method, {}))
        return self._later[owner, name]

    def attribute(self, frame: Frame, node: ast.AST, owner: Value, name: str) -> Value:
        """The value of an attribute of an instance, or of a class of the file."""
        info = owner.owner
        assert info is not None
        self._initialise(info)
        for base in self.project.bases_of(info):
            method = base.methods.get(name)
            if method is not None:
                if method.is_property:
                    return self.call_function(frame, node, method, Arguments([owner], {}))
                bound = None if method.is_static or owner.sort is Sort.CLASS else owner
                if "classmethod" in method.decorators:
                    bound = Value(Sort.CLASS, owner=info, name=info.qualname)
                return Value(Sort.FUNCTION, function=method, bound=bound)
            self._read.add((base, name))
            if (base, name) in self._attributes:
                return self._attribute_of_class(info, base, name)
        if self._set_later(info, name) and (known := self.stored(info, name)) is not None:
            return known
        if owner.sort is Sort.MODULE and name == "training":
            return CONSTANT
        if owner.sort is Sort.MODULE:
            return Value(Sort.NAMESPACE, Sure.LIKELY, name=f"torch.nn.Module.{name}", bound=owner)
        return Value(Sort.NAMESPACE, Sure.POSSIBLE, name=f"?.{name}", bound=replace(owner, name=None))

    def super_value(self, frame: Frame) -> Value:
        """``super()``: the first base in the file, else a module or object of which nothing is known."""
        owner = frame.function.owner if frame.function is not None else None
        if owner is None:
            return UNKNOWN
        bases = self.project.bases_of(owner)[1:]
        if bases:
            return self.instance(bases[0])
        return Value(Sort.MODULE, Sure.LIKELY) if self.project.is_module(owner) else UNKNOWN

    def makes_parameters(self, owner: ClassInfo) -> bool:
        """Whether constructing the class constructs parameters."""
        if owner not in self._makes_parameters:
            self._makes_parameters[owner] = False  # should it hold itself
            self._initialise(owner)
            chain = self.project.bases_of(owner)
            held = [value for (info, _), value in list(self._attributes.items()) if info in chain]
            self._makes_parameters[owner] = any(
                value.parameter
                or value.name in self.api.modules_with_parameters
                or (value.sort is Sort.MODULE and value.owner is not None and self.makes_parameters(value.owner))
                for value in held
            )
        return self._makes_parameters[owner]

    def dataclass_fields(self, owner: ClassInfo) -> list[str]:
        """The fields of a dataclass, in order; empty for another class."""
        if not any(d.rsplit(".", 1)[-1] == "dataclass" for d in owner.decorators):
            return []
        self._initialise(owner)
        return [n.target.id for n in owner.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


def _wrapper_in(decorator: FunctionInfo) -> FunctionInfo | None:
    """The inner function that calls what the decorator, or the decorator that it makes, is given."""
    given = {a.arg for a in (*decorator.node.args.posonlyargs, *decorator.node.args.args)}
    for node in own_nodes(decorator.node):
        if isinstance(node, ast.FunctionDef):
            made = decorator.index.all_functions[node]
            called = {n.func.id for n in own_nodes(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            return made if given & called else _wrapper_in(made)
    return None


def _stores_of(method: FunctionInfo) -> frozenset[str]:
    """The attributes of its first parameter that a method sets."""
    if method.stores is None:
        receiver = None if method.is_static else _first_parameter(method)
        method.stores = frozenset(
            node.attr
            for node in own_nodes(method.node)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == receiver
        )
    return method.stores


def _or_declared(result: Value, declared: Value) -> Value:
    known = result.sort not in (Sort.UNKNOWN, Sort.NAMESPACE) or declared.sort is Sort.UNKNOWN
    return result if known else declared


def _first_parameter(info: FunctionInfo) -> str | None:
    given = [*info.node.args.posonlyargs, *info.node.args.args]
    return given[0].arg if given else None


_MAKING = frozenset({"__init__", "__post_init__"})


def _is_small(info: FunctionInfo) -> bool:
    if info.small is None:
        nodes = list(islice(own_nodes(info.node), MOST_NODES_OF_SMALL + 1))
        loops = any(isinstance(node, ast.For | ast.While | ast.Try | ast.With) for node in nodes)
        info.small = len(nodes) <= MOST_NODES_OF_SMALL and not loops
    return info.small


def _default_value(default: ast.expr, base: Value) -> Value:
    if isinstance(default, ast.Constant):
        return literal(default.value)
    return base


def _as_declared(value: Value | None, base: Value) -> Value:
    """An argument as the parameter's annotation or use refines it."""
    if value is None or value.sort in (Sort.UNKNOWN, Sort.NAMESPACE):
        return base
    if value.optional or value.by_default:
        value = replace(value, optional=None, by_default=False, literal=None if value.by_default else value.literal)
    if base.is_tensor and value.is_tensor:
        return replace(value, sure=max(value.sure, base.sure), dtype=value.dtype or base.dtype)
    if base.is_tensor and value.sort not in (Sort.NONE, Sort.CONSTANT, Sort.NUMBER, Sort.SHAPE):
        return base
    if base.sort is Sort.CONTAINER and (value.sort is Sort.CONSTANT or value.is_tensor):
        return base
    if base.sort is Sort.CONSTANT and value.sort is Sort.CONSTANT:
        return value
    if base.sort is Sort.CONTAINER and base.elements and all(v.sort is Sort.CONSTANT for v in base.elements):
        proved = [v for v in value.elements or () if v.is_tensor and v.sure is Sure.CERTAIN]
        return value if proved else base
    return value
