"""The facts of the interpretation about expressions of chosen files, for the rewrites."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from breakscan.check.interpreter import values as av
from breakscan.check.project.index import ModuleIndex
from breakscan.model.facts import Fact, FileFacts, Span
from breakscan.model.words import grouped
from breakscan.source.module import SourceModule

Position = tuple[int, int, int, int]
"""Of an ast node, with offsets in bytes."""


def _position(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


class FileNotes:
    """The values of one file, over all calls and rounds of loops."""

    def __init__(self) -> None:
        self.values: dict[Position, list[av.Value]] = {}
        self.names: dict[Position, list[dict[str, av.Value]]] = {}

    def value(self, node: ast.expr, value: av.Value) -> None:
        """Notes what an expression, or the target of an assignment, holds."""
        at = _position(node)
        known = self.values.get(at)
        if known is None:
            self.values[at] = [value]
        elif known[-1] is not value:
            known.append(value)

    def statement(self, node: ast.stmt, names: dict[str, av.Value]) -> None:
        """Notes what the names hold when a statement that holds others starts."""
        if hasattr(node, "body"):
            self.names.setdefault(_position(node), []).append(dict(names))


class Notes:
    """The results of one interpretation about the files at ``paths``, which are absolute. An interpretation that others
    reuse, as a function summary, has notes of its own, which theirs include."""

    def __init__(self, paths: frozenset[Path]) -> None:
        self._paths = paths
        self._files: dict[Path, FileNotes] = {}
        self._included: dict[int, Notes] = {}

    def of(self, index: ModuleIndex) -> FileNotes | None:
        """The notes about a file; None if nobody will read them."""
        path = index.module.path
        return None if path not in self._paths else self._files.setdefault(path, FileNotes())

    def apart(self) -> "Notes":
        """New notes for the same files."""
        return Notes(self._paths)

    def include(self, other: "Notes") -> None:
        self._included[id(other)] = other

    def all_of(self, path: Path) -> Iterator[FileNotes]:
        """The notes of a file, those that are included among them."""
        found = {id(self): self}
        pending = [self]
        while pending:
            notes = pending.pop()
            if path in notes._files:
                yield notes._files[path]
            pending += [one for key, one in notes._included.items() if key not in found]
            found |= notes._included


def facts_of(module: SourceModule, noted: Iterable[Notes]) -> FileFacts:
    """The facts of several interpretations about a file, by the spans that people count."""

    def span(at: Position) -> Span:
        return at[0], module.column(at[0], at[1]), at[2], module.column(at[2], at[3])

    values: dict[Span, list[av.Value]] = {}
    names: dict[Span, list[dict[str, av.Value]]] = {}
    for file in dict.fromkeys(file for notes in noted for file in notes.all_of(module.path)):
        for at, found in file.values.items():
            values.setdefault(span(at), []).extend(found)
        for at, held in file.names.items():
            names.setdefault(span(at), []).extend(held)

    @cache  # most are never asked for
    def value_at(at: Span) -> Fact | None:
        return _fact(av.join_all(values[at])) if at in values else None

    @cache
    def names_at(at: Span) -> dict[str, Fact]:
        held = grouped(pair for noted in names.get(at, ()) for pair in noted.items())
        return {name: _fact(av.join_all(found)) for name, found in held.items()}

    return FileFacts(value_at, names_at)


def _fact(value: av.Value) -> Fact:
    elements = av.elements_of(value)
    return Fact(
        kind="array" if isinstance(value, av.Tensor) and value.array else value.kind,
        certain=value.sure is av.Sure.CERTAIN,
        dtype=value.dtype if isinstance(value, av.Tensor) else None,
        zero_dim=value.zero_dim if isinstance(value, av.Tensor) else None,
        parameter=isinstance(value, av.Tensor) and value.parameter,
        maybe_none=value.maybe_none,
        optional=value.optional is not None,
        name=value.name if isinstance(value, av.ClassOrObject | av.Namespace) else None,
        literal=av.literal_of(value),
        elements=tuple(map(_fact, elements)) if elements is not None else None,
    )
