"""The positions of the nodes of a file, computed only for the statements that are needed."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeGuard

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from breakscan.model.facts import Span


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

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Recorded:
        return _Recorded(self, node, start_node, end_node)


class _Recorded:
    """Notes where the code of a node starts and ends, without the whitespace around it."""

    def __init__(
        self, state: _State, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.state = state
        self.node = node
        self.start_node = start_node
        self.end_node = end_node

    def __enter__(self) -> None:
        self.start = self.state.line, self.state.column + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spans = self.state.spans
        start = self.start if self.start_node is None else spans[self.start_node][:2]
        end = (self.state.line, self.state.column + 1) if self.end_node is None else spans[self.end_node][2:]
        spans[self.node] = (*start, *end)


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of a statement: ``line`` is that of its keyword or first word, below the decorators if it has any.

    ``classes`` are those around it, from the outside in.
    """

    line: int
    classes: tuple[cst.ClassDef, ...]


class Places:
    """The spans of the nodes of a module, which ``syntax`` is the ``ast`` of.

    They are computed for one statement of the module, or of the body of a class in it, at a time. libcst's
    ``PositionProvider`` takes twice as long as the parser, and most statements of a file are never needed.
    """

    def __init__(self, module: cst.Module, syntax: ast.Module) -> None:
        self._module = module
        self._spans: dict[cst.CSTNode, dict[cst.CSTNode, Span]] = {}
        self._starts: dict[cst.CSTNode, _Start] = {}
        self._statements: list[cst.BaseStatement] = []
        self._lines: list[int] = []
        """The first line of each of the statements, those of their decorators included."""
        self._add(module.body, syntax.body, ())

    def _add(
        self, statements: Sequence[cst.BaseStatement], syntax: Sequence[ast.stmt], classes: tuple[cst.ClassDef, ...]
    ) -> None:
        for statement, first in _paired(statements, syntax):
            self._starts[statement] = _Start(first.lineno, classes)
            self._statements.append(statement)
            self._lines.append(min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))]))
            if isinstance(statement, cst.ClassDef) and isinstance(statement.body, cst.IndentedBlock):
                assert isinstance(first, ast.ClassDef)
                self._add(statement.body.body, first.body, (*classes, statement))

    def at(self, line: int) -> cst.BaseStatement | None:
        """The innermost of the statements at a line."""
        number = bisect_right(self._lines, line) - 1
        return self._statements[number] if number >= 0 else None

    def is_start(self, node: cst.CSTNode) -> TypeGuard[cst.BaseStatement]:
        """True if a node is one of the statements of the module and its classes."""
        return node in self._starts

    def of(self, statement: cst.BaseStatement) -> Mapping[cst.CSTNode, Span]:
        """The spans of one of the statements and of all nodes in it."""
        if statement not in self._spans:
            start = self._starts[statement]
            spans = spans_in(self._alone(statement, start.classes))
            # The number of lines that the statement is moved by.
            by = start.line - spans[statement][0]
            self._spans[statement] = {
                node: (line + by, column, end_line + by, end_column)
                for node, (line, column, end_line, end_column) in spans.items()
                if line > len(start.classes)
            }
        return self._spans[statement]

    def _alone(self, statement: cst.BaseStatement, classes: Sequence[cst.ClassDef]) -> cst.Module:
        """A module that holds only a statement, indented as in the classes around it, each of which takes one line."""
        for one in reversed(classes):
            indent = cst.ensure_type(one.body, cst.IndentedBlock).indent
            statement = cst.ClassDef(one.name, cst.IndentedBlock([statement], indent=indent))
        return self._module.with_changes(header=[], body=[statement], footer=[])


def _paired(
    statements: Sequence[cst.BaseStatement], syntax: Sequence[ast.stmt]
) -> Iterator[tuple[cst.BaseStatement, ast.stmt]]:
    """The statements of a block, each with the first of ``ast`` in it: statements may share a line."""
    position = 0
    for statement in statements:
        yield statement, syntax[position]
        position += len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
