"""Finds the tests of a text that a change has replaced, or across which it has moved code."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscan.fix.source_map import SourceMap
from breakscan.source.outline import Outline
from breakscan.source.walking import asks_for_compiling, tested_expressions


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
