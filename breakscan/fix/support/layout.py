"""Splits what an edit wrote over several lines where it is too long for one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support.places import spans_in
from breakscan.fix.support.walking import children

_WIDTHS = (79, 88, 100, 120)
_USUAL = 88
_ENOUGH_LINES = 60
"""The lines from which on the longest line of a file shows the width that it is wrapped at."""
_MOST_STEPS = 20

_BRACKETED = cst.Arg | cst.SubscriptElement | cst.List | cst.Dict | cst.Set | cst.BaseComp
Branching = cst.BooleanOperation | cst.BinaryOperation | cst.IfExp


def width_of(text: str) -> int:
    """The width at which a file is wrapped, as its longest line shows."""
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    found = next((width for width in _WIDTHS if longest <= width + (width == _WIDTHS[0])), _WIDTHS[-1])
    return found if len(lines) >= _ENOUGH_LINES else max(found, _USUAL)


def fitted(statement: cst.BaseStatement, indent: int, text: str, module: cst.Module) -> cst.BaseStatement:
    """A new statement of a file with the old ``text``, at an indentation in columns, wrapped at the file's width.

    Lines that the file has are left as they are.
    """
    code = module.code_for_node(statement)
    width = width_of(text) - indent
    old = {line.strip() for line in text.splitlines() if len(line) > width + indent}
    if not _too_long(code, width, old) and "\n" not in code.strip():
        return statement
    config = module.config_for_parsing
    for _ in range(_MOST_STEPS):
        changed = _step(code, width, old, text, config)
        if changed is None:
            break
        code = changed
    parsed = cst.parse_module(code, config).body[0]
    return parsed.with_changes(leading_lines=getattr(statement, "leading_lines", ()))


def _too_long(code: str, width: int, old: Collection[str]) -> list[int]:
    """The lines that are too long, not counting comments at their ends, from 1."""
    return [
        number
        for number, line in enumerate(code.splitlines(), 1)
        if len(line.split("  # ")[0]) > width and line.strip() not in old and not line.lstrip().startswith("#")
    ]


def _step(code: str, width: int, old: Collection[str], text: str, config: cst.PartialParserConfig) -> str | None:
    """The code with one more expression split, or None if there is none."""
    module = cst.parse_module(code, config)
    spans = spans_in(module)
    lines = code.splitlines()
    found = _Place(module, {}, lines)
    for node, parent in _nodes(module):
        found.parents[node] = parent

    def span(node: cst.CSTNode) -> tuple[int, int]:
        return spans[node][0], spans[node][2]

    for node in found.parents:
        if isinstance(node, cst.Call) and _holds_lines(node, span) and module.code_for_node(node) not in text:
            return found.replaced(node, _spread(node, *found.whitespace(node, span(node)[0])))
    for number in _too_long(code, width, old):
        best = code
        # `_nodes` gives outer nodes first.
        for node in (one for one in found.parents if _can_split(one) and span(one) == (number, number)):
            base, unit = found.whitespace(node, number)
            for made, lines_needed in found.split(node, base, unit):
                changed = found.replaced(node, made)
                if not {number, number + lines_needed} & {*_too_long(changed, width, old)}:
                    return changed
                best = min(best, changed, key=lambda one: _longest(one, number))
        if best != code:
            return best
    return None


def _longest(code: str, number: int) -> tuple[int, int]:
    """The length of a line and of the longest one."""
    lines = code.splitlines()
    return len(lines[number - 1]), max(map(len, lines))


def _nodes(module: cst.Module) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    pending: list[cst.CSTNode] = [module]
    while pending:
        node = pending.pop(0)
        for child in children(node):
            yield child, node
            if not isinstance(child, cst.FormattedString):  # before Python 3.12, its fields have one line
                pending.append(child)


def _can_split(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        return bool(node.args) and not isinstance(node.args[0].value, cst.GeneratorExp)
    return isinstance(node, Branching)


def _holds_lines(node: cst.Call, span: Callable[[cst.CSTNode], tuple[int, int]]) -> bool:
    """True if an argument of a call with several, all in one line, has several lines."""
    if len(node.args) < 2 or isinstance(node.whitespace_before_args, cst.ParenthesizedWhitespace):
        return False
    return any(len(set(span(one.value))) > 1 for one in node.args) and not any(
        isinstance(one.comma, cst.Comma) and isinstance(one.comma.whitespace_after, cst.ParenthesizedWhitespace)
        for one in node.args
    )


@dataclass(frozen=True, slots=True)
class _Place:
    module: cst.Module
    parents: dict[cst.CSTNode, cst.CSTNode]
    lines: list[str]

    def whitespace(self, node: cst.CSTNode, line: int) -> tuple[str, str]:
        """The whitespace in front of the line of a node, after that of its block; and one level of indentation."""
        depth = sum(isinstance(one, cst.IndentedBlock) for one in self._around(node))
        text = self.lines[line - 1]
        unit = self.module.default_indent
        return text[: len(text) - len(text.lstrip())][len(unit) * depth :], unit

    def split(self, node: cst.CSTNode, base: str, unit: str) -> Iterator[tuple[cst.CSTNode, bool]]:
        """The ways to split an expression, the best one first, and whether its second line must fit as well."""
        inside, behind = _newline(base + unit), _newline(base)
        if isinstance(node, cst.Call):
            yield _spread(node, base, unit), False
        elif isinstance(node, Branching):
            if self._is_in_brackets(node):
                yield _split(node, base), False
            else:
                both = {"lpar": [cst.LeftParen(inside)], "rpar": [cst.RightParen(behind)]}
                yield node.with_changes(**both), True
                yield _split(node, base + unit).with_changes(**both), False

    def _is_in_brackets(self, node: Branching) -> bool:
        if node.lpar:
            return isinstance(node.lpar[0].whitespace_after, cst.ParenthesizedWhitespace)
        return any(isinstance(one, _BRACKETED) or getattr(one, "lpar", ()) for one in self._around(node))

    def replaced(self, node: cst.CSTNode, made: cst.CSTNode) -> str:
        changed = self.module.deep_replace(node, made)
        return cst.ensure_type(changed, cst.Module).code

    def _around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        while (above := self.parents.get(node)) is not None:
            yield above
            node = above


def _split(node: Branching, base: str) -> Branching:
    """An expression with a line for each operand of its operator."""
    newline = _newline(base)
    if isinstance(node, cst.IfExp):
        return node.with_changes(whitespace_before_if=newline, whitespace_before_else=newline)
    left = node.left
    if isinstance(left, Branching) and type(left) is type(node) and not left.lpar and _alike(left, node):
        left = _split(left, base)
    return node.with_changes(left=left, operator=node.operator.with_changes(whitespace_before=newline))


def _alike(left: Branching, node: Branching) -> bool:
    if isinstance(left, cst.IfExp) or isinstance(node, cst.IfExp):
        return False
    return type(left.operator) is type(node.operator)


def _spread(node: cst.Call, base: str, unit: str) -> cst.Call:
    """A call with one argument per line."""
    inside, behind = _newline(base + unit), _newline(base)
    args = [cst.ensure_type(arg.visit(_Deeper(unit)), cst.Arg) for arg in node.args]
    if len(args) == 1:
        only = args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=behind)
        return node.with_changes(args=[only], whitespace_before_args=inside)
    ends = [*[inside] * (len(args) - 1), behind]
    args = [one.with_changes(comma=cst.Comma(whitespace_after=end)) for one, end in zip(args, ends, strict=True)]
    return node.with_changes(args=args, whitespace_before_args=inside)


class _Deeper(cst.CSTTransformer):
    """Indents the lines inside an expression by one more level."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def leave_ParenthesizedWhitespace(
        self, _: cst.ParenthesizedWhitespace, new: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        lines = [one.with_changes(whitespace=self._deeper(one.whitespace)) for one in new.empty_lines if one.comment]
        return new.with_changes(last_line=self._deeper(new.last_line), empty_lines=lines)

    def _deeper(self, whitespace: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        return cst.SimpleWhitespace(self.unit + whitespace.value)


def _newline(indent: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(indent))
