"""Keeps what the interpretation found out about the expressions of chosen files, for the rewrites."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from breakscan.analysis.interpreter.values import Sure, Value, join
from breakscan.analysis.project.index import ModuleIndex
from breakscan.facts import Fact, FileFacts, Source, Span
from breakscan.source.module import SourceModule

Position = tuple[int, int, int, int]
"""Of an ast node, with offsets in bytes."""


def _position(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


class FileNotes:
    """The values of one file: joined over all calls and rounds of loops."""

    def __init__(self, torch_version: str) -> None:
        self.torch_version = torch_version
        self.values: dict[Position, Value] = {}
        self.names: dict[Position, dict[str, Value]] = {}

    def value(self, node: ast.expr, value: Value) -> None:
        """Notes what an expression, or the target of an assignment, holds."""
        at = _position(node)
        known = self.values.get(at)
        self.values[at] = value if known is None else join(known, value)

    def statement(self, node: ast.stmt, names: dict[str, Value]) -> None:
        """Notes what the names hold when a statement that holds others starts."""
        if not hasattr(node, "body"):
            return
        at = _position(node)
        known = self.names.get(at, {})
        self.names[at] = {name: join(known[name], value) if name in known else value for name, value in names.items()}

    def facts(self, module: SourceModule) -> FileFacts:
        """What was noted, by the spans that people count."""

        def span(at: Position) -> Span:
            return at[0], module.column(at[0], at[1]), at[2], module.column(at[2], at[3])

        return FileFacts(
            {span(at): _fact(value) for at, value in self.values.items()},
            {span(at): {name: _fact(value) for name, value in names.items()} for at, names in self.names.items()},
        )


class Notes:
    """The notes of the files at ``paths``, which are absolute, for a version of torch such as ``2.13``."""

    def __init__(self, paths: Iterable[Path], torch_version: str) -> None:
        self._files = {path: FileNotes(torch_version) for path in paths}

    def of(self, index: ModuleIndex) -> FileNotes | None:
        return self._files.get(index.module.path)

    def facts(self, module: SourceModule) -> FileFacts:
        return self._files[module.path].facts(module)


def _fact(value: Value) -> Fact:
    return Fact(
        kind=value.sort.value,
        source=Source.INFERRED if value.sure is Sure.CERTAIN else Source.ASSUMED,
        dtype=value.dtype,
        zero_dim=value.zero_dim,
        parameter=value.parameter,
        maybe_none=value.maybe_none,
        optional=value.optional is not None,
        name=value.name,
        literal=value.literal,
        tensor=value.facts,
        elements=tuple(_fact(element) for element in value.elements) if value.elements is not None else None,
    )
