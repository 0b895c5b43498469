"""Adds suppression comments to a text: see :mod:`breakscan.source.suppressions`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_RULES_OF_IGNORE = re.compile(r"(#\s*breakscan:\s*ignore\s*\[[^\]]*?)\s*,?\s*(?=\])")


@dataclass(slots=True)
class _Statement:
    """A logical line from ``first`` to ``last``.  ``ends`` has the lines that can end with a comment, each with the
    column of its end, and ``comments`` where those start that do."""

    first: int
    last: int
    ends: dict[int, int] = field(default_factory=dict)
    comments: dict[int, int] = field(default_factory=dict)

    def place(self, line: int) -> int:
        """The line for a comment about a line: itself, else the next one that can have it; the last one always can."""
        return next(number for number in range(line, self.last + 1) if number in self.ends)


def with_suppressions(text: str, rules: Mapping[int, Iterable[str]], reason: str) -> str:
    """The text with a comment that suppresses ``rules``, by line, in the statement of each line.

    A comment that suppresses other rules there gets these as well; any other comment stays in front.  Raises
    TokenError or SyntaxError where the text is no Python.
    """
    lines = text.split("\n")
    statements = list(_statements(text))
    wanted: dict[int, set[str]] = {}
    comments: dict[int, int] = {}
    for line, names in rules.items():
        statement = next(one for one in statements if one.first <= line <= one.last)
        at = _existing(statement, lines) or statement.place(line)
        wanted.setdefault(at, set()).update(names)
        comments |= statement.comments
    for at, names in wanted.items():
        lines[at - 1] = _with_comment(lines[at - 1], comments.get(at), sorted(names), reason)
    return "\n".join(lines)


def _existing(statement: _Statement, lines: list[str]) -> int | None:
    """The line of a comment in the statement that suppresses some rules."""
    return next((line for line, at in statement.comments.items() if _RULES_OF_IGNORE.search(lines[line - 1], at)), None)


def _with_comment(line: str, comment: int | None, names: list[str], reason: str) -> str:
    if comment is not None and (match := _RULES_OF_IGNORE.search(line, comment)):
        known = [word.strip() for word in match[1].partition("[")[2].split(",") if word.strip()]
        more = [name for name in names if name not in known]
        return f"{line[: match.start()]}{match[1]}{''.join(f', {name}' for name in more)}{line[match.end() :]}"
    return f"{line.rstrip()}  # breakscan: ignore[{', '.join(names)}] {reason}".rstrip()


def _statements(text: str) -> Iterable[_Statement]:
    current: _Statement | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line, column = token.start
        if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        if current is None:
            if token.type in (tokenize.NL, tokenize.COMMENT):
                continue
            current = _Statement(line, line)
        if token.type == tokenize.COMMENT:
            current.comments[line] = column
        elif token.type in (tokenize.NL, tokenize.NEWLINE):
            current.ends[line] = column
            if token.type == tokenize.NEWLINE:
                current.last = line
                yield current
                current = None
