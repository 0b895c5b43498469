"""A file under interpretation: runs the entries of the compiler, and all that they call."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.calls import apply
from breakscan.check.interpreter.class_attributes import ClassAttributes
from breakscan.check.interpreter.dynamo_config import DynamoConfig
from breakscan.check.interpreter.expressions import evaluate
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.function_state import CallPath, State
from breakscan.check.interpreter.functions import Functions
from breakscan.check.interpreter.joins import join
from breakscan.check.interpreter.module_names import ModuleNames
from breakscan.check.interpreter.setups import Setups
from breakscan.check.interpreter.signatures import Signatures
from breakscan.check.interpreter.summaries import SummaryCache
from breakscan.check.interpreter.value_log import Notes
from breakscan.check.interpreter.values import Function, Value
from breakscan.check.project.entry_points import Entry, is_untraced
from breakscan.check.project.imports import Project
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Assumption, Mode, Region
from breakscan.rulebook.matching import RuleIndex
from breakscan.rulebook.torch_facts.table import TorchApi


class Program:
    """What is known of one file and of what its entries reach, in it and in others.

    ``names`` holds what global names stand for, ``attributes`` what instances hold, ``functions`` what functions
    return and emit.
    """

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
        self.functions = Functions(self, summaries or SummaryCache(project, mode, self._apart))
        self._lambdas: dict[ast.Lambda, FunctionInfo] = {}
        self.names.assigned(index)

    def _apart(self, index: ModuleIndex, summaries: SummaryCache) -> Program:
        """A program for functions of another file, which knows nothing of this one."""
        notes = self.notes.apart() if self.notes is not None else None
        return Program(self.project, index, self.api, self.rules, self.mode, summaries, notes)

    @property
    def states(self) -> dict[FunctionInfo, State]:
        """The functions that have been reached."""
        return self.functions.states

    def run(self, entries: list[Entry]) -> None:
        """Interprets the entries and all that they call, again where an attribute turned out to hold more.

        What a run saw only as a part of other functions is an entry where the code does not show who calls it.
        """
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
            seeds = self.signatures.at_entry(info, compiled=entry.compiled, receiver=entry.receiver)
            self.states[info] = State(seeds, entry.region, path=CallPath())
        else:
            for name, value in self.signatures.receiver(info, entry.receiver).items():
                known.parameters[name] = join(known.parameters[name], value)
            known.path = CallPath()

    def _run_inner(self) -> None:
        """Interprets the inner functions that nothing in sight calls, where any function could be compiled: they are
        stored, or handed to something that calls them.
        """
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

    def run_apart(self, info: FunctionInfo, parameters: dict[str, Value]) -> Value:
        """Interprets one function, for another file, and returns what it returns."""
        state = self.states[info] = State(dict(parameters), None)
        self.functions.run_once(info)
        self.functions.settle()
        return state.returns

    def release(self) -> None:
        """Lets go of all that it holds, so that nothing is left for the collector: functions within functions, and the
        parts of a program, refer to one another.
        """
        for names in self.closures:
            names.clear()
        vars(self).clear()

    # -- what evaluation asks -------------------------------------------------------------------------------

    def call_function(
        self, frame: Frame, node: ast.AST, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None = None
    ) -> Value:
        return self.functions.call(frame, node, info, given, closure)

    def call_wrappers(self, frame: Frame, info: FunctionInfo, given: Arguments) -> None:
        self.functions.call_wrappers(frame, info, given)

    def pass_callables(self, frame: Frame, node: ast.AST, values: list[Value]) -> None:
        """Calls the functions among values that go to something unknown: it may well call them."""
        for value in values:
            if isinstance(value, Function) and value.info is not None:
                arguments = [value.bound] if value.bound is not None else []
                given = Arguments(arguments, {}, spread=True)
                self.functions.call(frame, node, value.info, given, value.closure)

    def has_borrowed(self, info: FunctionInfo) -> bool:
        """Whether a function of another file has been interpreted already."""
        return info.index is not self.index and info in self.states

    def lambda_info(self, node: ast.Lambda, frame: Frame) -> FunctionInfo:
        if node not in self._lambdas:
            prefix = f"{frame.function.qualname}.<locals>." if frame.function else ""
            self._lambdas[node] = FunctionInfo(node, f"{prefix}<lambda>", frame.index, nested=True)
        return self._lambdas[node]
