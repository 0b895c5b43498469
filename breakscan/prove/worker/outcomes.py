"""Records the outcomes of the tested expressions of a file: whether they were true, false or both.

The code that runs is compiled from a changed tree, in which each tested expression passes its value to a recorder. It
computes the same as the code of the unchanged text, and its lines are the same.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
from collections.abc import Collection, Iterator
from types import CodeType

from breakscan.prove.worker.protocol import ExpressionSpan, SeenOutcomes
from breakscan.source.walking import Tested, tested_expressions

RECORDER = "__breakscan_outcome__"
"""A name in ``builtins``. Names that end in underscores are not changed in classes."""


RecordedOutcome = tuple[str, int, bool]
"""The real path of a file, the number of a tested expression in it, and an outcome."""


class OutcomeRecorder:
    """Compiles texts so that it can record the outcomes of their tested expressions."""

    def __init__(self) -> None:
        self._tested: dict[str, list[ExpressionSpan]] = {}
        self._seen: set[RecordedOutcome] | None = None

    def compile(self, text: str, path: str) -> CodeType:
        """The code of a text. Raises SyntaxError."""
        tree = ast.parse(text, path)
        tested = list(tested_expressions(tree))
        real = os.path.realpath(path)
        self._tested[real] = [span_of(one.node) for one in tested]
        _Recorded(real, tested).visit(tree)
        setattr(builtins, RECORDER, self._record)
        return compile(tree, path, "exec", dont_inherit=True)

    @contextlib.contextmanager
    def recording(self) -> Iterator[set[RecordedOutcome]]:
        """Records while the block runs."""
        seen: set[RecordedOutcome] = set()
        self._seen = seen
        try:
            yield seen
        finally:
            self._seen = None

    def outcomes(self, seen: Collection[RecordedOutcome]) -> dict[str, tuple[SeenOutcomes, ...]]:
        """What was recorded, for each tested expression that was evaluated, by the real path of the file."""
        return {
            path: tuple(
                SeenOutcomes(span, (path, number, True) in seen, (path, number, False) in seen)
                for number, span in enumerate(spans)
                if (path, number, True) in seen or (path, number, False) in seen
            )
            for path, spans in self._tested.items()
        }

    def _record(self, path: str, number: int, value: object) -> object:
        if self._seen is not None:
            self._seen.add((path, number, bool(value)))
        return value


def span_of(node: ast.expr) -> ExpressionSpan:
    """Where an expression is."""
    return ExpressionSpan(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


class _Recorded(ast.NodeTransformer):
    """Puts a call of the recorder around each tested expression."""

    def __init__(self, path: str, tested: list[Tested]) -> None:
        self._path = path
        self._numbers = {id(one.node): (number, one.keeps_value) for number, one in enumerate(tested)}

    def visit(self, node: ast.AST) -> ast.AST:
        known = self._numbers.get(id(node))
        visited: ast.AST = self.generic_visit(node)
        if known is None:
            return visited
        assert isinstance(visited, ast.expr)
        number, keeps_value = known
        # Where only the truth is asked for, the recorder gets it: an object is then asked once, as without a recorder.
        value = visited if keeps_value else ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), visited))
        arguments: list[ast.expr] = [ast.Constant(self._path), ast.Constant(number), value]
        return _at(visited, ast.Call(ast.Name(RECORDER, ast.Load()), arguments, []))


def _at(place: ast.expr, made: ast.expr) -> ast.expr:
    """Gives all new nodes the place of the expression that they are around."""
    for node in ast.walk(made):
        if isinstance(node, ast.expr) and not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return made
