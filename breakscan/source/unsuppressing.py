"""Takes suppression comments out of a text: see :mod:`breakscan.source.suppressions`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORDS = re.compile(r"#\s*breakscan:\s*[a-z-]+\s*\[([^\]]*)\]")
_NEXT_COMMENT = re.compile(r"\s*(?=#\s*[^\s\d])")
"""What ends the reason of a comment: another one behind it (``# type: ignore``), but not the number of an issue."""


def without_suppressions(text: str, unused: Mapping[tuple[int, int], tuple[str, ...] | None]) -> str:
    """The text without some words of comments, or without the comments (None).  ``unused`` has them by the line and
    column at which each comment begins, both from 1.

    A comment that is left without words goes with its reason, and its line with it if it stood there alone.
    """
    lines = text.split("\n")
    for (line, column), words in sorted(unused.items(), reverse=True):
        before = lines[line - 1]
        lines[line - 1] = after = _without(before, column - 1, words)
        if not after.strip() and before.strip():
            del lines[line - 1]
    return "\n".join(lines)


def _without(line: str, start: int, words: tuple[str, ...] | None) -> str:
    named = _WORDS.match(line, start)
    if words is not None and named is not None:
        kept = [word for word in map(str.strip, named[1].split(",")) if word and word not in words]
        if kept:
            return f"{line[: named.start(1)]}{', '.join(kept)}{line[named.end(1) :]}"
    behind = _NEXT_COMMENT.search(line, start + 1)
    rest = line[behind.end() :] if behind else ""
    return f"{line[:start]}{rest}".rstrip()
