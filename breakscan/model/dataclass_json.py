"""Dataclasses as plain JSON values and back, with every type checked on the way in."""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

Decoder = Callable[[Any], Any]
_PLAIN = frozenset({str, int, float, bool, type(None)})


def encode(value: Any) -> Any:
    """The JSON form of a value: a dataclass is the list of its fields, a member of an enum its value."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple | list | set):
        return [encode(item) for item in value]
    if (names := _field_names(kind)) is not None:
        return [encode(getattr(value, name)) for name in names]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    """The field names of a dataclass; None for anything else."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


@cache
def decoder(kind: Any) -> Decoder:
    """A function that turns the JSON form of a ``kind`` back into one, and raises ValueError for anything else.  Raises
    TypeError for kinds that have no JSON form here."""
    if kind in (str, int, bool, type(None)):
        return _one_of(kind)
    if kind is float:
        return _number
    if kind is object:
        return lambda value: value
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list or origin is set:
        return _items(origin, arguments[0])
    if origin is tuple and arguments[1:] == (...,):
        return _items(tuple, arguments[0])
    if origin in (dict, Mapping) and arguments[0] is str:
        return _table(arguments[1])
    if origin in (Union, types.UnionType) and len(arguments) == 2 and arguments[1] is type(None):
        part = decoder(arguments[0])
        return lambda value: None if value is None else part(value)
    if origin in (Union, types.UnionType) and _PLAIN.issuperset(arguments):
        return _one_of(*arguments)
    raise TypeError(f"{kind} has no JSON form")


def _one_of(*kinds: type) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) not in kinds:
            raise ValueError(f"{value!r:.80} is no {' or '.join(sorted(kind.__name__ for kind in kinds))}")
        return value

    return decode


def _number(value: Any) -> Any:
    if type(value) not in (float, int):
        raise ValueError(f"{value!r:.80} is no number")
    try:
        return float(value)
    except OverflowError as error:  # an int of JSON can be of any size
        raise ValueError("a number is too large") from error


def _member(kind: type[Enum]) -> Decoder:
    members = {member.value: member for member in kind}

    def decode(value: Any) -> Any:
        if type(value) is not str or value not in members:
            raise ValueError(f"{value!r:.80} is no {kind.__name__}")
        return members[value]

    return decode


def _dataclass(kind: type) -> Decoder:
    @cache
    def parts() -> list[Decoder]:
        # Not before they are needed: a field may hold values of the same kind.
        hints = get_type_hints(kind)
        return [decoder(hints[field.name]) for field in fields(kind)]

    needed = sum(one.default is MISSING and one.default_factory is MISSING for one in fields(kind))

    def decode(value: Any) -> Any:
        # An earlier version wrote no values of fields that have come since, which have a default.
        if type(value) is not list or not needed <= len(value) <= len(fields(kind)):
            raise ValueError(f"{value!r:.80} is no {kind.__name__}")
        return kind(*[part(item) for part, item in zip(parts(), value, strict=False)])

    return decode


def _items(kind: type, item_kind: Any) -> Decoder:
    part = decoder(item_kind)

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise ValueError(f"{value!r:.80} is no list")
        return kind([part(item) for item in value])

    return decode


def _table(item_kind: Any) -> Decoder:
    part = decoder(item_kind)

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r:.80} is no table")
        return {key: part(item) for key, item in value.items()}

    return decode
