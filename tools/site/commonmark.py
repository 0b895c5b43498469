"""Makes the site show what a code host shows.

The documents are CommonMark, as code hosts read it.  Python-Markdown, which MkDocs uses, wants a blank line before a
list and four spaces for what is in one.
"""

from __future__ import annotations

import re

ITEM = re.compile(r"( *)(?:[-*]|\d+\.) +(?=\S)")
FENCE = re.compile(r" *(`{3,}|~{3,})")
WIDTH = 4
"""The spaces by which Python-Markdown nests."""


def adapted(text: str) -> str:
    """The text with lists as Python-Markdown reads them."""
    lines: list[str] = []
    items: list[tuple[int, int]] = []  # of each list around the line: the columns of its bullet and of its text
    fence = ""
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        opened = FENCE.match(line)
        item = ITEM.match(line)
        after_text = bool(lines) and lines[-1] != ""
        if fence or not line.strip():
            fence = "" if line.strip() == fence else fence
        elif item:
            is_first = not items
            while items and indent <= items[-1][0]:
                items.pop()
            if is_first and after_text:
                lines.append("")
            lines.append(" " * WIDTH * len(items) + line[indent:])
            items.append((indent, item.end()))
            continue
        elif opened or not after_text or line.startswith(("#", "|")):
            while items and indent < items[-1][1]:
                items.pop()
            if opened:
                fence = opened[1]
                lines += [""] if items and after_text else []
        lines.append(_moved(line, items[-1][1] if items else 0, len(items)))
    return "\n".join(lines)


def _moved(line: str, column: int, depth: int) -> str:
    """A line that began at a column, in a list of that depth."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * (WIDTH * depth + max(0, indent - column)) + line.lstrip(" ") if line.strip() else ""
