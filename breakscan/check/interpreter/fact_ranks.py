"""Bounds for the number of dimensions of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from breakscan.check.interpreter.values import Constant, PythonValue, Tensor, Value, literal_of
from breakscan.model.facts import RankBounds, Symbol, TensorFacts
from breakscan.rulebook.torch_facts.not_measured import DIMENSIONS_OF_NEW, MADE_FROM_SIZES, SHAPED_LIKE_THE_ARGUMENT

Known = Callable[[ast.expr], "tuple[Value, TensorFacts] | None"]


def named(rank: RankBounds, symbol: Symbol) -> RankBounds:
    """The rank of a value that has a symbol."""
    if rank.most is not None and rank.most == rank.least:
        return rank
    return RankBounds(rank.least, rank.most, rank.over | {symbol}, rank.under | {symbol}, rank.below)


def largest(ranks: Sequence[RankBounds]) -> RankBounds:
    """The rank of a broadcast: that of the operand with the most dimensions."""
    if not ranks:
        return RankBounds()
    sized = [one for one in ranks if one.most != 0] or list(ranks)
    mosts = [one.most for one in ranks if one.most is not None]
    return RankBounds(
        max(one.least for one in ranks),
        max(mosts) if len(mosts) == len(ranks) else None,
        frozenset().union(*(one.over for one in ranks)),
        frozenset.intersection(*(one.under for one in sized)),
        frozenset.intersection(*(one.below for one in sized)),
    )


def with_fewer(base: RankBounds, taken: int | None) -> RankBounds:
    """The rank after some dimensions were taken away: ``taken`` of them, or None for at least one."""
    least = max(base.least - taken, 0) if taken is not None else 0
    most = None if base.most is None else max(base.most - (taken or 1), 0)
    return RankBounds(least, most, frozenset(), base.under, base.below | base.under)


def of_part(base: RankBounds, indices: Sequence[ast.expr], known: Known) -> RankBounds | None:
    """The rank of ``x[indices]``: every number takes one dimension away, a slice none."""
    taken = 0
    for index in indices:
        if isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value is ...):
            continue
        found = known(index)
        if found is None or not isinstance(found[0], PythonValue) or isinstance(literal_of(found[0]), bool | str):
            return None
        if isinstance(found[0], Constant) and not isinstance(found[0].literal, int):
            return None
        taken += 1
    return with_fewer(base, taken) if taken else base


def of_sizes(sizes: Sequence[ast.expr], known: Known) -> RankBounds | None:
    """The rank of a tensor with the sizes that a call gives: ``view(2, -1)``, ``zeros((2, 3))``, ``zeros(x.shape)``."""
    if any(isinstance(size, ast.Starred) for size in sizes) or not sizes:
        return None
    if len(sizes) > 1:
        return RankBounds(len(sizes), len(sizes))
    size = sizes[0]
    if isinstance(size, ast.Tuple | ast.List):
        return (
            None
            if any(isinstance(one, ast.Starred) for one in size.elts)
            else RankBounds(len(size.elts), len(size.elts))
        )
    owner = size.func if isinstance(size, ast.Call) and not size.args else size
    if isinstance(owner, ast.Attribute) and owner.attr == ("size" if isinstance(size, ast.Call) else "shape"):
        of = known(owner.value)
        return of[1].rank if of is not None and isinstance(of[0], Tensor) else None
    found = known(size)
    if found is not None and isinstance(literal_of(found[0]), int):
        return RankBounds(1, 1)
    return None


def of_method(name: str, node: ast.Call, base: RankBounds, known: Known) -> RankBounds | None:
    """The rank of the result of a method that is asked for sizes or dimensions."""
    keywords = {keyword.arg for keyword in node.keywords}
    if name in ("view", "reshape"):
        return None if keywords else of_sizes(node.args, known)
    if name in ("flatten", "ravel"):
        return None if node.args or keywords else RankBounds(1, 1)
    if name in SHAPED_LIKE_THE_ARGUMENT and len(node.args) == 1:
        other = known(node.args[0])
        return other[1].rank if other is not None else None
    if name == "expand" and not keywords:
        return RankBounds(max(base.least, len(node.args)), None, base.over)
    if name == "unsqueeze":
        return RankBounds(base.least + 1, None if base.most is None else base.most + 1, base.over)
    if name == "squeeze":
        return RankBounds(0, base.most, frozenset(), base.under, base.below)
    if name.startswith("new_"):
        return of_sizes(node.args[:1] if name == "new_full" else node.args, known)
    return None


def of_factory(name: str, node: ast.Call, known: Known) -> RankBounds | None:
    """The rank of a tensor that a function makes from sizes or numbers."""
    if name in DIMENSIONS_OF_NEW:
        return RankBounds(DIMENSIONS_OF_NEW[name], DIMENSIONS_OF_NEW[name])
    by_name = [keyword.value for keyword in node.keywords if keyword.arg == "size"]
    if name in MADE_FROM_SIZES:
        return of_sizes(by_name or (node.args[:1] if name == "full" else node.args), known)
    return None
