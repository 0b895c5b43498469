"""A file under interpretation: runs the entries of the compiler, all that they call, and code that runs once."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from breakscan.check.interpreter.calls import apply
from breakscan.check.interpreter.expressions import evaluate
from breakscan.check.interpreter.frame import Frame, Interpreter
from breakscan.check.interpreter.functions import Functions, Summary, SummaryCache
from breakscan.check.interpreter.module_names import ClassAttributes, DynamoConfig, ModuleNames, Store
from breakscan.check.interpreter.parameters import annotated_value
from breakscan.check.interpreter.signatures import CallPath, Signatures, State
from breakscan.check.interpreter.statements import run_body, run_statement
from breakscan.check.interpreter.value_log import Notes
from breakscan.check.interpreter.values import CONSTANT, NONE, Arguments, Function, Tensor, Value, elements_of, join
from breakscan.check.project.entry_points import is_untraced
from breakscan.check.project.imports import KeptAnswer, Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.check.project.roots import Entry
from breakscan.model.findings import Assumption, Condition, ConditionKind, Mode, Region
from breakscan.rulebook.matching import RuleIndex
from breakscan.rulebook.torch_facts.table import TorchApi


# Interprets code that runs once and is never compiled: the top level of a file, and what sets up an object.
# Its results are cached with the file, for the other files that import it.
@dataclass(frozen=True, slots=True)
class Setup:
    """Facts of code that runs once: the names that it binds, what it stores in attributes, and torch's settings."""

    names: dict[str, Value]
    stores: list[Store]
    config: DynamoConfig


class Setups:
    """Reads set-up code for one program."""

    def __init__(self, program: Interpreter, config: DynamoConfig) -> None:
        self._program = program
        self._reading = config
        """Takes the settings that are found: while code is read, those of this code alone."""

    def read_module(self, index: ModuleIndex, names: dict[str, Value]) -> dict[str, Value]:
        """Fills the names that the top level of a file assigns, and returns those that hold in any program."""

        def read() -> None:
            frame = Frame(self._program, None, names, index=index)
            frame.silent, frame.traced = True, False
            self._block(frame, index.tree.body)

        return self._once(index, index, index.module.tree, read, names).names

    def read_class(self, info: ClassInfo) -> None:
        """Stores what the body and ``__init__`` of a class set."""
        self._once(info.index, info, info.node, lambda: self._class(info))

    def read_method(self, method: FunctionInfo) -> None:
        self._once(method.index, method, method.node, lambda: self._method(method, {}))

    def _once(
        self,
        index: ModuleIndex,
        key: object,
        node: ast.AST,
        read: Callable[[], None],
        names: dict[str, Value] | None = None,
    ) -> Setup:
        project, attributes = self._program.project, self._program.attributes

        def find() -> Setup:
            with project.sparing(index, node):
                read()
            return Setup(dict(names or {}), attributes.recorders.pop(), self._reading)

        known = index.remembered.get(key)
        if not isinstance(known, KeptAnswer) or not project.draw_again(known):
            # Cached results hold for any program: they must not include what this one has set so far.
            outer, self._reading = self._reading, DynamoConfig()
            attributes.recorders.append([])
            reader, attributes.reader = attributes.reader, None
            closures, self._program.closures = self._program.closures, index.closures
            known = project.recorded(find)
            self._reading = outer
            attributes.reader = reader
            self._program.closures = closures
            if not project.is_full:
                index.remembered[key] = known
        else:
            for owner, name, value in known.answer.stores:
                attributes.store(owner, name, value)
        setup: Setup = known.answer
        self._reading.flags |= setup.config.flags
        self._reading.off |= setup.config.off
        self._reading.ignored_callees |= setup.config.ignored_callees
        return setup

    def _block(self, frame: Frame, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._reading.read_assignment(frame.index, node)
                run_statement(frame, node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._reading.read_call(frame.index, node.value)
            elif isinstance(node, ast.If | ast.Try):
                self._block(frame, node.body)
                self._block(frame, node.orelse)

    def _class(self, info: ClassInfo) -> None:
        attributes, signatures = self._program.attributes, self._program.signatures
        for node in info.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                value, default = annotated_value(info.index, node.annotation), getattr(node.value, "value", None)
                if isinstance(default, bool):
                    value = replace(CONSTANT, optional=Condition(ConditionKind.FLAG, node.target.id, not default))
                attributes.store(info, node.target.id, value)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        attributes.store(info, target.id, NONE if node.value.value is None else CONSTANT)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Call):
                self._class_value(info, node)
        init = info.methods.get("__init__")
        if init is not None:
            self._method(init, signatures.left_out(init))

    def _class_value(self, info: ClassInfo, node: ast.Assign) -> None:
        """Stores what the body of a class computes, where it is a tensor, or a tuple with one."""
        frame = Frame(self._program, None, {}, index=info.index)
        frame.silent, frame.traced = True, False
        value = evaluate(frame, node.value)
        if isinstance(value, Tensor) or any(isinstance(part, Tensor) for part in elements_of(value) or ()):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._program.attributes.store(info, target.id, value)

    def _method(self, method: FunctionInfo, known: dict[str, Value]) -> None:
        signatures = self._program.signatures
        receiver = signatures.receiver(method)
        body = method.node.body
        if receiver and isinstance(body, list):
            frame = Frame(self._program, method, {**signatures.declared(method), **receiver, **known})
            frame.silent, frame.traced = True, False
            run_body(frame, body)


class Program:
    """The state of the interpretation of one file and of what its entries reach, in it and in others. ``names`` holds
    the values of global names, ``attributes`` what instances hold, ``functions`` what functions return and emit."""

    # Evaluation is recursive over its files: they reach one another through the frame.
    evaluate = staticmethod(evaluate)
    apply = staticmethod(apply)

    def __init__(
        self,
        project: Project,
        index: ModuleIndex,
        api: TorchApi,
        rules: RuleIndex,
        mode: Mode,
        summaries: SummaryCache | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.project = project
        self.index = index
        self.module = index.module
        self.api = api
        self.rules = rules
        self.mode = mode
        self.notes = notes
        self.config = DynamoConfig()
        self.closures: list[dict[str, Value]] = []
        """The names of frames that inner functions refer to."""
        self.inner: dict[FunctionInfo, tuple[FunctionInfo, Function]] = {}
        """The inner functions that have been made, each with the function around it."""
        setups = Setups(self, self.config)
        self.names = ModuleNames(project, setups.read_module)
        self.attributes = ClassAttributes(project, api, setups.read_class, setups.read_method)
        self.signatures = Signatures(project, api, self.attributes)
        self.functions = Functions(self, summaries or SummaryCache(project, mode, self._interpret_apart))
        self.call_function, self.call_wrappers = self.functions.call, self.functions.call_wrappers
        self.truth_while_traced = self.functions.truth
        self._lambdas: dict[ast.Lambda, FunctionInfo] = {}
        self.names.assigned(index)

    def _interpret_apart(self, info: FunctionInfo, given: dict[str, Value], summaries: SummaryCache) -> Summary:
        """Interprets a function of another file in a program of its own, which knows nothing of this one."""
        notes = self.notes.apart() if self.notes is not None else None
        apart = Program(self.project, info.index, self.api, self.rules, self.mode, summaries, notes)
        states = apart.states
        state = states[info] = State(dict(given), None, nones=None)
        apart.functions.run_once(info)
        apart.functions.settle()
        info.index.closures += apart.closures
        apart.closures = []
        apart.release()
        return Summary(state.returns, states, notes)

    @property
    def states(self) -> dict[FunctionInfo, State]:
        """The functions that have been reached."""
        return self.functions.states

    def run(self, entries: list[Entry]) -> None:
        """Interprets the entries and all that they call, again where an attribute turned out to hold more. What a run
        saw only as a part of other functions is an entry where the code does not show who calls it."""
        self._run([entry for entry in entries if entry.compiled or not entry.region.recorded])
        self._run([entry for entry in entries if entry.function not in self.states])
        self._run_inner()

    def _run(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._enter(entry)
        # Callers mostly stand below what they call: they say what it is called with.
        for entry in reversed(entries):
            self.functions.run_once(entry.function)
            self.functions.run_wrappers(entry.function)
            if entry.region.assumed is Assumption.FUNCTION:
                state = self.states[entry.function]
                for made in getattr(state.returns, "choices", ()) or (state.returns,):
                    self._run_returned(state, made)
        self.functions.settle()

    def _enter(self, entry: Entry) -> None:
        info = entry.function
        known = self.states.get(info)
        if known is None:
            seeds = self.signatures.at_entry(entry)
            self.states[info] = State(seeds, entry.region, path=CallPath(), nones=None)
        else:
            known.nones = None
            for name, value in self.signatures.receiver(info, entry.receiver).items():
                known.parameters[name] = join(known.parameters[name], value)
            known.path = CallPath()

    def _run_inner(self) -> None:
        """Interprets the inner functions that nothing in sight calls, where any function could be compiled: they are
        stored, or handed to something that calls them."""
        while self.inner:
            waiting, self.inner = self.inner, {}
            for around, made in waiting.values():
                state = self.states.get(around)
                if state is not None and state.region is not None and state.region.assumed is Assumption.FUNCTION:
                    self._run_returned(state, made)
            self.functions.settle()

    def _run_returned(self, state: State, returned: Value) -> None:
        """Interprets what a function makes and returns, as a decorator does: it could be compiled as well."""
        if not isinstance(returned, Function):
            return
        made = returned.info
        if made is None or not made.nested or made.index is not self.index or is_untraced(made, self.mode):
            return
        if made not in self.states:
            path = made.index.module.display
            around = state.region or Region(path, 0, "")
            region = replace(around, path=path, line=made.node.lineno, entry=made.qualname)
            self._enter(Entry(made, region, compiled=False))
        self.functions.run_once(made, returned.closure)

    def release(self) -> None:
        """Frees all that it holds, so that nothing is left for the collector: functions within functions, and the parts
        of a program, refer to one another."""
        for names in self.closures:
            names.clear()
        vars(self).clear()

    # -- what evaluation asks -------------------------------------------------------------------------------

    def pass_callables(self, frame: Frame, node: ast.AST, values: list[Value]) -> None:
        """Calls the functions among values that go to something unknown: it may well call them."""
        for value in values:
            if isinstance(value, Function) and value.info is not None:
                arguments = [value.bound] if value.bound is not None else []
                given = Arguments(arguments, {}, spread=True)
                self.functions.call(frame, node, value.info, given, value.closure)

    def has_borrowed(self, info: FunctionInfo) -> bool:
        """True if a function of another file has been interpreted already."""
        return info.index is not self.index and info in self.states

    def lambda_info(self, node: ast.Lambda, frame: Frame) -> FunctionInfo:
        if node not in self._lambdas:
            prefix = f"{frame.function.qualname}.<locals>." if frame.function else ""
            self._lambdas[node] = FunctionInfo(node, f"{prefix}<lambda>", frame.index, nested=True)
        return self._lambdas[node]
