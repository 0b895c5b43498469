"""Spreads the calls that an edit wrote over several lines, where a line would be wider than the file."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breakscan.fix.support.walking import children

_WIDTHS = (79, 88, 100, 120)
_USUAL = 88
_ENOUGH_LINES = 60
"""The lines from which on the longest line of a file shows the width that it is wrapped at."""
_MOST_STEPS = 20


def width_of(text: str) -> int:
    """The width at which a file is wrapped, as its longest line shows."""
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    found = next((width for width in _WIDTHS if longest <= width + (width == _WIDTHS[0])), _WIDTHS[-1])
    return found if len(lines) >= _ENOUGH_LINES else max(found, _USUAL)


def fitted(statement: cst.BaseStatement, indent: int, text: str, module: cst.Module) -> cst.BaseStatement:
    """A new statement of a file with the old ``text``, at an indentation in columns.  Lines that the file has are left
    as they are."""
    width = width_of(text) - indent
    old = {line.strip() for line in text.splitlines() if len(line) > width + indent}

    def is_wide(line: str) -> bool:
        return len(line.split("  # ")[0]) > width and line.strip() not in old and not line.lstrip().startswith("#")

    for _ in range(_MOST_STEPS):
        lines = module.code_for_node(statement).splitlines()
        if len(lines) == 1 and not is_wide(lines[0]):
            break
        for node, depth in _calls_in(statement, 0):
            code = module.code_for_node(node)
            first = next((line for line in lines if code.partition("\n")[0] in line), "")
            if code not in text and (_holds_lines(node, code) or ("\n" not in code and is_wide(first))):
                base = first[: len(first) - len(first.lstrip())][len(module.default_indent) * depth :]
                made = statement.deep_replace(node, _spread(node, base, module.default_indent))
                assert isinstance(made, cst.BaseStatement)
                statement = made
                break
        else:
            break
    return statement


def _calls_in(node: cst.CSTNode, depth: int) -> Iterator[tuple[cst.Call, int]]:
    """The calls with arguments, the outer ones first, each with the number of blocks of the statement around it."""
    if isinstance(node, cst.Call) and node.args and not isinstance(node.args[0].value, cst.GeneratorExp):
        yield node, depth
    if not isinstance(node, cst.FormattedString):  # before Python 3.12, its fields have one line
        for child in children(node):
            yield from _calls_in(child, depth + isinstance(node, cst.IndentedBlock))


def _holds_lines(node: cst.Call, code: str) -> bool:
    """True if an argument of a call with several, all in one line, has several lines."""
    spaces = [node.whitespace_before_args, *(getattr(one.comma, "whitespace_after", None) for one in node.args)]
    return (
        "\n" in code and len(node.args) > 1 and not any(isinstance(one, cst.ParenthesizedWhitespace) for one in spaces)
    )


def _spread(node: cst.Call, base: str, unit: str) -> cst.Call:
    """A call with one argument per line."""
    inside, after = _newline(base + unit), _newline(base)
    args = [cst.ensure_type(arg.visit(_Deeper(unit)), cst.Arg) for arg in node.args]
    if len(args) == 1:
        only = args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=after)
        return node.with_changes(args=[only], whitespace_before_args=inside)
    ends = [*[inside] * (len(args) - 1), after]
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
