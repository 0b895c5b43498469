"""Tables and code spans in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table.  Cells are Markdown of one line; their bars are escaped."""
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """A code span, also of text that holds backticks."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"
