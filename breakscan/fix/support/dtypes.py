"""Whether two values have the same dtype for all possible dtypes of the values that they are computed from.

All possible combinations of dtypes are tried; ``breakscan.rulebook.torch_facts`` gives the result of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import cast

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.model.facts import Dtype, DtypeOf, Exactly, Input, ResultOf, Source, Symbol
from breakscan.rulebook.torch_facts.operators import Shape, operator
from breakscan.rulebook.torch_facts.promotion import (
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    Operand,
    Priority,
    dtype_class,
    promoted,
)

MOST_CASES = 20_000
MOST_ANSWERS = 4_096
"""How many answers are cached: rewrites of neighboring lines ask about the same values."""
_CLASSES = {"float": tuple(sorted(FLOATS)), "int": tuple(sorted(INTEGERS)), "bool": ("bool",)}
_ANY = tuple(dtype for dtype in DTYPES if dtype not in COMPLEX)
"""A tensor of unknown class is assumed not to be complex, as the interpreter's classes do not include complex."""
_NUMBERS = ("bool", "int64", "float32")
_DEFAULTS = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class KnownDtype:
    """A known fact: computing a dtype does not raise and, if ``is_`` is given, the dtype is that one."""

    dtype: Dtype
    is_: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is known about the dtypes of two values.

    ``same``: they are equal in every possible case.  ``raises``: they differ only in that computing one of them raises
    an error.  ``when`` names the cases in which they differ, as the end of a sentence that starts with "if"; None if
    nothing is known about a case, or the cases cannot be named.  ``source`` is the weakest one that the answer needs.
    """

    same: bool
    raises: bool
    when: str | None
    source: Source


def compare(version: str, one: Dtype, other: Dtype, given: Sequence[KnownDtype] = ()) -> Comparison:
    """Compares the dtypes of two values of a function, given some known facts."""
    return _compare(version, one, other, _about((one, other), given))


@lru_cache(maxsize=MOST_ANSWERS)
def _compare(version: str, one: Dtype, other: Dtype, given: tuple[KnownDtype, ...]) -> Comparison:
    source = min((leaf.source for leaf in _leaves((one, other))), default=Source.MEASURED)
    if one == other:
        return Comparison(True, False, None, source)
    differing: list[Choice] = []
    failing: list[Choice] = []
    cases = _cases(version, (one, other))
    if cases is None:
        return Comparison(False, False, None, source)
    left_of, right_of = cases.evaluate(one), cases.evaluate(other)
    for choice in cases.choices(given):
        left, right = left_of(choice), right_of(choice)
        if _RAISES in (left, right):
            failing.append(choice)
        elif left is None or right is None:
            return Comparison(False, False, None, source)
        elif left != right:
            differing.append(choice)
            if not cases.of_one_value:
                return Comparison(False, False, None, source)
    if not differing and not failing:
        return Comparison(True, False, None, source)
    return Comparison(False, not differing, _when([cases.dtypes(one) for one in differing or failing]), source)


def is_always(version: str, dtype: Dtype, wanted: str, given: Sequence[KnownDtype] = ()) -> bool:
    """Whether a dtype belongs to a class (``float``, ``int``, ``bool``) in every case."""
    return _is_always(version, dtype, wanted, _about((dtype,), given))


@lru_cache(maxsize=MOST_ANSWERS)
def _is_always(version: str, dtype: Dtype, wanted: str, given: tuple[KnownDtype, ...]) -> bool:
    return _holds_in_all(version, dtype, given, lambda found: found == _RAISES or dtype_class(found.dtype) == wanted)


def is_bool(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether a value is known to be a bool tensor: ``any`` and ``all`` of a uint8 tensor return uint8."""
    facts = context.fact(node).tensor
    return context.fact(node).dtype == "bool" and (
        facts is None or not isinstance(facts.dtype, ResultOf) or is_always(context.torch_version, facts.dtype, "bool")
    )


def never_raises(version: str, dtype: Dtype, given: Sequence[KnownDtype] = ()) -> bool:
    """Whether a dtype can be computed in every case."""
    return _never_raises(version, dtype, _about((dtype,), given))


@lru_cache(maxsize=MOST_ANSWERS)
def _never_raises(version: str, dtype: Dtype, given: tuple[KnownDtype, ...]) -> bool:
    return _holds_in_all(version, dtype, given, lambda found: found != _RAISES)


def _holds_in_all(
    version: str, dtype: Dtype, given: tuple[KnownDtype, ...], condition: Callable[[Operand], bool]
) -> bool:
    """Whether a dtype is known in every case, and a condition holds for it."""
    cases = _cases(version, (dtype,))
    if cases is None:
        return False
    if all(found is not None and condition(found) for found in cases.at_most(dtype)):
        return True
    return all(found is not None and condition(found) for found in cases.all_of(dtype, given))


def _about(dtypes: tuple[Dtype, ...], given: Sequence[KnownDtype]) -> tuple[KnownDtype, ...]:
    """The known facts that say something about some dtypes, each once: an answer does not depend on the others."""
    symbols = {leaf.symbol for leaf in _leaves(dtypes)}
    return tuple(one for one in dict.fromkeys(given) if {leaf.symbol for leaf in _leaves((one.dtype,))} <= symbols)


def of_one_dtype(context: RewriteContext, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two expressions are known to have the same dtype."""
    first, second = context.fact(one).tensor, context.fact(other).tensor
    if first is None or second is None:
        return False
    computed = [KnownDtype(facts.dtype) for facts in (first, second)]
    found = compare(context.torch_version, first.dtype, second.dtype, computed)
    return found.same and found.source is not Source.ASSUMED


_RAISES = Operand("")


Choice = tuple[int, ...]
"""Positions in lists of options: the default dtype, then a dtype for each input, then whether each shape is 0-d."""
_Evaluate = Callable[[Choice], Operand | None]
"""Gives the dtype of one value for a choice: ``_RAISES`` if computing it raises, None if it is not known."""


class _Cases:
    """All choices of dtypes for the inputs of a function, and of which inputs are 0-d."""

    def __init__(
        self, version: str, leaves: Mapping[Symbol, tuple[Operand, ...]], shapes: Mapping[Symbol, tuple[bool, ...]]
    ) -> None:
        self.version = version
        self._options: list[Sequence[str | Operand | bool]] = [_DEFAULTS, *leaves.values(), *shapes.values()]
        self._leaves = {symbol: number for number, symbol in enumerate(leaves, 1)}
        self._shapes = {symbol: number for number, symbol in enumerate(shapes, 1 + len(leaves))}
        self._evaluates: dict[int, _Evaluate] = {}
        """By the identity of a dtype: values share those they are computed from."""
        self._at_most: dict[tuple[int, str], frozenset[Operand | None]] = {}
        self.size = prod(map(len, self._options))
        self.of_one_value = len(leaves) == 1
        """Whether they depend on the dtype of a single value, so that words can tell them apart."""

    def choices(self, known: Sequence[KnownDtype]) -> Iterator[Choice]:
        """The choices in which the known facts, which are about the same values, hold."""
        conditions = [(self.evaluate(one.dtype), one.is_) for one in known]
        for choice in product(*(range(len(options)) for options in self._options)):
            if all(_holds(evaluate(choice), is_) for evaluate, is_ in conditions):
                yield choice

    def all_of(self, dtype: Dtype, known: Sequence[KnownDtype]) -> Iterator[Operand | None]:
        """The dtype of a value in each case in which the known facts hold."""
        return map(self.evaluate(dtype), self.choices(known))

    def at_most(self, dtype: Dtype) -> frozenset[Operand | None]:
        """The dtypes that a value can have, and perhaps others: as if its inputs had nothing in common.

        This takes no longer where there are more inputs, unlike all cases.
        """
        return frozenset().union(*(self._at_most_with(dtype, default) for default in _DEFAULTS))

    def _at_most_with(self, dtype: Dtype, default: str) -> frozenset[Operand | None]:
        known = self._at_most.get((id(dtype), default))
        if known is None:
            if isinstance(dtype, ResultOf):
                inputs = [self._at_most_given(one, default) for one in dtype.inputs]
                found = {_of_operands(self.version, dtype.operator, one, default) for one in product(*inputs)}
                known = frozenset(found)
            elif isinstance(dtype, DtypeOf):
                known = frozenset(cast(Sequence[Operand], self._options[self._leaves[dtype.symbol]]))
            else:
                known = frozenset({_of_exact(dtype)((_DEFAULTS.index(default),))})
            self._at_most[id(dtype), default] = known
        return known

    def _at_most_given(self, given: Input, default: str) -> set[Operand | None]:
        """What an operator can be given as one of its inputs."""
        flags = self._flags(given.shape)
        flat = {False} if flags is None else {all(one) for one in product(*(self._options[flag] for flag in flags))}
        found = self._at_most_with(given.dtype, default)
        return {_as_input(one, zero_dim) for one in found for zero_dim in flat}

    def evaluate(self, dtype: Dtype) -> _Evaluate:
        """How the dtype of a value follows from a choice."""
        known = self._evaluates.get(id(dtype))
        if known is None:
            if isinstance(dtype, ResultOf):
                known = self._of_result(dtype)
            elif isinstance(dtype, DtypeOf):
                known = self._of_leaf(dtype)
            else:
                known = _of_exact(dtype)
            self._evaluates[id(dtype)] = known
        return known

    def dtypes(self, choice: Choice) -> dict[Symbol, Operand]:
        return {symbol: cast(Operand, self._options[number][choice[number]]) for symbol, number in self._leaves.items()}

    def _of_leaf(self, dtype: DtypeOf) -> _Evaluate:
        number = self._leaves[dtype.symbol]
        options = cast(Sequence[Operand], self._options[number])
        return lambda choice: options[choice[number]]

    def _of_result(self, dtype: ResultOf) -> _Evaluate:
        leaves = {self._leaves[leaf.symbol] for leaf in _leaves((dtype,))}
        shapes = {self._shapes[symbol] for symbol in _shapes((dtype,)) if symbol in self._shapes}
        part_of = itemgetter(0, *sorted(leaves | shapes))
        inputs = [(self.evaluate(one.dtype), self._flags(one.shape)) for one in dtype.inputs]
        results: dict[object, Operand | None] = {}
        """For each part of a choice that the result depends on, so far."""

        def evaluate(choice: Choice) -> Operand | None:
            part = part_of(choice)
            if part in results:
                return results[part]
            operands = []
            for given, flags in inputs:
                zero_dim = flags is not None and all(choice[flag] for flag in flags)
                operands.append(_as_input(given(choice), zero_dim))
            made = results[part] = _of_operands(self.version, dtype.operator, operands, _DEFAULTS[choice[0]])
            return made

        return evaluate

    def _flags(self, shape: frozenset[Symbol]) -> tuple[int, ...] | None:
        """Where a choice says whether each of the symbols of a shape is 0-d; None if it never says so of one."""
        if not shape <= self._shapes.keys():
            return None
        return tuple(self._shapes[symbol] for symbol in shape)


_tensor = cache(Operand)
"""Cached, as making one takes long."""


def _as_input(found: Operand | None, zero_dim: bool) -> Operand | None:
    """What an operator is given, where the shape of the tensor is known to be 0-d or not."""
    if found is None or found == _RAISES or found.priority is Priority.NUMBER:
        return found
    return _tensor(found.dtype, Priority.ZERO_DIM if zero_dim else Priority.DIMENSIONED)


def _of_operands(version: str, name: str, operands: Sequence[Operand | None], default: str) -> Operand | None:
    """What an operator returns; like ``_Evaluate``."""
    known = []
    for one in operands:
        if one is None:
            return _whatever(version, name)
        if one == _RAISES:
            return one
        known.append(one)
    return _result(version, name, tuple(known), default)


def _of_exact(dtype: Exactly) -> _Evaluate:
    priority = Priority.NUMBER if dtype.number else Priority.DIMENSIONED
    if dtype.dtype != "default":
        found = Operand(dtype.dtype, priority)
        return lambda choice: found
    by_default = [Operand(name, priority) for name in _DEFAULTS]
    return lambda choice: by_default[choice[0]]


@cache
def _result(version: str, name: str, operands: tuple[Operand, ...], default: str) -> Operand | None:
    """The dtype that a torch operator returns; like ``_Evaluate``."""
    known = operator(version, name)
    if known is None or known.result not in ("tensor", "varies"):
        return None
    if all(one.priority is Priority.NUMBER for one in operands):
        return None
    together = promoted(operands, default)
    if together is None:
        return None
    refuses = True if together in known.refused else known.refuses(operands)
    if refuses is not False:
        return _RAISES if refuses else None
    results = known.results_by_dtype.get(together, ())
    if len(results) != 1:
        return None
    # The table was measured with float32 as the default dtype, to which integers are converted.
    converts = set(known.results_by_dtype.values()) == {("float32",)}
    floated = results[0] == "float32" and dtype_class(together) in ("int", "bool") and not converts
    return Operand(default if floated else results[0])


@cache
def _whatever(version: str, name: str) -> Operand | None:
    """The dtype that an operator of one tensor returns whatever it is given, as ``isnan`` does."""
    known = operator(version, name)
    if known is None or known.result != "tensor" or known.refused or Shape.FIRST not in (known.shapes or ()):
        return None
    results = set(known.results_by_dtype.values())
    return Operand(results.pop()[0]) if results == {("bool",)} else None


def _cases(version: str, dtypes: tuple[Dtype, ...]) -> _Cases | None:
    """The cases of some dtypes; None if there are too many."""
    leaves: dict[Symbol, tuple[Operand, ...]] = {}
    shapes: dict[Symbol, None] = {}
    for leaf in _leaves(dtypes):
        leaves[leaf.symbol] = min(leaves.get(leaf.symbol, _domain(leaf)), _domain(leaf), key=len)
    for symbol in _shapes(dtypes):
        shapes[symbol] = None
    several = len(leaves) > 1 or any(_numbers(domain) for domain in leaves.values())
    options = (False, True) if several else (False,)
    cases = _Cases(version, leaves, dict.fromkeys(shapes, options))
    return cases if cases.size <= MOST_CASES else None


def _holds(found: Operand | None, is_: str | None) -> bool:
    """Whether a known dtype can be the one that was found."""
    if found is None:
        return True
    return found != _RAISES and is_ in (None, found.dtype)


def _domain(leaf: DtypeOf) -> tuple[Operand, ...]:
    tensors = tuple(Operand(dtype) for dtype in (_CLASSES[leaf.among] if leaf.among is not None else _ANY))
    numbers = tuple(Operand(dtype, Priority.NUMBER) for dtype in _NUMBERS)
    return numbers if leaf.number else tensors if leaf.number is False else (*tensors, *numbers)


def _numbers(domain: tuple[Operand, ...]) -> bool:
    return any(one.priority is Priority.NUMBER for one in domain)


def _leaves(dtypes: Iterable[Dtype]) -> Iterator[DtypeOf]:
    for dtype in dtypes:
        if isinstance(dtype, DtypeOf):
            yield dtype
        elif isinstance(dtype, ResultOf):
            yield from _leaves(given.dtype for given in dtype.inputs)


def _shapes(dtypes: Iterable[Dtype]) -> Iterator[Symbol]:
    for dtype in dtypes:
        if isinstance(dtype, ResultOf):
            for given in dtype.inputs:
                yield from sorted(given.shape, key=lambda symbol: symbol.at)
            yield from _shapes(given.dtype for given in dtype.inputs)


def _when(cases: Sequence[Mapping[Symbol, Operand]]) -> str | None:
    """The cases in words, if they depend on a single value."""
    symbols = list(cases[0])
    if len(symbols) != 1 or not symbols[0].name:
        return None
    found = [case[symbols[0]].dtype for case in cases]
    classes = {dtype_class(dtype) for dtype in found}
    words = {"bool": "bool", "int": "an integer tensor", "float": "a float tensor", "complex": "complex"}
    said = [text for name, text in words.items() if name in classes]
    return f"`{symbols[0].name}` is {' or '.join(said)}"
