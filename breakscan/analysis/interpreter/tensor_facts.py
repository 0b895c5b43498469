"""What is known about the tensors of one function while it is interpreted: dtype, shape, storage, device.

It is computed only where it is asked for, which is for rewrites.  The interpreter carries it in ``Value.facts``, so
that it follows assignments, branches and loops.  Parameters, attributes and the results of other calls are
symbols; the facts about all other values are terms over these.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from breakscan.analysis.interpreter import fact_ranks
from breakscan.analysis.interpreter.fact_calls import Given, TorchCall, dtype_asked, exact_dtype, made, result
from breakscan.analysis.interpreter.fact_joins import joins_in, placed
from breakscan.analysis.interpreter.values import Sort, Value
from breakscan.analysis.project.index import FunctionInfo
from breakscan.facts import SCALAR, Dtype, DtypeOf, Exactly, ResultOf, Source, Symbol, TensorFacts, opaque
from breakscan.source.walking import own_nodes
from breakscan.torch_facts.not_measured import (
    ATTRIBUTES_OF_THE_SAME_SHAPE,
    LIMITS_OF_DTYPES,
    TRANSPOSED_ATTRIBUTES,
)
from breakscan.torch_facts.promotion import python_number
from breakscan.torch_facts.table import TorchApi

_WITHOUT = frozenset({Sort.CONTAINER, Sort.NONE, Sort.FUNCTION, Sort.CLASS})
_NUMBERS = frozenset({Sort.CONSTANT, Sort.SHAPE, Sort.NUMBER, Sort.DRAWN})
_CALLED_BY_CLASS = frozenset({Sort.MODULE, Sort.INSTANCE})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
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
        self._stored = {
            one.attr for one in own_nodes(node) if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load)
        }
        for name, value in names.items():
            names[name] = self._rooted(value, Symbol(name, (*self._at, 0)))

    # -- what the interpreter calls ---------------------------------------------------------------------------------

    def evaluated(self, node: ast.expr, value: Value) -> Value:
        """The value of an expression, with what is known about it.  Its parts have been evaluated just before."""
        if value.sort in _WITHOUT:
            if not isinstance(node, ast.Tuple | ast.List):
                value = _bare(value)
        else:
            value = value.with_facts(self._of(node, value))
        self._values[node] = value
        return value

    def bound(self, target: ast.expr, value: Value) -> Value:
        """The value that a name is bound to."""
        if value.facts is not None or value.sort in _WITHOUT:
            return value
        return value.with_facts(self._leaf(target, value))

    def returned(self, node: ast.expr | None, value: Value) -> Value:
        """The value that a function returns.

        What a name or an attribute holds, something else may hold, too; a decorator may keep it.
        """
        made_here = isinstance(node, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript)
        if value.facts is None or (made_here and not self._decorated):
            return value
        return value.with_facts(replace(value.facts, is_new=False))

    def augmented(self, node: ast.AugAssign, old: Value, new: Value) -> Value:
        """The value of a name after ``name += value``.  A tensor is changed in place, and keeps its dtype and shape."""
        if new.sort in _WITHOUT:
            return new
        if old.is_tensor and old.facts is not None:
            return new.with_facts(old.facts)
        return new.with_facts(self._leaf(node.target, new))

    def settle(self, names: dict[str, Value]) -> None:
        """Gives the values that differ between two paths a symbol for each name."""
        for name, value in names.items():
            if value.facts is not None and joins_in(value.facts):
                names[name] = value.with_facts(self._placed(name, value.facts))

    def start_round(self, loop: ast.stmt, names: dict[str, Value]) -> None:
        """Forgets what is known about the names that a loop binds: at the start of a round they may hold either the
        value from before the loop, or one from the round before."""
        for name in {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}:
            if name in names:
                names[name] = self._rooted(names[name], Symbol(name, _position(loop)))

    # -- leaves -----------------------------------------------------------------------------------------------------

    def _rooted(self, value: Value, symbol: Symbol) -> Value:
        """A value as one of which nothing is known but its symbol."""
        if value.sort in _WITHOUT:
            return _bare(value)
        return value.with_facts(_leaf(symbol, value))

    def _leaf(self, node: ast.expr, value: Value, source: Source = Source.INFERRED) -> TensorFacts:
        return _leaf(Symbol(_text(node), _position(node)), value, source)

    def _placed(self, name: str, facts: TensorFacts) -> TensorFacts:
        joins = joins_in(facts)
        for join in joins:
            if join not in self._places:
                self._places[join] = Symbol(name, (*self._at, next(self._joins)))
        return placed(facts, self._places) if joins else facts

    # -- expressions ------------------------------------------------------------------------------------------------

    def _of(self, node: ast.expr, value: Value) -> TensorFacts:
        if value.sort in (Sort.CONSTANT, Sort.NAMESPACE) and isinstance(node, ast.Name | ast.Attribute):
            named = exact_dtype(self._index.dotted(node) or "")
            if named is not None:
                return replace(self._leaf(node, value), dtype=named)
        if isinstance(node, ast.Name):
            return self._leaf(node, value) if value.facts is None else self._placed(node.id, value.facts)
        if isinstance(node, ast.NamedExpr | ast.IfExp | ast.BoolOp) and value.facts is not None:
            return self._placed(_text(node), value.facts)
        if isinstance(node, ast.Constant):
            leaf = self._leaf(node, value)
            is_complex = isinstance(node.value, complex)
            return replace(leaf, dtype=Exactly("complex64", number=True)) if is_complex else leaf
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
        if given and all(_is_number(one.facts) for one in given):
            return _number(leaf)
        if name is None or len(given) < len(parts) or not any(one.value.is_tensor for one in given):
            return leaf
        call = ast.Call(ast.Name("", ast.Load()), [], [])
        return result(TorchCall(name, call, False, tuple(given), {}, self._known, self._version), leaf)

    def _attribute(self, node: ast.Attribute, value: Value) -> TensorFacts:
        owner = self._given(node.value)
        leaf = self._leaf(node, value)
        if owner is None:
            return leaf
        if owner.value.is_tensor:
            return self._of_tensor(node, owner, leaf)
        if isinstance(node.value, ast.Call) and self._index.dotted(node.value.func) in LIMITS_OF_DTYPES:
            return _number(leaf)
        stable = node.attr not in self._stored and len(owner.facts.storage) == 1 and owner.value.facts is not None
        if not stable or owner.value.sort in _NUMBERS:
            return leaf
        (of,) = owner.facts.storage
        return _leaf(Symbol(f"{of.name}.{node.attr}", of.at), value)

    def _of_tensor(self, node: ast.Attribute, owner: Given, leaf: TensorFacts) -> TensorFacts:
        facts = owner.facts
        if node.attr in ("dtype", "device"):
            return replace(leaf, dtype=facts.dtype, device=facts.device)
        facts = replace(facts, is_new=False)
        if node.attr in ATTRIBUTES_OF_THE_SAME_SHAPE:
            same = node.attr == "data" or _class(facts) in ("float", "int", "bool")
            grad = False if node.attr == "data" else facts.requires_grad
            return replace(facts, dtype=facts.dtype if same else leaf.dtype, requires_grad=grad)
        if node.attr in TRANSPOSED_ATTRIBUTES:
            return replace(facts, shape=leaf.shape, layout=leaf.layout)
        return leaf

    def _part(self, node: ast.Subscript, value: Value) -> TensorFacts:
        owner = self._given(node.value)
        leaf = self._leaf(node, value)
        if owner is None or not owner.value.is_tensor:
            return leaf
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        rank = fact_ranks.of_part(owner.facts.rank, indices, self._known)
        masked = any((found := self._given(index)) is not None and found.value.is_tensor for index in indices)
        copies = masked and all(
            isinstance(index, ast.Slice) or ((found := self._given(index)) is not None and found.value.is_tensor)
            for index in indices
        )
        step = self._step(owner, node, indices)
        return TensorFacts(
            owner.facts.dtype,
            frozenset() if value.zero_dim else leaf.shape if masked else step,
            fact_ranks.named(rank, leaf.device) if rank is not None and not value.zero_dim else leaf.rank,
            made(leaf) if copies else owner.facts.storage,
            owner.facts.device,
            leaf.layout if masked else next(iter(step)),
            owner.facts.requires_grad,
            copies,
        )

    def _call(self, node: ast.Call, value: Value) -> TensorFacts:
        callee = self._values.get(node.func)
        leaf = self._leaf(node, value, self._source(callee, value))
        starred = any(isinstance(one, ast.Starred) for one in node.args) or any(k.arg is None for k in node.keywords)
        if callee is None or not value.is_tensor:
            return leaf
        if callee.function is not None or (callee.owner is not None and callee.sort in _CALLED_BY_CLASS):
            return _made_by_function(value, leaf)
        if callee.name is None or starred:
            return leaf
        method = (isinstance(node.func, ast.Attribute) and not callee.name.startswith("torch.")) or (
            callee.name.startswith("torch.Tensor.") and callee.bound is not None
        )
        if not callee.name.startswith(("torch.Tensor.", "?.") if method else "torch."):
            return leaf
        nodes: list[ast.expr] = list(node.args)
        if method and isinstance(node.func, ast.Attribute):
            nodes.insert(0, node.func.value)
        given = [self._given(one) or Given(one, value, leaf) for one in nodes]
        named = {k.arg: found for k in node.keywords if k.arg and (found := self._given(k.value)) is not None}
        if not method and "input" in named:
            given.insert(0, named.pop("input"))
        name = callee.name.rpartition(".")[2] if method else callee.name.removeprefix("torch.").removeprefix("Tensor.")
        dtype = named.get("dtype")
        asked = dtype_asked(dtype) or leaf.dtype if dtype is not None else None
        device = named["device"].facts.device if "device" in named else None
        step = self._step(given[0], node, [*node.args, *(k.value for k in node.keywords)], name) if given else None
        call = TorchCall(name, node, method, tuple(given), named, self._known, self._version, asked, device, step)
        return self._whole(value, result(call, leaf))

    def _step(self, of: Given, node: ast.expr, parts: Sequence[ast.expr], name: str = "") -> frozenset[Symbol]:
        """The shape that a step makes of another one: the same shape for the same step, wherever it is."""
        at: list[int] = []
        others = [part for part in parts if part is not of.node]
        for part in [inner for other in others for inner in ast.walk(other)]:
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
            return _weakest(returned.facts.dtype)
        if callee is not None and callee.sort is Sort.MODULE:
            return Source.INFERRED if callee.name in self._api.modules_with_parameters else Source.ASSUMED
        return Source.ASSUMED if callee is not None and callee.function is not None else Source.INFERRED

    def _whole(self, value: Value, facts: TensorFacts) -> TensorFacts:
        """With what the interpreter knows besides: that a result is 0-d."""
        if value.zero_dim and facts.shape:
            return replace(facts, shape=frozenset(), rank=SCALAR)
        return facts


def _leaf(symbol: Symbol, value: Value, source: Source = Source.INFERRED) -> TensorFacts:
    """The facts about a value of which only the class is known."""
    known = value.literal
    if isinstance(known, bool | int | float) and value.sort is Sort.CONSTANT:
        return opaque(symbol, Exactly(python_number(known).dtype, number=True), frozenset())
    if value.sort in _NUMBERS:
        return opaque(symbol, DtypeOf(symbol, None, number=True), frozenset())
    if not value.is_tensor:
        return opaque(symbol, DtypeOf(symbol, None, number=None))
    shape = frozenset[Symbol]() if value.zero_dim else None
    grad = False if value.dtype in ("int", "bool") else None
    dtype = DtypeOf(symbol, value.dtype, number=False, source=source)
    return replace(opaque(symbol, dtype, shape), requires_grad=grad)


def _made_by_function(value: Value, leaf: TensorFacts) -> TensorFacts:
    """The facts about what a function of the project returns: whether every ``return`` makes a tensor."""
    if value.facts is None or not value.facts.is_new:
        return leaf
    return replace(leaf, storage=made(leaf), is_new=True)


def _weakest(dtype: Dtype) -> Source:
    """The weakest source that a dtype rests on."""
    if isinstance(dtype, ResultOf):
        return min((_weakest(one.dtype) for one in dtype.inputs), default=Source.INFERRED)
    return dtype.source


def _is_number(facts: TensorFacts) -> bool:
    return isinstance(facts.dtype, DtypeOf | Exactly) and facts.dtype.number is True


def _number(leaf: TensorFacts) -> TensorFacts:
    symbol = leaf.device
    return opaque(symbol, DtypeOf(symbol, None, number=True), frozenset())


def _class(facts: TensorFacts) -> str | None:
    return facts.dtype.among if isinstance(facts.dtype, DtypeOf) else None


def _bare(value: Value) -> Value:
    """A container without what is known about its elements: what it holds may have changed since."""
    if value.sort is not Sort.CONTAINER:
        return value
    elements = tuple(map(_stripped, value.elements)) if value.elements is not None else None
    element = _stripped(value.element) if value.element is not None else None
    return replace(value, elements=elements, element=element, keys=tuple((k, _stripped(v)) for k, v in value.keys))


def _stripped(value: Value) -> Value:
    return _bare(value) if value.facts is None else _bare(value).with_facts(None)


def _position(node: ast.AST) -> tuple[int, ...]:
    return (
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0),
        getattr(node, "end_col_offset", 0),
    )


def _text(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
