"""Matchers of nodes: the part of ``libcst.matchers`` that rewrites use, with its names and its meaning.

Importing ``libcst.matchers`` takes longer than importing the rest of libcst.  ``Name("x")`` matches that name,
``Call(Name("f"))`` a call of it with any arguments: a field that is not given may hold anything."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import libcst as cst


class BaseMatcherNode:
    """A matcher of nodes."""

    def __or__(self, other: "BaseMatcherNode") -> "OneOf":
        return OneOf(self, other)

    def __invert__(self) -> "MatchIfTrue":
        return MatchIfTrue(lambda node: not matches(node, self))

    def alternatives(self) -> "Iterator[_Node]":
        """The matchers of single types of nodes that it consists of."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class _Node(BaseMatcherNode):
    """Matches nodes of one type.  ``wanted`` holds what the fields have to match."""

    kind: str
    wanted: tuple[tuple[str, Any], ...]

    def alternatives(self) -> "Iterator[_Node]":
        yield self


class OneOf(BaseMatcherNode):
    """Matches what one of several matchers matches."""

    def __init__(self, *options: BaseMatcherNode) -> None:
        self.options = tuple(one for option in options for one in option.alternatives())

    def alternatives(self) -> Iterator[_Node]:
        yield from self.options


@dataclass(frozen=True, slots=True)
class MatchIfTrue:
    """Matches the value of a field for which a function returns True."""

    function: Callable[[Any], object]


def MatchRegex(pattern: str) -> MatchIfTrue:
    """Matches a text that the pattern matches as a whole."""
    return MatchIfTrue(re.compile(pattern).fullmatch)


def __getattr__(name: str) -> Callable[..., BaseMatcherNode]:
    """The matcher of a type of nodes.  Its arguments are those of the type, in the same order."""
    kind = getattr(cst, name, None)
    if not isinstance(kind, type) or not issubclass(kind, cst.CSTNode):
        raise AttributeError(name)
    names = [one.name for one in fields(kind)]

    def made(*given: Any, **named: Any) -> BaseMatcherNode:
        return _Node(name, (*zip(names, given, strict=False), *named.items()))

    globals()[name] = made
    return made


def matches(node: object, matcher: BaseMatcherNode) -> bool:
    kind = type(node).__name__
    for one in matcher.alternatives():
        if one.kind == kind and all(_value_matches(getattr(node, name), wanted) for name, wanted in one.wanted):
            return True
    return False


def _value_matches(value: object, wanted: object) -> bool:
    if isinstance(wanted, BaseMatcherNode):
        return matches(value, wanted)
    if isinstance(wanted, MatchIfTrue):
        return bool(wanted.function(value))
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(wanted):
            return False
        return all(_value_matches(one, other) for one, other in zip(value, wanted, strict=True))
    return value is wanted if wanted is None else value == wanted
