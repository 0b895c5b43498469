"""Joins what is known about a tensor on two paths."""

from __future__ import annotations

from itertools import count

from breakscan.model.facts import Dtype, DtypeOf, Exactly, Input, RankBounds, ResultOf, Symbol, TensorFacts, opaque

_JOINS = count(1)


def join_facts(one: TensorFacts | None, other: TensorFacts | None, among: str | None) -> TensorFacts | None:
    """The least that is true of both, where the dtypes of both are of the class ``among``.

    What differs gets a symbol that nothing else has: see :func:`is_join`.
    """
    if one is other or one == other:
        return one
    symbol = Symbol("", (-next(_JOINS),))
    if one is None or other is None:
        return opaque(symbol, DtypeOf(symbol, number=None))
    requires_grad = one.requires_grad if one.requires_grad == other.requires_grad else None
    return TensorFacts(
        _dtypes(one.dtype, other.dtype) or DtypeOf(symbol, among, _number(one, other)),
        one.shape if one.shape == other.shape else frozenset({symbol}),
        _ranks(one.rank, other.rank, symbol),
        one.storage | other.storage,
        one.device if one.device == other.device else symbol,
        one.layout if one.layout == other.layout else symbol,
        requires_grad,
        one.is_new and other.is_new,
    )


def is_join(symbol: Symbol) -> bool:
    """Whether a symbol stands for one of several values, and has no place in the code yet."""
    return bool(symbol.at) and symbol.at[0] < 0


def _dtypes(one: Dtype, other: Dtype) -> Dtype | None:
    """The dtype of two values that have the same one."""
    if one == other:
        return one
    if isinstance(one, DtypeOf) and isinstance(other, DtypeOf) and one.symbol == other.symbol:
        among = one.among if one.among == other.among else None
        number = one.number if one.number == other.number else None
        return DtypeOf(one.symbol, among, number, min(one.source, other.source))
    if isinstance(one, ResultOf) and isinstance(other, ResultOf):
        if one.operator != other.operator or len(one.inputs) != len(other.inputs):
            return None
        inputs = []
        for left, right in zip(one.inputs, other.inputs, strict=True):
            dtype = _dtypes(left.dtype, right.dtype)
            if dtype is None or left.shape != right.shape:
                return None
            inputs.append(Input(dtype, left.shape))
        return ResultOf(one.operator, tuple(inputs))
    return None


def _number(one: TensorFacts, other: TensorFacts) -> bool | None:
    found = {_is_number(facts.dtype) for facts in (one, other)}
    return found.pop() if len(found) == 1 else None


def _is_number(dtype: Dtype) -> bool | None:
    return dtype.number if isinstance(dtype, DtypeOf | Exactly) else False


def _ranks(one: RankBounds, other: RankBounds, symbol: Symbol) -> RankBounds:
    if one == other:
        return one
    return RankBounds(
        min(one.least, other.least),
        None if one.most is None or other.most is None else max(one.most, other.most),
        (one.over & other.over) | {symbol},
        (one.under & other.under) | {symbol},
        one.below & other.below,
    )


def placed(facts: TensorFacts, symbols: dict[Symbol, Symbol]) -> TensorFacts:
    """The facts with other symbols for those of joins."""

    # Symbols are hashed slowly, and few are joins.
    def one(symbol: Symbol) -> Symbol:
        return symbols.get(symbol, symbol) if is_join(symbol) else symbol

    def many(found: frozenset[Symbol]) -> frozenset[Symbol]:
        return frozenset(map(one, found)) if any(map(is_join, found)) else found

    dtype = facts.dtype
    if isinstance(dtype, DtypeOf):
        dtype = DtypeOf(one(dtype.symbol), dtype.among, dtype.number, dtype.source)
    rank = facts.rank
    return TensorFacts(
        dtype,
        many(facts.shape),
        RankBounds(rank.least, rank.most, many(rank.over), many(rank.under), many(rank.below)),
        many(facts.storage),
        one(facts.device),
        one(facts.layout),
        facts.requires_grad,
        facts.is_new,
    )


def joins_in(facts: TensorFacts) -> list[Symbol]:
    """The symbols of joins in some facts."""
    own = [facts.dtype.symbol] if isinstance(facts.dtype, DtypeOf) else []
    found = [*own, *facts.shape, *facts.rank.over, *facts.rank.under, *facts.storage, facts.device, facts.layout]
    return list(dict.fromkeys(filter(is_join, found)))
