"""The kinds of abstract values, the words that rules use for them, their joins, and the arguments of calls. Modules
that name many of them import this one as ``av``."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, TypeVar

from breakscan.check.project.index import ClassInfo, FunctionInfo
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import Argument
from breakscan.rulebook.torch_facts.not_measured import RECURRENT_MODULES


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments.  ``spread`` means that ``*`` or ``**`` may have given more."""

    positional: "list[Value]"
    named: "dict[str, Value]"
    spread: bool = False

    def get(self, index: int, name: str | None = None) -> "Value | None":
        if name is not None and name in self.named:
            return self.named[name]
        return self.positional[index] if index < len(self.positional) else None

    def values(self) -> "list[Value]":
        return [*self.positional, *self.named.values()]

    def patterns(self) -> tuple[Argument, ...]:
        listed = [Argument(i, None, value.words()) for i, value in enumerate(self.positional)]
        return (*listed, *(Argument(None, name, value.words()) for name, value in self.named.items()))

    def with_receiver(self, receiver: "Value") -> "Arguments":
        """The arguments of the function that a method is, with its receiver first."""
        return Arguments([receiver, *self.positional], self.named, self.spread)


def has_outcome(test: ast.expr, outcome: bool) -> Condition:
    """The condition that a test has an outcome; one comparison is turned round rather than negated."""
    if not outcome and isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        test, outcome = ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators), True
    return Condition(ConditionKind.TEST, ast.unparse(test), outcome)


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Eq: ast.NotEq, ast.In: ast.NotIn, ast.Is: ast.IsNot}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}


class Sure(int, Enum):
    """The certainty of a value: proved, through one assumption, or by a guess."""

    POSSIBLE = 0
    LIKELY = 1
    CERTAIN = 2


# Values are never changed once made, though not frozen: a frozen dataclass takes three times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class Value:
    """The base class of values; each kind of value is a subclass. ``maybe_none`` means that it is None on some path,
    ``optional`` is the condition under which it is of this kind."""

    kind: ClassVar[str]
    says: ClassVar[frozenset[str] | None] = None
    """Its words, where they are not its kind."""

    sure: Sure = Sure.CERTAIN
    maybe_none: bool = False
    optional: Condition | None = None

    def words(self) -> frozenset[str]:
        """Every word of ``breakscan.rulebook.events.OPERANDS`` that is true of the value."""
        return self.says or frozenset({self.kind})


@dataclass(slots=True, unsafe_hash=True)
class Unknown(Value):
    kind = "unknown"

    sure: Sure = Sure.POSSIBLE


@dataclass(slots=True, unsafe_hash=True)
class Tensor(Value):
    """``dtype`` is ``float``, ``int``, ``bool`` or None (unknown); ``zero_dim`` is None where unknown.  ``one_dim``
    means that an integer takes a single number out of it, ``intermediate`` that the region made it, ``array`` that it
    is a NumPy array, which Dynamo traces as a tensor, ``by_data`` that its first size depends on what is in a tensor
    (only known where code is exported)."""

    kind = "tensor"

    dtype: str | None = None
    zero_dim: bool | None = None
    one_dim: bool = False
    intermediate: bool = False
    parameter: bool = False
    array: bool = False
    by_data: bool = False

    def words(self) -> frozenset[str]:
        found = {"tensor"}
        found |= {f"tensor:{self.dtype}"} if self.dtype else set()
        found |= {"tensor:0d"} if self.zero_dim else set()
        found |= {"tensor:parameter"} if self.parameter else set()
        found |= {"tensor:by-data"} if self.by_data else set()
        found |= {"tensor:intermediate" if self.intermediate else "tensor:given"}
        return frozenset(found)


class PythonValue(Value):
    """A number, a string or another value of Python that is no object of the program."""

    __slots__ = ()


class TensorNumber(PythonValue):
    """A Python number that was read out of a tensor."""

    __slots__ = ()

    kind = "number"


class ArrayNumber(PythonValue):
    """A result of NumPy for Python numbers, where Dynamo knows the number while it traces: it can be converted, but
    a test of it is one of a tensor."""

    __slots__ = ()

    kind = "array"
    says = frozenset({"unknown"})


class DrawnNumber(PythonValue):
    """A Python number that Python's random module drew: Dynamo does not know it while it traces."""

    __slots__ = ()

    kind = "drawn"
    says = frozenset({"constant", "number:drawn"})


class Pointer(PythonValue):
    """The result of ``data_ptr()``: Dynamo passes it on, but cannot compute with it or compare it while it traces."""

    __slots__ = ()

    kind = "pointer"
    says = frozenset({"constant", "number:pointer"})


class Size(PythonValue):
    """A ``torch.Size``, or a number taken from one."""

    __slots__ = ()

    kind = "shape"


class DataSize(Size):
    """A size that depends on what is in a tensor, or what is computed from one."""

    __slots__ = ()
    says = frozenset({"shape", "shape:by-data"})


@dataclass(slots=True, unsafe_hash=True)
class Constant(PythonValue):
    """A Python value that no tensor's contents decide.  ``literal`` is the value where it is known, and ``by_default``
    means that a caller may give another one; ``truth`` is what a test of it gives."""

    kind = "constant"

    literal: str | int | float | None = None
    by_default: bool = False
    truth: bool | None = None

    def words(self) -> frozenset[str]:
        if isinstance(self.literal, bool):
            return frozenset({"constant", "true" if self.literal else "false"})
        return frozenset({"constant"})


class NoneValue(Value):
    __slots__ = ()

    kind = "none"


@dataclass(slots=True, unsafe_hash=True)
class Container(Value):
    """``elements`` are those of a tuple or list of known length, ``element`` is any element, ``keys`` are the entries
    under constant keys.  ``mapping`` means that iterating gives keys."""

    kind = "container"

    elements: tuple[Value, ...] | None = None
    element: Value | None = None
    keys: tuple[tuple[str, Value], ...] = ()
    mapping: bool = False

    def words(self) -> frozenset[str]:
        if self.elements:
            holds_tensor = any(isinstance(part, Tensor) for part in self.elements)
        elif self.element is not None:
            holds_tensor = isinstance(self.element, Tensor)
        else:
            holds_tensor = bool(self.keys) and all(isinstance(part, Tensor) for _, part in self.keys)
        return frozenset({"container", "container:tensor"} if holds_tensor else {"container"})


@dataclass(slots=True, unsafe_hash=True)
class NamedTupleClass(Value):
    """The class that ``collections.namedtuple`` returns.  ``names`` are the fields, in order."""

    kind = "unknown"

    names: tuple[str, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Namespace(Value):
    """A value known by its dotted name alone: something imported, a builtin, or the method of ``bound``."""

    kind = "namespace"

    name: str = ""
    bound: Value | None = None

    def words(self) -> frozenset[str]:
        return frozenset({"class" if self.name == "torch.Tensor" else "unknown"})


@dataclass(slots=True, unsafe_hash=True)
class Defined(Value):
    """A definition of the program or of a library.  ``choices`` are the values of which it is one."""

    choices: tuple[Value, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Function(Defined):
    """A function of the project.  ``bound`` is its receiver, ``closure`` holds the names of the function around it."""

    kind = "function"

    info: FunctionInfo | None = None
    bound: Value | None = None
    closure: dict[str, Value] | None = field(default=None, compare=False, hash=False)

    def words(self) -> frozenset[str]:
        closure = self.closure or {}
        captured = (closure[name] for name in (self.info.free_names & closure.keys() if self.info and closure else ()))
        is_captured = any(isinstance(value, Tensor | TensorNumber | Module | Instance) for value in captured)
        return frozenset({"unknown", "function:captures"} if is_captured else {"unknown"})


@dataclass(slots=True, unsafe_hash=True)
class ClassOrObject(Defined):
    """A class or an object: ``info`` is the class if the project has it, ``name`` the name of the class."""

    info: ClassInfo | None = None
    name: str | None = None


class Class(ClassOrObject):
    __slots__ = ()

    kind = "class"


class Instance(ClassOrObject):
    """An object that is no module."""

    __slots__ = ()

    kind = "instance"

    def words(self) -> frozenset[str]:
        return frozenset({"unknown" if self.maybe_none and self.optional is None else "instance"})


@dataclass(slots=True, unsafe_hash=True)
class Module(ClassOrObject):
    """An ``nn.Module``.  One that holds others has ``elements`` or ``element``, as a container has."""

    kind = "module"

    elements: tuple[Value, ...] | None = None
    element: Value | None = None


def instance_of(owner: ClassInfo) -> Module | Instance:
    kind = Module if owner.index.project.is_module(owner) else Instance
    return kind(info=owner, name=owner.qualname)


UNKNOWN = Unknown()
TENSOR_CLASS = Namespace(name="torch.Tensor")
CONSTANT = Constant()
NONE = NoneValue()
SIZE = Size()


def tensor(
    sure: Sure = Sure.CERTAIN, dtype: str | None = None, zero_dim: bool | None = None, one_dim: bool = False
) -> Tensor:
    """A tensor made in the region."""
    return Tensor(sure, dtype=dtype, zero_dim=zero_dim, one_dim=one_dim, intermediate=True)


def array(
    sure: Sure = Sure.CERTAIN, dtype: str | None = None, zero_dim: bool | None = None, one_dim: bool = False
) -> Tensor:
    """A NumPy array, or a number that NumPy computed, which Dynamo traces as a tensor."""
    return Tensor(sure, dtype=dtype, zero_dim=zero_dim, one_dim=one_dim, intermediate=True, array=True)


def literal(value: object) -> Value:
    """The value of a literal of the source."""
    key = type(value), value
    known = _LITERALS.get(key)
    if known is None:
        known = NONE if value is None else CONSTANT
        if isinstance(value, str | int | float):
            known = Constant(literal=value)
        if len(_LITERALS) < MOST_LITERALS:
            _LITERALS[key] = known
    return known


MOST_LITERALS = 5_000
_LITERALS: dict[tuple[type, object], Value] = {}


def literal_of(value: Value) -> str | int | float | None:
    """The Python value of a constant, where it is known."""
    return value.literal if isinstance(value, Constant) else None


def keys_of(value: Value) -> tuple[tuple[str, Value], ...]:
    """The entries of a container under constant keys."""
    return value.keys if isinstance(value, Container) else ()


def elements_of(value: Value) -> tuple[Value, ...] | None:
    """The elements of a container or module that holds a known number of them."""
    return value.elements if isinstance(value, Container | Module) else None


def class_of(value: Value) -> ClassInfo | None:
    """The class of an object, or a class itself, if the project has it."""
    return value.info if isinstance(value, ClassOrObject) else None


SomeValue = TypeVar("SomeValue", bound=Value)


def at_most(value: SomeValue, sure: Sure) -> SomeValue:
    return value if value.sure <= sure else replace(value, sure=sure)


def doubt(*values: Value) -> Condition | None:
    """The condition under which a value made of these is a tensor, where one of them may be something else."""
    for value in values:
        condition = value.optional if isinstance(value, Tensor) else None
        if condition is not None and (condition.asks_for_tensor or not value.maybe_none):
            return condition
    return None


MOST_NESTED = 5
"""The limit of containers in containers. A function that wraps its result would otherwise produce ever deeper ones."""


def container(elements: Sequence[Value]) -> Container:
    """A tuple or list display."""
    if any(_nests(element, MOST_NESTED - 1) for element in elements):
        return Container()
    return Container(elements=tuple(elements))


def _nests(value: Value, times: int) -> bool:
    """Returns whether containers are nested to at least this depth."""
    if not isinstance(value, Container):
        return False
    return not times or any(_nests(part, times - 1) for part in value.elements or ())


def container_of(element: Value, *, mapping: bool = False) -> Container:
    """A container of unknown length."""
    return Container(element.sure, element=element, mapping=mapping)


# Joins of values: a value that is one of several.


def join(a: Value, b: Value) -> Value:
    """The least that is true of both."""
    if a is b or a == b:
        return a
    if type(a) is type(b):
        return _join_same(a, b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, NoneValue) and not isinstance(other, Unknown):
            return replace(other, maybe_none=True)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Tensor):
            # A name that holds a tensor on one path seldom holds another kind of thing on the next.
            maybe_none, optional = one.maybe_none or other.maybe_none, one.optional or other.optional
            return replace(at_most(one, Sure.LIKELY), maybe_none=maybe_none, optional=optional)
    for one, other in ((a, b), (b, a)):
        over = PythonValue if isinstance(one, DrawnNumber) else Constant | Size
        if isinstance(one, DrawnNumber | TensorNumber | DataSize) and isinstance(other, over):
            return at_most(one, Sure.LIKELY)
        if isinstance(one, Size) and isinstance(other, Constant):
            return one
    return UNKNOWN


def join_all(values: list[Value] | tuple[Value, ...]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


def any_of(values: tuple[Value, ...]) -> Value:
    """Any element of a container: elements of different kinds are unrelated, unlike values of one name."""
    if len({type(value) for value in values}) > 1 and not all(isinstance(v, PythonValue) for v in values):
        return UNKNOWN
    return join_all(values)


def item_of(value: Value) -> Value:
    """The result of indexing a value with something unknown."""
    match value:
        case Tensor():
            single = True if value.one_dim else None
            known = Tensor(value.sure, False, doubt(value), dtype=value.dtype, zero_dim=single, intermediate=True)
            return replace(known, array=True) if value.array else known
        case DataSize():
            return SIZE
        case Size() | Constant():
            return value
        case Container(elements=None | (), element=None, keys=keys) if keys:
            return any_of(tuple(part for _, part in keys))
        case Container() | Module():
            return _any_element(value) or UNKNOWN
    return UNKNOWN


def iterated(value: Value) -> Value:
    """The values that a ``for`` over a value yields."""
    return UNKNOWN if isinstance(value, Container) and (value.mapping or value.keys) else item_of(value)


def _any_element(value: Container | Module) -> Value | None:
    return any_of(value.elements) if value.elements else value.element


def _join_same(a: Value, b: Value) -> Value:
    """The join of two values of one kind."""
    sure, maybe_none = min(a.sure, b.sure), a.maybe_none or b.maybe_none
    if isinstance(a, Defined | Namespace):
        if any(getattr(a, name, None) != getattr(b, name, None) for name in ("info", "name", "choices")):
            return _either(a, b, sure, maybe_none)
        if isinstance(a, Module) and isinstance(b, Module):
            elements, element = _join_elements(a, b)
            element = any_of(elements) if elements else element
            return replace(a, sure=sure, maybe_none=maybe_none, elements=elements, element=element)
        return replace(a, sure=sure, maybe_none=maybe_none)
    optional = a.optional or b.optional
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Tensor(
            sure if a.array is b.array else min(sure, Sure.LIKELY),
            maybe_none,
            optional,
            a.dtype if a.dtype == b.dtype else None,
            a.zero_dim if a.zero_dim == b.zero_dim else None,
            a.one_dim and b.one_dim,
            a.intermediate and b.intermediate,
            a.parameter and b.parameter,
            a.array and b.array,
            a.by_data and b.by_data,
        )
    if isinstance(a, Constant) and isinstance(b, Constant):
        same = a.literal == b.literal and isinstance(a.literal, bool) is isinstance(b.literal, bool)
        truth = a.truth if a.truth == b.truth else None
        by_default = a.by_default or b.by_default
        return Constant(sure, maybe_none, optional, a.literal if same else None, by_default, truth)
    if isinstance(a, Container) and isinstance(b, Container):
        other = dict(b.keys)
        keys = tuple((key, join(value, other[key])) for key, value in a.keys if key in other)
        return Container(sure, maybe_none, optional, *_join_elements(a, b), keys, a.mapping or b.mapping)
    return replace(a, sure=sure, maybe_none=maybe_none, optional=optional)


def _join_elements(a: Container | Module, b: Container | Module) -> tuple[tuple[Value, ...] | None, Value | None]:
    if a.elements is not None and b.elements is not None and len(a.elements) == len(b.elements):
        return tuple(join(x, y) for x, y in zip(a.elements, b.elements, strict=True)), None
    parts = tuple(part for part in (_any_element(a), _any_element(b)) if part is not None)
    return None, any_of(parts) if parts else None


MOST_CHOICES = 8
"""The limit of values that are joined; of more, the first ones count: most differ little."""


def _either(a: Value, b: Value, sure: Sure, maybe_none: bool) -> Value:
    """One of several functions, classes, modules or objects."""
    if isinstance(a, Defined) and isinstance(b, Defined):
        choices = tuple(dict.fromkeys((*(a.choices or (a,)), *(b.choices or (b,)))))
        if all(map(_is_known, choices)):
            return type(a)(sure, maybe_none, choices=choices[:MOST_CHOICES])
    if isinstance(a, Namespace) and isinstance(b, Namespace):
        if {a.name, b.name} == {"numpy", "torch"}:
            return Namespace(at_most(a, Sure.LIKELY).sure, name="torch")  # Dynamo traces both as operations of torch
        if a.name.startswith("torch.") and b.name.startswith("torch.") and a.bound is None is b.bound:
            return Function(sure, maybe_none, choices=(a, b))
    return Module(sure) if isinstance(a, Module) else UNKNOWN


def _is_known(choice: Value) -> bool:
    """True if it is worth distinguishing one choice from the others."""
    if isinstance(choice, ClassOrObject):
        return choice.info is not None or choice.name in RECURRENT_MODULES
    return isinstance(choice, Function) and choice.info is not None
