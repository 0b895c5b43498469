"""Walks over the nodes of libcst, their positions, and the names that code reads and binds, in a fraction of the time
that visitors take."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar, cast

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from breakscan.fix.support import matchers as m
from breakscan.model.facts import Span
from breakscan.model.words import grouped

Node = TypeVar("Node", bound=cst.CSTNode)

MOST_KEPT = 128
"""The number of nodes whose contents are cached: rewrites look through one function again and again."""
MOST_NAMES_KEPT = 2_048
"""The number of nodes whose names are cached."""

_FIRST: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Arg: ("star", "keyword"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords"),
    cst.ExceptHandler: ("type", "name"),
    cst.FunctionDef: ("decorators", "asynchronous", "name", "type_parameters", "params", "returns"),
    cst.IfExp: ("body", "test"),
}
"""Fields that come first in the text, and later in the class."""


_LAYOUT = re.compile(
    r"(leading|empty|trailing)_(lines|whitespace)|whitespace.*|lines_.*|header|footer|[lr](par|bracket|brace)"
    r"|comma|equal|colon|semicolon|dot|first_line|newline|comment|indent"
)
"""The fields that hold no code."""


def _below(kind: type[object]) -> Iterator[type[object]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _below(one)


@cache
def _code_values(kind: type[cst.CSTNode]) -> Callable[[cst.CSTNode], tuple[Any, ...]]:
    """A function that gives the values of the fields of a node that hold code, in the order of the text."""
    first = _FIRST.get(kind, ())
    names = [*first, *(field.name for field in fields(kind) if field.name not in first)]
    names = [name for name in names if not _LAYOUT.fullmatch(name)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple(getattr(node, name) for name in names)


def code_children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The child nodes of a node that hold code, in the order of the text."""
    found: list[cst.CSTNode] = []
    for value in _code_values(type(node))(node):
        kind = type(value)
        if kind in _NODES:
            found.append(value)
        elif kind is tuple or kind is list:
            found += value
    return found


_NODES = frozenset(_below(cst.CSTNode))
"""libcst's nodes are abstract classes, for which ``isinstance`` is slow."""


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and those below it that hold code, in the order of the text."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        pending += code_children(one)[::-1]


def findall(node: cst.CSTNode, matcher: m.BaseMatcherNode) -> list[cst.CSTNode]:
    """The nodes that a matcher matches, or one of several matchers, like ``libcst.matchers.findall``."""
    options = tuple(matcher.alternatives())
    kinds = {one.kind for one in options}
    if type(node) in _ASKED_OFTEN:
        found = _of_kinds(node, kinds)
    else:
        found = [one for one in walk(node) if type(one).__name__ in kinds]
    asks_kind_only = not any(one.wanted for one in options)
    return found if asks_kind_only else [one for one in found if m.matches(one, matcher)]


_ASKED_OFTEN = frozenset({cst.Module, cst.ClassDef, cst.FunctionDef, cst.IndentedBlock})


def nodes_of(node: cst.CSTNode, *kinds: type[Node]) -> list[Node]:
    """The nodes of some types, in the order of the text. What is in ``node`` is cached."""
    return cast(list[Node], _of_kinds(node, {kind.__name__ for kind in kinds}))


def _of_kinds(node: cst.CSTNode, kinds: Collection[str]) -> list[cst.CSTNode]:
    by_kind = _by_kind(node)
    if len(kinds) == 1:
        return [one for kind in kinds for _, one in by_kind.get(kind, ())]
    return [one for _, one in sorted(one for kind in kinds for one in by_kind.get(kind, ()))]


@lru_cache(maxsize=MOST_KEPT)
def _by_kind(node: cst.CSTNode) -> dict[str, list[tuple[int, cst.CSTNode]]]:
    """The nodes that hold code, by their types, each with its number in the order of the text."""
    return grouped((type(one).__name__, (number, one)) for number, one in enumerate(walk(node)))


def nodes_named(node: cst.CSTNode, text: str) -> tuple[cst.Name, ...]:
    """The nodes that are a name, in the order of the text: variables, attributes, keywords."""
    return _names_in(node).get(text, ())


@lru_cache(maxsize=MOST_KEPT)
def _names_in(node: cst.CSTNode) -> dict[str, tuple[cst.Name, ...]]:
    names = grouped((name.value, name) for name in nodes_of(node, cst.Name))
    return {text: tuple(these) for text, these in names.items()}


_TEXTS: dict[type[cst.CSTNode], tuple[str, str]] = {
    cst.AnnAssign: ("target", "annotation value"),
    cst.Arg: ("", "value"),
    cst.AsName: ("name", ""),
    cst.AssignTarget: ("target", ""),
    cst.Attribute: ("", "value"),
    cst.AugAssign: ("target", "target value"),
    cst.ClassDef: ("name", "decorators bases keywords body"),
    cst.CompFor: ("target", "iter ifs inner_for_in"),
    cst.Del: ("target", ""),
    cst.For: ("target", "iter body orelse"),
    cst.FunctionDef: ("name", "decorators params returns body"),
    cst.MatchAs: ("name", "pattern"),
    cst.MatchMapping: ("rest", "elements"),
    cst.MatchStar: ("name", ""),
    cst.NamedExpr: ("target", "value"),
    cst.Param: ("name", "annotation default"),
}
"""The fields of nodes that bind names, and of those that hold names which are no variables, with the fields to read."""
_FIELDS = {kind: (binds.split(), reads.split()) for kind, (binds, reads) in _TEXTS.items()}


class _Names:
    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: dict[str, None] = {}

    def add(self, node: Any) -> None:
        """Adds the names of a node, or of several, and of those below."""
        kind = type(node)
        if kind is cst.Name:
            self.read[node.value] = None
        elif kind is cst.ImportAlias:
            self.bound[node.evaluated_alias or node.evaluated_name.split(".")[0]] = None
        elif kind in _FIELDS:
            binds, reads = _FIELDS[kind]
            for field in binds:
                self.bind(getattr(node, field))
            for field in reads:
                self.add(getattr(node, field))
        elif node is not None:
            for child in node if kind in (list, tuple) else code_children(node):
                self.add(child)

    def bind(self, target: cst.CSTNode | None) -> None:
        if isinstance(target, cst.Name):
            self.bound[target.value] = None
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self.bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self.bind(target.value)
        else:
            self.add(target)


@lru_cache(maxsize=MOST_NAMES_KEPT)
def _names_of_one(node: cst.CSTNode) -> _Names:
    found = _Names()
    found.add(node)
    return found


def _names(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> _Names:
    if isinstance(nodes, cst.CSTNode):
        return _names_of_one(nodes)
    found = _Names()
    for node in nodes:
        found.add(node)
    return found


def read(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> list[str]:
    """The names that code reads, in order, each once, including those in inner functions and comprehensions."""
    return list(_names(nodes).read)


def written(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> list[str]:
    """The names that code binds: by assignment, ``for``, ``with``, ``case``, ``import``, ``def``, ``:=`` or ``del``.

    Names of inner functions and comprehensions are included, so the result may contain too many names, never too few.
    """
    return list(_names(nodes).bound)


def fresh_name(function: cst.CSTNode, name: str) -> cst.Name:
    """A name that code neither reads nor binds, with underscores at its end if needed."""
    while name in _names(function).read or name in _names(function).bound:
        name += "_"
    return cst.Name(name)


def spans_in(module: cst.Module) -> dict[cst.CSTNode, Span]:
    """The spans of the nodes of a module, in lines and columns from 1."""
    state = _State(module.default_indent, module.default_newline)
    module._codegen(state)
    return state.spans


class _State(PositionProvidingCodegenState):
    def __init__(self, indent: str, newline: str) -> None:
        super().__init__(indent, newline, PositionProvider())
        self.spans: dict[cst.CSTNode, Span] = {}
        self.starts: list[tuple[int, int]] = []

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        if value.isprintable():
            self.column += len(value)
        else:
            self._update_position(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append((self.line, self.column + 1))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.starts.pop()
        if node not in self.spans:
            self.spans[node] = (*start, self.line, self.column + 1)

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        """Notes where the code of a node starts and ends, without the whitespace around it."""
        start = self.line, self.column + 1
        yield
        start = start if start_node is None else self.spans[start_node][:2]
        end = (self.line, self.column + 1) if end_node is None else self.spans[end_node][2:]
        self.spans[node] = (*start, *end)
