"""Whether code that a change made did run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Evidence:
    """``statements`` of the new text are new or other than before, ``ran`` of them were executed.  ``in_functions``
    says that one of them at least stands in a function, so that it can run while a call does."""

    statements: int
    ran: int
    in_functions: bool


def evidence(before: str, after: str, executed: Collection[int]) -> Evidence:
    """Of a file with these texts, of whose new text these lines were executed.  Raises SyntaxError."""
    changed = _changed_lines(before, after)
    spans = [span for span in _spans(ast.parse(after)) if not changed.isdisjoint(range(span.first, span.last + 1))]
    # A statement of several lines is told by its first; where it lies within another, by the inner one.
    inner = [span for span in spans if not any(other is not span and span.holds(other) for other in spans)]
    lines = set(executed)
    ran = sum(not lines.isdisjoint(range(span.first, span.proof + 1)) for span in inner)
    return Evidence(len(inner), ran, any(span.in_function for span in inner))


@dataclass(frozen=True, slots=True)
class _Span:
    """The lines of a statement's own text; executed lines up to ``proof`` show that it ran."""

    first: int
    last: int
    proof: int
    in_function: bool

    def holds(self, other: _Span) -> bool:
        return self.first <= other.first and other.last <= self.last


def _changed_lines(before: str, after: str) -> set[int]:
    """Lines of the new text.  Where lines are gone without others in their place, those around stand for them."""
    matcher = SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    found: set[int] = set()
    for tag, _, _, first, last in matcher.get_opcodes():
        if tag == "delete":
            found |= {first, first + 1}
        elif tag != "equal":
            found |= set(range(first + 1, last + 1))
    return found


def _spans(node: ast.AST, in_function: bool = False) -> Iterator[_Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield _span(child, in_function)
        inside = in_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _spans(child, inside)


def _span(statement: ast.stmt, in_function: bool) -> _Span:
    last = statement.end_lineno or statement.lineno
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        # Decorators and signature take effect where the body runs.
        first = min([statement.lineno, *(one.lineno for one in statement.decorator_list)])
        return _Span(first, statement.body[0].lineno - 1, last, True)
    body = getattr(statement, "body", None)
    if body:
        head = max(statement.lineno, body[0].lineno - 1)
        return _Span(statement.lineno, head, head, in_function)
    return _Span(statement.lineno, last, last, in_function)
