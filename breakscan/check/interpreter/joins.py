"""Joins of values: a value that is one of several."""

from __future__ import annotations

from dataclasses import replace

from breakscan.check.interpreter.values import (
    SIZE,
    UNKNOWN,
    ClassOrObject,
    Constant,
    Container,
    DataSize,
    Defined,
    DrawnNumber,
    Function,
    Module,
    Namespace,
    NoneValue,
    PythonValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Unknown,
    Value,
    at_most,
    doubt,
)
from breakscan.rulebook.torch_facts.not_measured import RECURRENT_MODULES


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
        if isinstance(one, DrawnNumber) and isinstance(other, PythonValue):
            return at_most(one, Sure.LIKELY)
        if isinstance(one, TensorNumber) and isinstance(other, Constant | Size):
            return at_most(one, Sure.LIKELY)
        if isinstance(one, DataSize) and isinstance(other, Constant | Size):
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
        if not _is_same(a, b):
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
        return Container(sure, maybe_none, optional, *_join_parts(a, b), a.mapping or b.mapping)
    return replace(a, sure=sure, maybe_none=maybe_none, optional=optional)


_Parts = tuple[tuple[Value, ...] | None, Value | None, tuple[tuple[str, Value], ...]]


def _join_parts(a: Container, b: Container) -> _Parts:
    """The elements, the element and the keys of one of two containers."""
    other = dict(b.keys)
    keys = tuple((key, join(value, other[key])) for key, value in a.keys if key in other)
    return *_join_elements(a, b), keys


def _join_elements(a: Container | Module, b: Container | Module) -> tuple[tuple[Value, ...] | None, Value | None]:
    if a.elements is not None and b.elements is not None and len(a.elements) == len(b.elements):
        return tuple(join(x, y) for x, y in zip(a.elements, b.elements, strict=True)), None
    parts = tuple(part for part in (_any_element(a), _any_element(b)) if part is not None)
    return None, any_of(parts) if parts else None


def _is_same(a: Value, b: Value) -> bool:
    """True if two values are the same function, an instance of the same class, or have the same dotted name."""
    match a, b:
        case Namespace(), Namespace():
            return a.name == b.name
        case Function(), Function():
            return a.info is b.info and a.choices == b.choices
        case ClassOrObject(), ClassOrObject():
            return a.info is b.info and a.name == b.name and a.choices == b.choices
    return False


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
