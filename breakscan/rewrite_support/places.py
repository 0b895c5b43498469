"""The positions of the nodes of a file, computed only for the top-level statements that are needed."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Mapping

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from breakscan.facts import Span


class Places:
    """The spans of the nodes of a module, which ``syntax`` is the ``ast`` of.

    libcst's ``PositionProvider`` takes twice as long as the parser, and most statements of a file are never needed.
    """

    def __init__(self, module: cst.Module, syntax: ast.Module) -> None:
        self._module = module
        self._spans: dict[cst.CSTNode, dict[cst.CSTNode, Span]] = {}
        self._starts = list(_starts(module, syntax))
        self._start_of: Mapping[cst.CSTNode, int] = dict(zip(module.body, self._starts, strict=True))

    def at(self, line: int) -> cst.CSTNode | None:
        """The top-level statement at a line."""
        number = bisect_right(self._starts, line) - 1
        return self._module.body[number] if number >= 0 else None

    def of(self, statement: cst.CSTNode) -> Mapping[cst.CSTNode, Span]:
        """The spans of a top-level statement and of all nodes in it."""
        if statement not in self._spans:
            alone = self._module.with_changes(header=[], body=[statement], footer=[])
            # The number of lines that the statement is moved by.
            by = self._start_of[statement] - 1
            self._spans[statement] = {
                node: (at.start.line + by, at.start.column + 1, at.end.line + by, at.end.column + 1)
                for node, at in MetadataWrapper(alone, unsafe_skip_copy=True).resolve(PositionProvider).items()
            }
        return self._spans[statement]


def _starts(module: cst.Module, syntax: ast.Module) -> Iterator[int]:
    """The first line of each top-level statement, with the empty lines and comments above it."""
    position = 0
    for statement in module.body:
        first = syntax.body[position]
        decorators = [one.lineno for one in getattr(first, "decorator_list", ())]
        yield min([first.lineno, *decorators]) - len(statement.leading_lines)
        position += len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
