"""What the static half knows of a value: the lattice, its joins, and the words that rules use for it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from operator import attrgetter

from breakscan.analysis.interpreter.conditions import Condition
from breakscan.analysis.interpreter.fact_joins import join_facts
from breakscan.analysis.project.index import ClassInfo, FunctionInfo
from breakscan.facts import TensorFacts
from breakscan.source.walking import walk


class Sort(str, Enum):
    """The kinds of value that are distinguished."""

    TENSOR = "tensor"
    NUMBER = "number"
    """A Python number that was read out of a tensor."""
    SHAPE = "shape"
    """A ``torch.Size``, or a number taken from one."""
    CONSTANT = "constant"
    """A Python value that no tensor's contents decide."""
    NONE = "none"
    MODULE = "module"
    DRAWN = "drawn"
    """A Python number that Python's random module drew: Dynamo does not know it while it traces."""
    INSTANCE = "instance"
    CLASS = "class"
    FUNCTION = "function"
    NAMESPACE = "namespace"
    """Something imported: ``name`` is its dotted name."""
    CONTAINER = "container"
    UNKNOWN = "unknown"


class Sure(int, Enum):
    """How a value is known: proved, through one assumption, or by a guess."""

    POSSIBLE = 0
    LIKELY = 1
    CERTAIN = 2


# Never changed once made, though not frozen: a frozen dataclass takes three times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class Value:
    """One abstract value.

    ``dtype`` is ``float``, ``int``, ``bool`` or None (unknown); ``zero_dim`` None where unknown, ``one_dim`` means
    that an integer takes a single number out of it.  ``name`` is the
    dotted name of a class, function or import that is not in the file.  ``elements`` are those of a tuple or
    list of known length, ``element`` any element of a container, ``keys`` the entries under constant keys,
    ``mapping`` means that iterating gives keys.
    ``choices`` are the functions, classes or objects of which it is one; ``literal`` is the Python value of a
    constant where it is known, ``by_default`` means that a caller may give another one.  ``facts`` say more
    about a tensor, where they are asked for.
    """

    sort: Sort
    sure: Sure = Sure.CERTAIN
    dtype: str | None = None
    zero_dim: bool | None = None
    one_dim: bool = False
    intermediate: bool = False
    parameter: bool = False
    maybe_none: bool = False
    optional: Condition | None = None
    truth: bool | None = None
    name: str | None = None
    owner: ClassInfo | None = None
    function: FunctionInfo | None = None
    bound: Value | None = None
    closure: dict[str, Value] | None = field(default=None, compare=False, hash=False)
    elements: tuple[Value, ...] | None = None
    element: Value | None = None
    keys: tuple[tuple[str, Value], ...] = ()
    mapping: bool = False
    choices: tuple[Value, ...] = ()
    literal: str | int | float | None = None
    by_default: bool = False
    facts: TensorFacts | None = field(default=None, compare=False, hash=False)

    @property
    def is_tensor(self) -> bool:
        return self.sort is Sort.TENSOR

    def with_facts(self, facts: TensorFacts | None) -> Value:
        """The same value with other facts.  As ``dataclasses.replace``, which takes six times as long."""
        made = Value(*_FIELDS(self))
        made.facts = facts
        return made

    def words(self) -> frozenset[str]:
        """Every word of ``breakscan.rulebook.events.OPERANDS`` that is true of the value."""
        if self.sort is Sort.TENSOR:
            found = {"tensor"}
            found |= {f"tensor:{self.dtype}"} if self.dtype else set()
            found |= {"tensor:0d"} if self.zero_dim else set()
            found |= {"tensor:parameter"} if self.parameter else set()
            found |= {"tensor:intermediate"} if self.intermediate else set()
            return frozenset(found)
        if self.sort is Sort.CONTAINER and any(v.is_tensor for v in (*(self.elements or ()), self.item())):
            return frozenset({"container", "container:tensor"})
        if self.sort is Sort.INSTANCE and self.maybe_none:
            return frozenset({"unknown"})
        if self.literal is True:
            return frozenset({"constant", "true"})
        if self.literal is False:
            return frozenset({"constant", "false"})
        if self.sort is Sort.DRAWN:
            return frozenset({"constant", "number:drawn"})
        if self._captures():
            return frozenset({"unknown", "function:captures"})
        return frozenset({self.sort.value if self.sort in _WORDS else "unknown"})

    def _captures(self) -> bool:
        """Whether it is a function that uses what is no constant of the function around it."""
        if self.sort is not Sort.FUNCTION or self.function is None or self.closure is None:
            return False
        nodes = list(walk(self.function.node))
        used = {n.id for n in nodes if isinstance(n, ast.Name)}
        used -= {a.arg for a in nodes if isinstance(a, ast.arg)}
        return any(self.closure[name].sort in _NO_CONSTANTS for name in used & self.closure.keys())

    def at_most(self, sure: Sure) -> Value:
        return self if self.sure <= sure else replace(self, sure=sure)

    def iterated(self) -> Value:
        """What a ``for`` over the value gives."""
        return UNKNOWN if self.mapping or (self.keys and self.sort is Sort.CONTAINER) else self.item()

    def item(self) -> Value:
        """What indexing the value with something unknown gives."""
        if self.sort is Sort.TENSOR:
            single = True if self.one_dim else None
            return Value(
                Sort.TENSOR, self.sure, dtype=self.dtype, zero_dim=single, intermediate=True, optional=doubt(self)
            )
        if self.sort is Sort.SHAPE:
            return self
        if self.elements:
            return any_of(self.elements)
        if self.element is not None:
            return self.element
        if self.keys:
            return any_of(tuple(value for _, value in self.keys))
        return self if self.sort is Sort.CONSTANT else UNKNOWN


_FIELDS = attrgetter(*(one.name for one in fields(Value)))
_WORDS = frozenset(
    {Sort.NUMBER, Sort.SHAPE, Sort.CONSTANT, Sort.NONE, Sort.MODULE, Sort.INSTANCE, Sort.CONTAINER, Sort.CLASS}
)
_NO_CONSTANTS = frozenset({Sort.TENSOR, Sort.NUMBER, Sort.MODULE, Sort.INSTANCE})

UNKNOWN = Value(Sort.UNKNOWN, Sure.POSSIBLE)
CONSTANT = Value(Sort.CONSTANT)
NONE = Value(Sort.NONE)
SHAPE = Value(Sort.SHAPE)


def tensor(
    sure: Sure = Sure.CERTAIN, dtype: str | None = None, zero_dim: bool | None = None, one_dim: bool = False
) -> Value:
    """A tensor made in the region."""
    return Value(Sort.TENSOR, sure, dtype=dtype, zero_dim=zero_dim, one_dim=one_dim, intermediate=True)


def literal(value: object) -> Value:
    """What a literal of the source is."""
    key = type(value), value
    known = _LITERALS.get(key)
    if known is None:
        if value is None:
            known = NONE
        else:
            known = Value(Sort.CONSTANT, literal=value) if isinstance(value, str | int | float) else CONSTANT
        if len(_LITERALS) < MOST_LITERALS:
            _LITERALS[key] = known
    return known


MOST_LITERALS = 5_000
_LITERALS: dict[tuple[type, object], Value] = {}


def doubt(*values: Value) -> Condition | None:
    """The condition under which a value made of these is a tensor, where one of them may be something else."""
    return next((v.optional for v in values if v.is_tensor and v.optional and v.optional.asks_for_tensor), None)


def number(sure: Sure) -> Value:
    return Value(Sort.NUMBER, sure)


MOST_NESTED = 5
"""The limit of containers in containers. A function that wraps its result would otherwise produce ever deeper ones."""


def container(elements: list[Value]) -> Value:
    """A tuple or list display."""
    if any(_nests(element, MOST_NESTED - 1) for element in elements):
        return Value(Sort.CONTAINER)
    return Value(Sort.CONTAINER, elements=tuple(elements))


def _nests(value: Value, times: int) -> bool:
    """Returns whether containers are nested to at least this depth."""
    if not times:
        return value.sort is Sort.CONTAINER
    return value.sort is Sort.CONTAINER and any(_nests(part, times - 1) for part in value.elements or ())


def container_of(element: Value) -> Value:
    """A container of unknown length."""
    return Value(Sort.CONTAINER, element.sure, element=element)


def join(a: Value, b: Value) -> Value:
    """The least that is true of both."""
    if a.facts is not b.facts:
        joined = _join(a, b)
        return joined.with_facts(join_facts(a.facts, b.facts, joined.dtype))
    return _join(a, b)


def _join(a: Value, b: Value) -> Value:
    if a == b or b is a:
        return a
    if a.sort is b.sort:
        return _join_same(a, b)
    for one, other in ((a, b), (b, a)):
        if one.sort is Sort.NONE and other.sort is not Sort.UNKNOWN:
            return replace(other, maybe_none=True)
    for one, other in ((a, b), (b, a)):
        if one.sort is Sort.TENSOR:
            # A name that holds a tensor on one path seldom holds another kind of thing on the next.
            return replace(one.at_most(Sure.LIKELY), maybe_none=one.maybe_none or other.maybe_none)
    for one, other in ((a, b), (b, a)):
        if one.sort is Sort.DRAWN and other.sort in _NUMBERS:
            return one.at_most(Sure.LIKELY)
        if one.sort is Sort.NUMBER and other.sort in (Sort.CONSTANT, Sort.SHAPE):
            return one.at_most(Sure.LIKELY)
        if one.sort is Sort.SHAPE and other.sort is Sort.CONSTANT:
            return one
    return UNKNOWN


def join_all(values: list[Value] | tuple[Value, ...]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


def any_of(values: tuple[Value, ...]) -> Value:
    """Any element of a container: elements of unlike kinds tell nothing of one another, unlike values of one name."""
    if len({value.sort for value in values}) > 1 and not all(v.sort in _NUMBERS for v in values):
        return UNKNOWN
    return join_all(values)


_NUMBERS = frozenset({Sort.NUMBER, Sort.CONSTANT, Sort.SHAPE, Sort.DRAWN})


def _join_same(a: Value, b: Value) -> Value:
    if a.sort in _OBJECTS:
        return _join_objects(a, b)
    elements, element, keys = _join_parts(a, b) if a.sort is Sort.CONTAINER else (None, None, ())
    return replace(
        a,
        sure=min(a.sure, b.sure),
        dtype=a.dtype if a.dtype == b.dtype else None,
        zero_dim=a.zero_dim if a.zero_dim == b.zero_dim else None,
        one_dim=a.one_dim and b.one_dim,
        intermediate=a.intermediate and b.intermediate,
        parameter=a.parameter and b.parameter,
        maybe_none=a.maybe_none or b.maybe_none,
        optional=a.optional or b.optional,
        truth=a.truth if a.truth == b.truth else None,
        literal=a.literal if a.literal == b.literal and type(a.literal) is type(b.literal) else None,
        by_default=a.by_default or b.by_default,
        elements=elements,
        element=element,
        keys=keys,
        mapping=a.mapping or b.mapping,
    )


_OBJECTS = frozenset({Sort.MODULE, Sort.INSTANCE, Sort.CLASS, Sort.FUNCTION, Sort.NAMESPACE})


def _join_objects(a: Value, b: Value) -> Value:
    if a.name != b.name or a.owner is not b.owner or a.function is not b.function or a.choices != b.choices:
        return _either(a, b)
    return replace(a, sure=min(a.sure, b.sure), maybe_none=a.maybe_none or b.maybe_none)


_Parts = tuple[tuple[Value, ...] | None, Value | None, tuple[tuple[str, Value], ...]]


def _join_parts(a: Value, b: Value) -> _Parts:
    """The elements, the element and the keys of one of two containers."""
    other = dict(b.keys)
    keys = tuple((key, join(value, other[key])) for key, value in a.keys if key in other)
    if a.elements is not None and b.elements is not None and len(a.elements) == len(b.elements):
        return tuple(join(x, y) for x, y in zip(a.elements, b.elements, strict=True)), None, keys
    parts = tuple(part for part in (_any_element(a), _any_element(b)) if part is not None)
    return None, any_of(parts) if parts else None, keys


MOST_CHOICES = 8
"""The first of more stand for all: most differ little."""


def _either(a: Value, b: Value) -> Value:
    """One of several functions, classes, modules or objects."""
    choices = tuple(dict.fromkeys((*(a.choices or (a,)), *(b.choices or (b,)))))
    sure = min(a.sure, b.sure)
    if a.sort is not Sort.NAMESPACE and all(c.owner or c.function for c in choices):
        return Value(a.sort, sure, choices=choices[:MOST_CHOICES], maybe_none=a.maybe_none or b.maybe_none)
    return Value(Sort.MODULE, sure) if a.sort is Sort.MODULE else UNKNOWN


def _any_element(value: Value) -> Value | None:
    if value.elements:
        return any_of(value.elements)
    return value.element
