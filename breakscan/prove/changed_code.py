"""Which code of a change ran, and which tests of the old text it has replaced."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from breakscan.fix.source_map import SourceMap
from breakscan.source.outline import Outline
from breakscan.source.walking import asks_for_compiling, tested_expressions

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about the execution of a change.

    ``statements`` of the new text are new or changed, and ``ran`` of them were executed. ``in_functions`` says that at
    least one of them is in a function, so that it can run during a call. ``unrun`` are the first lines of those in
    functions that were not executed, except for statements that have only moved or that depend on a test of whether the
    code is being compiled.
    """

    statements: int
    ran: int
    in_functions: bool
    unrun: tuple[str, ...]


def evidence(before: str, after: str, lines: SourceMap, executed: Collection[int]) -> Evidence:
    """Returns the evidence for a file with these texts, given the executed lines of the new text.

    ``lines`` says where the lines of the new text come from. Raises SyntaxError.
    """
    changed = lines.changed_lines()
    spans = [span for span in _spans(ast.parse(after)) if not changed.isdisjoint(range(span.first, span.last + 1))]
    known = {span.code for span in _spans(ast.parse(before))}
    # The first line represents a statement; of two nested statements, the inner one counts.
    inner = [span for span in spans if not any(other is not span and span.holds(other) for other in spans)]
    ran = set(executed)
    unrun = [span for span in inner if ran.isdisjoint(range(span.first, span.proof + 1))]
    texts = after.split("\n")
    new = [span for span in unrun if span.in_function and not span.compiler_only and span.code not in known]
    return Evidence(
        len(inner),
        len(inner) - len(unrun),
        any(span.in_function for span in inner),
        tuple(texts[span.first - 1].strip() for span in new),
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """The lines of a statement's own text. Executed lines up to ``proof`` show that it ran. ``code`` is the same for
    statements that differ only in their place and in comments.
    """

    first: int
    last: int
    proof: int
    in_function: bool
    compiler_only: bool
    code: str

    def holds(self, other: _Span) -> bool:
        mine, its = (self.first, self.last), (other.first, other.last)
        return mine != its and mine[0] <= its[0] and its[1] <= mine[1]


def _spans(node: ast.AST, in_function: bool = False, compiler_only: bool = False) -> Iterator[_Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            first, last, proof = _lines(child)
            is_function = isinstance(child, FUNCTIONS)
            yield _Span(first, last, proof, in_function or is_function, compiler_only, ast.dump(child))
        asks = isinstance(child, ast.If) and asks_for_compiling(child.test)
        yield from _spans(child, in_function or isinstance(child, FUNCTIONS), compiler_only or asks)


def _lines(statement: ast.stmt) -> tuple[int, int, int]:
    last = statement.end_lineno or statement.lineno
    if isinstance(statement, FUNCTIONS):
        # Decorators and the signature take effect when the body runs.
        first = min([statement.lineno, *(one.lineno for one in statement.decorator_list)])
        return first, statement.body[0].lineno - 1, last
    body = getattr(statement, "body", None)
    if body:
        head = max(statement.lineno, body[0].lineno - 1)
        return statement.lineno, head, head
    return statement.lineno, last, last


@dataclass(frozen=True, slots=True)
class _SameLine:
    """The numbers of a line of the old text and of the only equal line of the new one, from 1."""

    before: int
    after: int


def replaced_tests(before: str, after: str, lines: SourceMap) -> list[ast.expr]:
    """Returns the tested expressions of the old text that the new one has no longer, or across which a line of their
    function has moved, in source order. ``lines`` says where the lines of the new text come from. Raises SyntaxError.

    A test of whether code is being compiled is not among them: the compiler decides its outcome.
    """
    old, new = before.split("\n"), after.split("\n")
    tree = ast.parse(before)
    outline = Outline(tree)
    kept = {origin + 1: at + 1 for at, origin in enumerate(lines.origins) if old[origin].strip() == new[at].strip()}
    same = _same_lines(old, new, outline, Outline(ast.parse(after)))

    def is_replaced(test: ast.expr) -> bool:
        place = kept.get(test.lineno)
        if place is None or not all(line in kept for line in range(test.lineno, (test.end_lineno or test.lineno) + 1)):
            return True
        around = same.get(_function(outline, test.lineno), ())
        return any((line.before < test.lineno) != (line.after < place) for line in around if line.before != test.lineno)

    nodes = [one.node for one in tested_expressions(tree)]
    found = [node for node in nodes if not asks_for_compiling(node) and is_replaced(node)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def statement_around(text: str, test: ast.expr) -> range:
    """Returns the lines of the innermost statement of a text around a tested expression of it."""
    lines = range(test.lineno, (test.end_lineno or test.lineno) + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= test.lineno <= (node.end_lineno or node.lineno):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return lines


def _same_lines(
    old: Sequence[str], new: Sequence[str], outline: Outline, new_outline: Outline
) -> Mapping[str, Sequence[_SameLine]]:
    """The lines that both texts have once, by the function that they are in. A moved line is known by its text alone,
    so one that stands twice is not recognized.
    """
    was, now = (Counter(line.strip() for line in text) for text in (old, new))
    places = {line.strip(): number for number, line in enumerate(new, 1)}
    found: dict[str, list[_SameLine]] = defaultdict(list)
    for number, line in enumerate(old, 1):
        text = line.strip()
        if text and was[text] == now[text] == 1:
            function = _function(outline, number)
            if function and function == _function(new_outline, places[text]):
                found[function].append(_SameLine(number, places[text]))
    return found


def _function(outline: Outline, line: int) -> str:
    """The qualified name of the function around a line; empty at the top level."""
    function = outline.function_at(line)
    return function.qualname if function else ""
