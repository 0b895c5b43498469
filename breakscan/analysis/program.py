"""A file under interpretation: runs its functions from the entries of the compiler, and all that they call."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from breakscan.analysis.annotations import annotated_value
from breakscan.analysis.api import DTYPE_CLASS, TorchApi
from breakscan.analysis.arguments import Arguments
from breakscan.analysis.calls import apply
from breakscan.analysis.expressions import evaluate
from breakscan.analysis.frame import EventKey, Frame
from breakscan.analysis.index import BUILTINS, ClassInfo, FunctionInfo, ModuleIndex
from breakscan.analysis.parameters import parameter_values
from breakscan.analysis.project import Drawn, GlobalName, Project
from breakscan.analysis.regions import Entry, is_untraced
from breakscan.analysis.statements import returned_value, run_body, run_statement
from breakscan.analysis.values import CONSTANT, NONE, UNKNOWN, Sort, Sure, Value, container_of, join
from breakscan.findings import Place, Region
from breakscan.rulebook.events import Event
from breakscan.rulebook.matching import RuleIndex

MOST_RUNS = 6
"""A function's parameters and place settle within a few runs; recursion through containers may not."""
MOST_BORROWED_RUNS = 2
"""So for a function of another file, whose findings are also those of its own."""
MOST_CALLS_DEEP = 40
MOST_SILENT_CALLS_DEEP = 3
MOST_BORROWED = 1500
"""How many functions of other files the entries of one file may draw in."""


@dataclass(slots=True)
class State:
    """What is known of a function: its parameters so far, what it returns, what it emitted last."""

    parameters: dict[str, Value]
    region: Region | None
    place: Place = Place.PLAIN
    via: str | None = None
    returns: Value = UNKNOWN
    events: dict[EventKey, Event] = field(default_factory=dict)
    calls: set[FunctionInfo] = field(default_factory=set)
    handles_tensors: bool = False
    runs: int = 0
    running: bool = False


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

    def __init__(self, project: Project, index: ModuleIndex, api: TorchApi, rules: RuleIndex) -> None:
        self.project = project
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
            if not self._changed:
                break
            for state in self.states.values():
                state.runs = 0

    def _enter(self, entry: Entry) -> None:
        info = entry.function
        compiled = entry.compiled or (info.owner is not None and info.name == "forward")
        seeds = parameter_values(self.api, info, entry=True, compiled=compiled)
        receiver = self._receiver(info)
        if receiver is not None:
            seeds = {receiver[0]: receiver[1], **seeds}
        self.states[info] = State(seeds, entry.region)

    def _receiver(self, info: FunctionInfo) -> tuple[str, Value] | None:
        """The name and value of ``self`` or ``cls``."""
        arguments = [*info.node.args.posonlyargs, *info.node.args.args]
        if info.owner is None or info.is_static or not arguments:
            return None
        return arguments[0].arg, self.instance(info.owner)

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
        state = self.states.get(info)
        if state is None:
            state = self.states[info] = State({}, caller.region if caller else None)
        if caller is not None:
            caller.calls.add(info)
            state.region = state.region or caller.region
        changed = self._join_arguments(info, state, given)
        place, via = frame.place_of(node)
        if state.place is Place.PLAIN and place is not Place.PLAIN:
            state.place = place
            state.via = via or (frame.function.qualname if frame.function else None)
            changed = True
        if (changed or not state.runs) and not state.running:
            self._interpret(info, state, closure)
        if info.is_generator:
            return container_of(declared.item())
        result = state.returns
        if result.sort in (Sort.UNKNOWN, Sort.NAMESPACE) and declared.sort is not Sort.UNKNOWN:
            return declared
        return result

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
        if not isinstance(body, list) or info.is_generator or isinstance(info.node, ast.AsyncFunctionDef):
            return UNKNOWN
        key = info, tuple(given.positional), tuple(given.named.items()), closure is None
        if key in self._silent:
            return self._silent[key]
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

    def _join_arguments(self, info: FunctionInfo, state: State, given: Arguments) -> bool:
        base = self._declared_parameters(info)
        node = info.node.args
        names = [a.arg for a in [*node.posonlyargs, *node.args]]
        defaults = info.defaults
        changed = False
        for position, name in enumerate([*names, *(a.arg for a in node.kwonlyargs)]):
            value = given.get(position if position < len(names) else 10**6, name)
            if value is None and not given.spread and name in defaults:
                value = _default_value(defaults[name], base.get(name, UNKNOWN))
            value = _as_declared(value, base.get(name, UNKNOWN))
            known = state.parameters.get(name)
            merged = value if known is None else join(known, value)
            if merged != known:
                state.parameters[name] = merged
                changed = True
        for extra in (node.vararg, node.kwarg):
            if extra is not None and extra.arg not in state.parameters:
                state.parameters[extra.arg] = base[extra.arg]
        return changed

    def _interpret(self, info: FunctionInfo, state: State, closure: dict[str, Value] | None) -> None:
        if state.running or state.runs >= (MOST_RUNS if info.index is self.index else MOST_BORROWED_RUNS):
            return
        if info.owner is not None:
            self._initialise(info.owner)
        state.runs += 1
        state.running = True
        self._depth += 1
        try:
            # Names of the enclosing function that are bound later are seen too: a closure reads them when called.
            frame = Frame(self, info, {**(closure or {}), **state.parameters}, state.place, state.via)
            body = info.node.body
            if isinstance(body, list):
                reaches_end = run_body(frame, body)
            else:
                run_statement(frame, ast.copy_location(ast.Return(body), body))
                reaches_end = False
            state.returns = returned_value(frame, reaches_end)
            state.events = frame.events
            values = [*frame.names.values(), *frame.returned]
            state.handles_tensors = any(v.is_tensor and v.sure is not Sure.POSSIBLE for v in values)
        finally:
            state.running = False
            self._depth -= 1

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
            known.update(setup.names)
            self.flags |= setup.flags
            self.ignored_callees |= setup.ignored_callees
        return known

    def _read_globals(self, index: ModuleIndex, names: dict[str, Value]) -> None:
        frame = Frame(self, None, names, index=index)
        frame.silent = True
        self._read_block(frame, index.tree.body)

    def _set_up(self, index: ModuleIndex, key: object, read: Callable[[], None]) -> Setup:
        """What reading code that is run once, and never compiled, shows: remembered for the next file."""
        known = index.remembered.get(key)
        if not isinstance(known, Setup) or not self.project.draw_again(known.drawn):
            self._setups.append([])
            with self.project.recording() as drawn:
                read()
            stores = self._setups.pop()
            names = dict(self._globals.get(index, {})) if key is index else {}
            known = Setup(names, stores, frozenset(self.flags), frozenset(self.ignored_callees), drawn)
            index.remembered[key] = known
        else:
            for owner, name, value in known.stores:
                self.store(owner, name, value)
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
        if init is not None and isinstance(init.node.body, list):
            values = self._declared_parameters(init)
            receiver = self._receiver(init)
            frame = Frame(self, init, {**values, **(dict([receiver]) if receiver else {})})
            frame.silent = True
            run_body(frame, init.node.body)

    def store(self, owner: ClassInfo, name: str, value: Value) -> None:
        """Remembers what an attribute of a class's instances can hold."""
        if value.sort is Sort.TENSOR:
            value = replace(value, intermediate=False, optional=None)
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
                return self._attributes[base, name]
        return None

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
                return self._attributes[base, name]
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

    def makes_parameters(self, owner: ClassInfo, seen: frozenset[ClassInfo] = frozenset()) -> bool:
        """Whether constructing the class constructs parameters."""
        self._initialise(owner)
        chain = self.project.bases_of(owner)
        for (info, _), value in list(self._attributes.items()):
            if info not in chain:
                continue
            if value.parameter or value.name in self.api.modules_with_parameters:
                return True
            part = value.owner if value.sort is Sort.MODULE else None
            if part is not None and part not in seen | {owner} and self.makes_parameters(part, seen | {owner}):
                return True
        return False

    def dataclass_fields(self, owner: ClassInfo) -> list[str]:
        """The fields of a dataclass, in order; empty for another class."""
        if not any(d.rsplit(".", 1)[-1] == "dataclass" for d in owner.decorators):
            return []
        self._initialise(owner)
        return [n.target.id for n in owner.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


def _default_value(default: ast.expr, base: Value) -> Value:
    if isinstance(default, ast.Constant):
        return NONE if default.value is None else CONSTANT
    return base


def _as_declared(value: Value | None, base: Value) -> Value:
    """An argument as the parameter's annotation or use refines it."""
    if value is None or value.sort in (Sort.UNKNOWN, Sort.NAMESPACE):
        return base
    value = replace(value, optional=None) if value.optional else value
    if base.is_tensor and value.is_tensor:
        return replace(value, sure=max(value.sure, base.sure), dtype=value.dtype or base.dtype)
    if base.is_tensor and value.sort not in (Sort.NONE, Sort.CONSTANT, Sort.NUMBER, Sort.SHAPE):
        return base
    if base.sort in (Sort.CONSTANT, Sort.CONTAINER) and value.sort is Sort.CONSTANT:
        return base
    if base.sort is Sort.CONTAINER and base.elements and all(v.sort is Sort.CONSTANT for v in base.elements):
        return base
    return value
