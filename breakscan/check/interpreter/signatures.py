"""The state of a function, and the values of its parameters: as declared, and as calls pass them."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial

from breakscan.check.interpreter import parameters
from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.module_names import ClassAttributes
from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo
from breakscan.check.project.roots import Entry, RootFinder
from breakscan.model.findings import Condition, ConditionKind, Place, Region
from breakscan.rulebook.events import Event, EventKind
from breakscan.rulebook.torch_facts.table import TorchApi
from breakscan.source.walking import walk

EventKey = tuple[EventKind, str, str | None, int, int, int, int]
"""The kind, form, callee and span of an event."""


@dataclass(frozen=True, slots=True)
class CallPath:
    """The facts on every path to a method: results of tests of attributes of its object, by their names, conditions,
    and the test that decides whether it is called.  ``if self.merged: self.unmerge()`` says what ``if not self.merged``
    gives in ``unmerge``, and what its events depend on."""

    outcomes: Mapping[str, bool] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    test: Condition | None = None

    def joined(self, other: "CallPath") -> "CallPath":
        """The facts that hold on both paths."""
        conditions = tuple(c for c in self.conditions if c in other.conditions)
        test = self.test if self.test == other.test else None
        return CallPath(join_outcomes(self.outcomes, other.outcomes), conditions, test)


Nones = frozenset[tuple[str, bool]]
"""The parameters, and elements of them, that are known to be None or not in a call, as the function writes them."""
MOST_NONES = 8
"""The number of such sets that a function keeps apart."""


def join_outcomes(a: Mapping[str, bool], b: Mapping[str, bool]) -> Mapping[str, bool]:
    """The outcomes that are the same on two paths."""
    return a if a is b else {name: outcome for name, outcome in a.items() if b.get(name) is outcome}


@dataclass(slots=True)
class State:
    """The state of a function: its parameters so far, its result, and the events of its last run."""

    parameters: dict[str, av.Value]
    region: Region | None
    place: Place = Place.PLAIN
    via: str | None = None
    returns: av.Value = av.UNKNOWN
    events: dict[EventKey, Event] = field(default_factory=dict)
    calls: set[FunctionInfo] = field(default_factory=set)
    handles_tensors: bool = False
    mixed: bool = False
    """True if its calls give it different things."""
    chosen: Condition | None = None
    """The condition under which an inner function runs that is called only as one of several."""
    path: CallPath | None = None
    """The facts at all its calls; None while nothing has called it."""
    nones: set[Nones] | None = field(default_factory=set)
    """The arguments that are None, or are not, for each call; None where not all calls are known."""
    closure: dict[str, av.Value] | None = None
    """The names of the enclosing function, for an inner one."""
    in_wrapper: bool = False
    """True if nothing but what decorators put around functions reaches it, and it is in another file."""
    ran: bool = False
    running: bool = False
    changes: int = 0
    """The number of changes of an input since the function ran first."""
    callers: dict[FunctionInfo, None] = field(default_factory=dict)
    """The functions that used what it returns."""


class ParameterChange(IntEnum):
    """The differences of the arguments of a call from those of the calls before."""

    NONE = 0
    IN_PART = 1
    """The kinds are the same: it is enough to interpret the function again when everything has been called."""
    IN_KIND = 2
    TO_TENSOR = 3
    """The one change for which a function of another file is interpreted again: its own file knows the rest."""


_NO_POSITION = 10**6


class Signatures:
    """The parameters of the functions that one program reaches."""

    def __init__(self, project: Project, api: TorchApi, attributes: ClassAttributes) -> None:
        self._project = project
        self._api = api
        self._attributes = attributes
        self._finder = RootFinder(project)

    def declared(self, info: FunctionInfo) -> dict[str, av.Value]:
        """The values of the parameters by annotations, defaults and the body, regardless of calls."""
        make = partial(parameters.parameter_values, self._api, info, entry=False, compiled=False)
        return self._project.once(("parameters", info), info.index, make)

    def left_out(self, info: FunctionInfo) -> dict[str, av.Value]:
        """Flags, and parameters that are None by default and no tensors: what may be left out may be given; and modules
        of the project that calls in the same file pass for some module."""
        found: dict[str, av.Value] = {}
        for name, value in self.declared(info).items():
            default = info.defaults.get(name)
            if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                found[name] = replace(av.CONSTANT, optional=Condition(ConditionKind.FLAG, name, not default.value))
            elif _is_none(default) and isinstance(value, av.NoneValue | av.Constant | av.Unknown):
                is_none = isinstance(value, av.NoneValue)
                given = Condition(ConditionKind.GIVEN, name)
                found[name] = replace(av.UNKNOWN if is_none else value, maybe_none=not is_none, optional=given)
            elif isinstance(value, av.Module) and value.info is None and info.owner is not None:
                passed = self._finder.passed_to(info.owner, info, name)
                if passed:
                    found[name] = av.join_all([av.at_most(av.instance_of(one), av.Sure.LIKELY) for one in passed])
        return found

    def declared_result(self, info: FunctionInfo) -> av.Value:
        """The value that the annotation of a function's result promises."""
        node = getattr(info.node, "returns", None)
        if node is None:
            return av.UNKNOWN
        return self._project.once(("result", info), info.index, lambda: parameters.annotated_value(info.index, node))

    def at_entry(self, entry: Entry) -> dict[str, av.Value]:
        """The parameters of a function that the compiler is handed, with ``self`` or ``cls`` first."""
        info, receiver = entry.function, entry.receiver
        compiled = entry.compiled or (info.owner is not None and info.name == "forward")
        given = parameters.parameter_values(self._api, info, entry=True, compiled=compiled)
        for name, passed in entry.given:
            value = given.get(name, av.UNKNOWN)
            if isinstance(passed, ClassInfo) and av.class_of(value) is None:
                given[name] = av.instance_of(passed)
            elif passed is float and isinstance(value, av.Tensor):
                given[name] = av.CONSTANT  # the annotation is wrong
        given |= self._elements(info, receiver or info.owner, given)
        seen = {k: parameters.as_observed(given.get(k, av.UNKNOWN), v) for k, v in self._seen(info).items()}
        return {**given, **seen, **self.receiver(info, receiver)}

    def _seen(self, info: FunctionInfo) -> dict[str, av.Value]:
        """The values that recorded runs had for the names that a function starts with."""
        if not self._project.seen_in(info.index):
            return {}
        return self._project.once(("seen", info), info.index, lambda: parameters.observed_parameters(info))

    def _elements(self, info: FunctionInfo, owner: ClassInfo | None, given: dict[str, av.Value]) -> dict[str, av.Value]:
        """The numbers that may be elements of a tensor of the object, as the name says: ``timestep`` of ``timesteps``.
        A loop over the tensor gives them, and each is a tensor, too."""
        found: dict[str, av.Value] = {}
        for name, value in given.items():
            if owner is None or not isinstance(value, av.Constant) or not self._promises_number(info, name):
                continue
            held = self._attributes.stored(owner, f"{name}s")
            if isinstance(held, av.Tensor):
                condition = Condition(ConditionKind.TENSOR, name)
                found[name] = av.Tensor(av.Sure.LIKELY, value.maybe_none, condition, dtype=held.dtype, zero_dim=True)
        return found

    def receiver(self, info: FunctionInfo, owner: ClassInfo | None = None) -> dict[str, av.Value]:
        """``self`` or ``cls`` of a method; ``owner`` is the class that has the method, by default its own."""
        if info.receiver is None or info.owner is None:
            return {}
        return {info.receiver: av.instance_of(owner or info.owner)}

    def in_general(self, info: FunctionInfo, name: str, value: av.Value) -> av.Value:
        """An object as a function of another file sees it: as one of the class that it expects."""
        if not isinstance(value, av.Instance) or value.info is None:
            return value
        asked = av.class_of(self.declared(info).get(name, av.UNKNOWN))
        if asked is None and name == info.receiver:
            asked = info.owner
        chain = self._project.bases_of(value.info)
        if asked is None or asked not in chain:
            return value
        if any(set(c.methods) - parameters.SETTING_UP for c in chain[: chain.index(asked)]):
            return value
        return av.Instance(value.sure, value.maybe_none, info=asked, name=asked.qualname)

    def given(self, info: FunctionInfo, arguments: av.Arguments) -> dict[str, av.Value]:
        """The parameters of one call by itself."""
        state = State({}, None)
        self.join_arguments(info, state, arguments)
        return state.parameters

    def _promises_number(self, info: FunctionInfo, name: str) -> bool:
        """True if an annotation, or a default of True or False, says that a parameter is a number or a size."""
        return self._project.once(("promise", info, name), info.index, lambda: parameters.promises_number(info, name))

    def join_arguments(self, info: FunctionInfo, state: State, given: av.Arguments) -> ParameterChange:
        """Adds what a call gives.  Returns how far it differs from what the calls before gave."""
        base = self.declared(info)
        seen = self._seen(info)
        nones: list[tuple[str, bool]] = []
        node = info.node.args
        names = [a.arg for a in [*node.posonlyargs, *node.args]]
        defaults = info.defaults
        change = ParameterChange.NONE
        for position, name in enumerate([*names, *(a.arg for a in node.kwonlyargs)]):
            value = given.get(position if position < len(names) else _NO_POSITION, name)
            if value is None and not given.spread and name in defaults:
                default = defaults[name]
                value = av.literal(default.value) if isinstance(default, ast.Constant) else base.get(name, av.UNKNOWN)
            nones += _told_none(name, value)
            declared = base.get(name, av.UNKNOWN)
            if isinstance(value, av.Unknown | av.Namespace) and isinstance(declared, av.NoneValue):
                value = replace(av.UNKNOWN, optional=Condition(ConditionKind.GIVEN, name))  # the call gives something
            else:
                value = _as_declared(value, declared, name)
            if isinstance(value, av.Tensor) and value.sure is not av.Sure.CERTAIN and _is_none(defaults.get(name)):
                value = replace(value, optional=value.optional or Condition(ConditionKind.GIVEN, name))
            if isinstance(value, av.Tensor) and self._promises_number(info, name):
                is_text = any(a.arg == name and getattr(a.annotation, "id", "") == "str" for a in node.args)
                value = _against_promise(value, declared, name, is_text)
            if name in seen and name != info.receiver:
                value = parameters.as_observed(value, seen[name])
            change = max(change, _join_parameter(state, name, value, declared))
        find = partial(_asked_before_changes, info.own_nodes)
        if state.nones is not None and (asked := self._project.once(("asks if None", info), info.index, find)):
            state.nones.add(frozenset(one for one in nones if one[0] in asked))
            state.nones = state.nones if len(state.nones) <= MOST_NONES else None
        for extra in (node.vararg, node.kwarg):
            if extra is not None and extra.arg not in state.parameters:
                state.parameters[extra.arg] = base[extra.arg]
        return change


def _asked_before_changes(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The parameters, and elements of them, that a function tests for None before it may change them."""
    tests = [n for n in nodes if isinstance(n, ast.Compare) and none_test_subject(n) is not None]
    changed: dict[str, int] = {}
    for node in nodes if tests else ():
        for one in walk(node) if isinstance(node, ast.For | ast.AsyncFor | ast.While) else (node,):
            if isinstance(one, ast.Attribute) or isinstance(getattr(one, "ctx", None), ast.Store | ast.Del):
                name, line = getattr(getattr(one, "value", one), "id", ""), getattr(node, "lineno", 0)
                changed[name] = min(changed.get(name, line), line)
    late: dict[str, bool] = {}
    for test in tests:
        is_element = isinstance(test.left, ast.Subscript) and isinstance(test.left.slice, ast.Constant)
        name = getattr(test.left.value if isinstance(test.left, ast.Subscript) and is_element else test.left, "id", "")
        text = ast.unparse(test.left)
        late[text] = late.get(text, False) or not name or changed.get(name, test.lineno + 1) <= test.lineno
    return frozenset(text for text, is_late in late.items() if not is_late)


def none_test_subject(test: ast.expr) -> ast.expr | None:
    """``x`` of ``x is None`` or ``x is not None``."""
    match test:
        case ast.Compare(left=subject, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return subject
    return None


def _told_none(name: str, value: av.Value | None) -> Iterator[tuple[str, bool]]:
    """The names of an argument and its elements, each with True if it is None, False if it is not."""
    if isinstance(value, av.NoneValue):
        yield name, True
    elif isinstance(value, av.Tensor | av.Size | av.Container) and not value.maybe_none and not value.optional:
        yield name, False
    if isinstance(value, av.Container):
        for key, part in (*enumerate(value.elements or ()), *value.keys):
            yield from _told_none(f"{name}[{key!r}]", part)


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _against_promise(value: av.Tensor, base: av.Value, name: str, is_text: bool = False) -> av.Value:
    """A tensor that a call gives for a parameter whose declaration says that it is none."""
    if value.sure is not av.Sure.CERTAIN and (is_text or not value.optional or not value.optional.asks_for_tensor):
        return base  # else it was promised as a number before: `timestep` of `timesteps`
    return replace(value, optional=Condition(ConditionKind.TENSOR, name))


def _join_parameter(state: State, name: str, value: av.Value, declared: av.Value) -> ParameterChange:
    known = state.parameters.get(name)
    if known is None:
        state.parameters[name] = value
        return ParameterChange.TO_TENSOR if isinstance(value, av.Tensor) else ParameterChange.IN_KIND
    merged = _told(known, value, declared) or av.join(known, value)
    if isinstance(merged, av.Tensor) and merged.optional is None:
        # Some calls give no tensor.
        is_python = isinstance(known, av.PythonValue) or isinstance(value, av.PythonValue)
        if is_python or isinstance(known, av.NoneValue) or isinstance(value, av.NoneValue):
            kind = ConditionKind.TENSOR if is_python else ConditionKind.GIVEN
            merged = replace(merged, optional=Condition(kind, name))
    state.mixed = state.mixed or value != known
    if merged == known:
        return ParameterChange.NONE
    state.parameters[name] = merged
    if type(known) is type(merged):
        return ParameterChange.IN_PART
    return ParameterChange.TO_TENSOR if isinstance(merged, av.Tensor) else ParameterChange.IN_KIND


def _told(known: av.Value, value: av.Value, declared: av.Value) -> av.Value | None:
    """The value of a parameter where one call says more than all others and the declaration."""
    if isinstance(known, av.Unknown) and (isinstance(value, av.Function) or _is_known_container(value)):
        return av.at_most(value, av.Sure.LIKELY)
    if isinstance(declared, av.Tensor):
        # A list where the declaration has a tensor: the declaration is wrong, for all that nothing else was seen of.
        for one, other in ((known, value), (value, known)):
            if isinstance(one, av.Container) and other == declared:
                return one
    return None


def _as_declared(value: av.Value | None, base: av.Value, name: str) -> av.Value:
    """An argument as the parameter's annotation or use refines it."""
    if value is None or isinstance(value, av.Unknown | av.Namespace):
        return base
    if value.optional:
        # The function has another name for what the condition is about.
        other = Condition(ConditionKind.TENSOR, name) if isinstance(value, av.Tensor) else None
        is_passed = value.optional.kind in (ConditionKind.GIVEN, ConditionKind.FLAG)
        value = replace(value, optional=replace(value.optional, subject=name) if is_passed else other)
    if isinstance(base, av.Tensor) and isinstance(value, av.Tensor):
        if base.sure is av.Sure.CERTAIN and not base.optional and av.doubt(value):
            value = replace(value, optional=None)
        if base.optional is not None and base.optional.kind is ConditionKind.TENSOR and value.optional is None:
            # The signature takes others, too: whether a call breaks depends on the call.
            value = replace(value, optional=base.optional)
        sure, dtype = max(value.sure, base.sure), value.dtype or base.dtype
        return value if (sure, dtype) == (value.sure, value.dtype) else replace(value, sure=sure, dtype=dtype)
    if isinstance(base, av.Tensor) and not isinstance(value, av.NoneValue | av.PythonValue):
        return value if _is_known_container(value) else base
    return _container_as_declared(value, base, name) if isinstance(base, av.Container) else value


def _is_known_container(value: av.Value) -> bool:
    return isinstance(value, av.Container) and not isinstance(av.item_of(value), av.Unknown)


def _container_as_declared(value: av.Value, base: av.Container, name: str) -> av.Value:
    if isinstance(value, av.Constant | av.Tensor):
        return base
    is_open = isinstance(value, av.Container) and not value.elements and not value.keys
    if is_open and isinstance(av.item_of(value), av.Unknown):
        return base
    if base.elements and all(isinstance(v, av.Constant) for v in base.elements):
        elements = av.elements_of(value) or ()
        if not any(isinstance(v, av.Tensor) and v.sure is av.Sure.CERTAIN for v in elements):
            return base
        parts = [_against_promise(v, av.CONSTANT, name) if isinstance(v, av.Tensor) else v for v in elements]
        return replace(value, elements=tuple(parts)) if isinstance(value, av.Container) else value
    return value
