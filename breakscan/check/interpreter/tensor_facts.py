"""What is known about the tensors of one function while it is interpreted: dtype, shape, storage, device.

It is computed only where it is asked for, which is for rewrites.  The interpreter carries it in ``Value.facts``, so
that it follows assignments, branches and loops.  Parameters, attributes and the results of other calls are
symbols; the facts about all other values are terms over these.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from operator import is_

from breakscan.check.interpreter import fact_calls
from breakscan.check.interpreter.fact_calls import (
    Given,
    Known,
    TorchCall,
    dtype_asked,
    exact_dtype,
    is_number,
    made,
    result,
)
from breakscan.check.interpreter.joins import joins_in, placed
from breakscan.check.interpreter.observed_values import agrees, observed_facts, seen_attribute, seen_of
from breakscan.check.interpreter.values import (
    Class,
    ClassOrObject,
    Constant,
    Container,
    Function,
    Instance,
    Module,
    Namespace,
    NoneValue,
    PythonValue,
    Tensor,
    Value,
    literal_of,
    with_facts,
)
from breakscan.check.project.index import FunctionInfo
from breakscan.model.facts import SCALAR, Dtype, DtypeOf, Exactly, ResultOf, Source, Symbol, TensorFacts, opaque
from breakscan.model.observations import FunctionSeen
from breakscan.rulebook.torch_facts.not_measured import (
    ATTRIBUTES_OF_THE_SAME_SHAPE,
    LIMITS_OF_DTYPES,
    TRANSPOSED_ATTRIBUTES,
)
from breakscan.rulebook.torch_facts.promotion import python_number
from breakscan.rulebook.torch_facts.table import TorchApi
from breakscan.source.walking import walk

# The facts of values of which only the kind is known, and of what is made from these.


def leaf_facts(symbol: Symbol, value: Value, source: Source = Source.INFERRED) -> TensorFacts:
    """The facts about a value of which only the class is known."""
    known = literal_of(value)
    if isinstance(known, bool | int | float):
        return opaque(symbol, Exactly(python_number(known).dtype, number=True), frozenset())
    if isinstance(value, PythonValue):
        return opaque(symbol, DtypeOf(symbol, None, number=True), frozenset())
    if not isinstance(value, Tensor):
        return opaque(symbol, DtypeOf(symbol, None, number=None))
    shape = frozenset[Symbol]() if value.zero_dim else None
    grad = False if value.dtype in ("int", "bool") else None
    dtype = DtypeOf(symbol, value.dtype, number=False, source=source)
    return opaque(symbol, dtype, shape, grad)


def leaf_kind(value: Value) -> object:
    """What of a value decides its leaf facts."""
    if isinstance(value, Tensor):
        return value.dtype, value.zero_dim
    if not isinstance(value, PythonValue):
        return None
    known = literal_of(value)
    return type(known) if isinstance(known, bool | int | float) else PythonValue


def made_by_function(value: Value, leaf: TensorFacts) -> TensorFacts:
    """The facts about what a function of the project returns: whether every ``return`` makes a tensor."""
    if value.facts is None or not value.facts.is_new:
        return leaf
    return replace(leaf, storage=made(leaf), is_new=True)


def weakest_source(dtype: Dtype) -> Source:
    """The weakest source that a dtype rests on."""
    if isinstance(dtype, ResultOf):
        return min((weakest_source(one.dtype) for one in dtype.inputs), default=Source.INFERRED)
    return dtype.source


def number_facts(leaf: TensorFacts) -> TensorFacts:
    symbol = leaf.device
    return opaque(symbol, DtypeOf(symbol, None, number=True), frozenset())


def dtype_class_of(facts: TensorFacts) -> str | None:
    return facts.dtype.among if isinstance(facts.dtype, DtypeOf) else None


# Whether an expression is surely one Python number, and no list of them.


_NUMBERS = ("bool", "float", "int")
_CONVERSIONS = (*_NUMBERS, "len")


def is_one_number(node: ast.expr, function: FunctionInfo, known: Known, seen: FunctionSeen | None) -> bool:
    """Whether it is a number that is written out, a conversion to one, or a parameter that is annotated as one, or that
    held nothing else in what was ``seen``. An attribute, and a parameter with a number as its default, may hold a list
    as well.
    """
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        node = node.operand
    found = known(node)
    value = found[0] if found is not None else None
    if isinstance(value, Constant) and isinstance(value.literal, int | float) and not value.by_default:
        return True
    if isinstance(node, ast.Call):
        callee = known(node.func)
        return callee is not None and isinstance(callee[0], Namespace) and callee[0].name in _CONVERSIONS
    if not isinstance(node, ast.Name) or (parameter := _parameter(node.id, function)) is None:
        return False
    if parameter.annotation is not None and function.index.dotted(parameter.annotation) in _NUMBERS:
        return True
    held = seen.names.get(node.id) if seen is not None else None
    return held is not None and set(held.types) <= set(_NUMBERS)


def _parameter(name: str, function: FunctionInfo) -> ast.arg | None:
    """The parameter of a name that nothing else is ever assigned to."""
    given = function.node.args
    found = next((one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg == name), None)
    stored = (node.id for node in function.own_nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return found if name not in stored else None


_WITHOUT = (Container, NoneValue, Function, Class)
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
"""The operator of torch that computes what Python's operator does with a tensor."""
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "positive", ast.Invert: "bitwise_not"}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


class FunctionFacts:
    """The facts of one pass over one function.  ``names`` are those that it starts with."""

    def __init__(self, function: FunctionInfo, api: TorchApi, torch_version: str, names: dict[str, Value]) -> None:
        self._api = api
        self._index = function.index
        self._version = torch_version
        self._values: dict[ast.expr, Value] = {}
        self._places: dict[Symbol, Symbol] = {}
        self._joins = count(1)
        self._decorated = bool(function.decorators)
        node = function.node
        self._at = (node.lineno, node.col_offset)
        self._stored = function.stored_attributes
        self._leaves = function.leaves
        self._settled: dict[int, TensorFacts] = {}
        """Facts without joins, by their identity."""
        self._function = function
        self._seen = seen = seen_of(function)
        for name, value in names.items():
            symbol = Symbol(name, (*self._at, 0))
            tensor = seen.names[name].tensor if seen is not None and name in seen.names else None
            if tensor is not None and isinstance(value, Tensor) and agrees(value, tensor):
                names[name] = with_facts(value, observed_facts(symbol, tensor, value))
            else:
                names[name] = self._rooted(value, symbol)

    # -- what the interpreter calls ---------------------------------------------------------------------------------

    def evaluated(self, node: ast.expr, value: Value) -> Value:
        """The value of an expression, with what is known about it.  Its parts have been evaluated just before."""
        if isinstance(value, _WITHOUT):
            if not isinstance(node, ast.Tuple | ast.List):
                value = _bare(value)
        else:
            facts = self._of(node, value)
            if facts is not value.facts:
                value = with_facts(value, facts)
        self._values[node] = value
        return value

    def bound(self, target: ast.expr, value: Value) -> Value:
        """The value that a name is bound to."""
        if value.facts is not None or isinstance(value, _WITHOUT):
            return value
        return with_facts(value, self._leaf(target, value))

    def returned(self, node: ast.expr | None, value: Value) -> Value:
        """The value that a function returns.

        What a name or an attribute holds, something else may hold, too; a decorator may keep it.
        """
        made_here = isinstance(node, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript)
        if value.facts is None or (made_here and not self._decorated):
            return value
        return with_facts(value, replace(value.facts, is_new=False))

    def augmented(self, node: ast.AugAssign, old: Value, new: Value) -> Value:
        """The value of a name after ``name += value``.  A tensor is changed in place, and keeps its dtype and shape."""
        if isinstance(new, _WITHOUT):
            return new
        if isinstance(old, Tensor) and old.facts is not None:
            return with_facts(new, old.facts)
        return with_facts(new, self._leaf(node.target, new))

    def settle(self, names: dict[str, Value]) -> None:
        """Gives the values that differ between two paths a symbol for each name."""
        for name, value in names.items():
            if value.facts is None or id(value.facts) in self._settled:
                continue
            if (settled := self._placed(name, value.facts)) is not value.facts:
                names[name] = with_facts(value, settled)

    def start_round(self, loop: ast.stmt, names: dict[str, Value]) -> None:
        """Forgets what is known about the names that a loop binds: at the start of a round they may hold either the
        value from before the loop, or one from the round before."""
        for name in self._function.names_bound_in(loop):
            if name in names:
                names[name] = self._rooted(names[name], Symbol(name, _position(loop)))

    # -- leaves -----------------------------------------------------------------------------------------------------

    def _rooted(self, value: Value, symbol: Symbol) -> Value:
        """A value as one of which nothing is known but its symbol."""
        if isinstance(value, _WITHOUT):
            return _bare(value)
        return with_facts(value, leaf_facts(symbol, value))

    def _leaf(self, node: ast.expr, value: Value, source: Source = Source.INFERRED) -> TensorFacts:
        key = node, leaf_kind(value), source
        known = self._leaves.get(key)
        if known is None:
            known = self._leaves[key] = leaf_facts(Symbol(_text(node), _position(node)), value, source)
        return known

    def _placed(self, name: str, facts: TensorFacts) -> TensorFacts:
        if id(facts) in self._settled:
            return facts
        joins = joins_in(facts)
        for join in joins:
            if join not in self._places:
                self._places[join] = Symbol(name, (*self._at, next(self._joins)))
        settled = placed(facts, self._places) if joins else facts
        self._settled[id(settled)] = settled
        return settled

    # -- expressions ------------------------------------------------------------------------------------------------

    def _of(self, node: ast.expr, value: Value) -> TensorFacts:
        if isinstance(node, ast.Name) and value.facts is not None:
            return self._placed(node.id, value.facts)
        if isinstance(value, Constant | Namespace) and isinstance(node, ast.Name | ast.Attribute):
            named = exact_dtype(self._index.dotted(node) or "")
            if named is not None:
                return replace(self._leaf(node, value), dtype=named)
        if isinstance(node, ast.NamedExpr | ast.IfExp | ast.BoolOp) and value.facts is not None:
            return self._placed(_text(node), value.facts)
        if isinstance(node, ast.Constant) and isinstance(node.value, complex):
            return replace(self._leaf(node, value), dtype=Exactly("complex64", number=True))
        if isinstance(node, ast.Attribute):
            return self._attribute(node, value)
        if isinstance(node, ast.Subscript):
            return self._part(node, value)
        if isinstance(node, ast.Call):
            return self._call(node, value)
        if isinstance(node, ast.BinOp):
            return self._operator(node, value, _BINARY.get(type(node.op)), (node.left, node.right))
        if isinstance(node, ast.UnaryOp):
            return self._operator(node, value, _UNARY.get(type(node.op)), (node.operand,))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._operator(node, value, _COMPARED.get(type(node.ops[0])), (node.left, node.comparators[0]))
        return self._leaf(node, value)

    def _given(self, node: ast.expr) -> Given | None:
        value = self._values.get(node)
        if value is None:
            return None
        return Given(node, value, value.facts or self._leaf(node, value))

    def _known(self, node: ast.expr) -> tuple[Value, TensorFacts] | None:
        given = self._given(node)
        return (given.value, given.facts) if given is not None else None

    def _operator(self, node: ast.expr, value: Value, name: str | None, parts: Sequence[ast.expr]) -> TensorFacts:
        given = [found for part in parts if (found := self._given(part)) is not None]
        leaf = self._leaf(node, value)
        if given and all(is_number(one.facts) for one in given):
            return number_facts(leaf)
        if name is None or len(given) < len(parts) or not any(isinstance(one.value, Tensor) for one in given):
            return leaf
        call = ast.Call(ast.Name("", ast.Load()), [], [])
        return result(TorchCall(name, call, False, tuple(given), {}, self._known, self._version), leaf)

    def _attribute(self, node: ast.Attribute, value: Value) -> TensorFacts:
        owner = self._given(node.value)
        leaf = self._leaf(node, value)
        if owner is None:
            return leaf
        if isinstance(owner.value, Tensor):
            return self._of_tensor(node, owner, leaf)
        if isinstance(node.value, ast.Call) and self._index.dotted(node.value.func) in LIMITS_OF_DTYPES:
            return number_facts(leaf)
        stable = node.attr not in self._stored and len(owner.facts.storage) == 1 and owner.value.facts is not None
        if not stable or isinstance(owner.value, PythonValue):
            return leaf
        (of,) = owner.facts.storage
        symbol = Symbol(f"{of.name}.{node.attr}", of.at)
        seen = seen_attribute(self._function, self._seen, node) if self._seen is not None else None
        if seen is not None and seen.tensor is not None and isinstance(value, Tensor) and agrees(value, seen.tensor):
            return observed_facts(symbol, seen.tensor, value)
        return leaf_facts(symbol, value)

    def _of_tensor(self, node: ast.Attribute, owner: Given, leaf: TensorFacts) -> TensorFacts:
        facts = owner.facts
        if node.attr in ("dtype", "device"):
            return replace(leaf, dtype=facts.dtype, device=facts.device)
        facts = replace(facts, is_new=False)
        if node.attr in ATTRIBUTES_OF_THE_SAME_SHAPE:
            same = node.attr == "data" or dtype_class_of(facts) in ("float", "int", "bool")
            grad = False if node.attr == "data" else facts.requires_grad
            return replace(facts, dtype=facts.dtype if same else leaf.dtype, requires_grad=grad)
        if node.attr in TRANSPOSED_ATTRIBUTES:
            return replace(facts, shape=leaf.shape, layout=leaf.layout)
        return leaf

    def _part(self, node: ast.Subscript, value: Value) -> TensorFacts:
        owner = self._given(node.value)
        leaf = self._leaf(node, value)
        if owner is None or not isinstance(owner.value, Tensor):
            return leaf
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        rank = fact_calls.of_part(owner.facts.rank, indices, self._known)
        masks = [index for index in indices if isinstance(self._values.get(index), Tensor)]
        masked = bool(masks)
        copies = masked and all(isinstance(index, ast.Slice) or index in masks for index in indices)
        step = self._step(owner, node, indices)
        zero_dim = isinstance(value, Tensor) and value.zero_dim
        return TensorFacts(
            owner.facts.dtype,
            frozenset() if zero_dim else leaf.shape if masked else step,
            fact_calls.named(rank, leaf.device) if rank is not None and not zero_dim else leaf.rank,
            made(leaf) if copies else owner.facts.storage,
            owner.facts.device,
            leaf.layout if masked else next(iter(step)),
            owner.facts.requires_grad,
            copies,
        )

    def _call(self, node: ast.Call, value: Value) -> TensorFacts:
        callee = self._values.get(node.func)
        leaf = self._leaf(node, value, self._source(callee, value))
        if not isinstance(value, Tensor):
            return leaf
        if isinstance(callee, Function | Module | Instance) and callee.info is not None:
            return made_by_function(value, leaf)
        starred = any(isinstance(one, ast.Starred) for one in node.args) or any(k.arg is None for k in node.keywords)
        called = callee.name if isinstance(callee, ClassOrObject | Namespace) else None
        if called is None or starred:
            return leaf
        method = isinstance(callee, Namespace) and callee.bound is not None
        if not called.startswith(("torch.Tensor.", "?.") if method else "torch.") or (
            method and not isinstance(node.func, ast.Attribute)
        ):
            return leaf
        name = called.rpartition(".")[2] if method else called.removeprefix("torch.").removeprefix("Tensor.")
        facts = result(self._torch_call(name, node, method, Given(node, value, leaf)), leaf)
        # The interpreter may know besides that the result is 0-d.
        is_scalar = value.zero_dim or (
            name in ("tensor", "as_tensor")
            and node.args
            and is_one_number(node.args[0], self._function, self._known, self._seen)
        )
        return replace(facts, shape=frozenset(), rank=SCALAR) if is_scalar and facts.shape else facts

    def _torch_call(self, name: str, node: ast.Call, method: bool, unknown: Given) -> TorchCall:
        nodes: list[ast.expr] = list(node.args)
        if method and isinstance(node.func, ast.Attribute):
            nodes.insert(0, node.func.value)
        given = [self._given(one) or replace(unknown, node=one) for one in nodes]
        named = {k.arg: found for k in node.keywords if k.arg and (found := self._given(k.value)) is not None}
        if not method and "input" in named:
            given.insert(0, named.pop("input"))
        dtype = named.get("dtype")
        asked = dtype_asked(dtype) or unknown.facts.dtype if dtype is not None else None
        device = named["device"].facts.device if "device" in named else None
        parts = [*node.args, *(k.value for k in node.keywords)]
        step = partial(self._step, given[0], node, parts, name) if given else None
        return TorchCall(name, node, method, tuple(given), named, self._known, self._version, asked, device, step)

    def _step(self, of: Given, node: ast.expr, parts: Sequence[ast.expr], name: str = "") -> frozenset[Symbol]:
        """The shape that a step makes of another one: the same shape for the same step, wherever it is."""
        at: list[int] = []
        others = [part for part in parts if part is not of.node]
        for part in (inner for other in others for inner in walk(other)):
            if isinstance(part, ast.Name) and (found := self._given(part)) is not None:
                at += found.facts.device.at
            elif isinstance(part, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
                at = list(_position(node))
                break
        text = ", ".join(map(ast.unparse, others))
        return frozenset({Symbol(f"{name} {text}", tuple(at), of=of.facts.shape)})

    def _source(self, callee: Value | None, returned: Value) -> Source:
        """How the class of what a call returns is known.  A module of torch without parameters is assumed to return
        floats: it may return what it is given.  What a function of the project returns is known as well as the
        weakest part of it."""
        if returned.facts is not None:
            return weakest_source(returned.facts.dtype)
        if isinstance(callee, Module):
            return Source.INFERRED if callee.name in self._api.modules_with_parameters else Source.ASSUMED
        return Source.ASSUMED if isinstance(callee, Function) and callee.info is not None else Source.INFERRED


def _bare(value: Value) -> Value:
    """A container without what is known about its elements: what it holds may have changed since."""
    if not isinstance(value, Container) or not (value.elements or value.element or value.keys):
        return value
    elements = tuple(map(_stripped, value.elements)) if value.elements is not None else None
    element = _stripped(value.element) if value.element is not None else None
    keys = tuple((k, _stripped(v)) for k, v in value.keys)
    before = (*(value.elements or ()), value.element, *(v for _, v in value.keys))
    after = (*(elements or ()), element, *(v for _, v in keys))
    if all(map(is_, before, after)):
        return value
    return replace(value, elements=elements, element=element, keys=keys)


def _stripped(value: Value) -> Value:
    return _bare(value) if value.facts is None else with_facts(_bare(value), None)


def _position(node: ast.AST) -> tuple[int, ...]:
    return (
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0),
        getattr(node, "end_col_offset", 0),
    )


def _text(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
