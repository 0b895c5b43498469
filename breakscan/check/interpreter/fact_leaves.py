"""The facts of values of which only the kind is known, and of what is made from these."""

from __future__ import annotations

from dataclasses import replace

from breakscan.check.interpreter.fact_calls import made
from breakscan.check.interpreter.values import PythonValue, Tensor, Value, literal_of
from breakscan.model.facts import Dtype, DtypeOf, Exactly, ResultOf, Source, Symbol, TensorFacts, opaque
from breakscan.rulebook.torch_facts.promotion import python_number


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
