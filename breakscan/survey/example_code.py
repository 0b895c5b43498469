"""The code of the examples in a docstring."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

_FENCED = re.compile(r"^```(?:py|python|pycon)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"(?:^|[^:])::$|^\.\. (?:code-block|code|testcode|sourcecode)::(?: *python)?$")
_GPU = (
    (re.compile(r"""(["'])cuda(?::\d+)?\1"""), '"cpu"'),
    (re.compile(r"\.cuda\([^()]*\)"), ".cpu()"),
)  # fmt: skip
"""A unit is the same on all machines, and moves what it is given to its device itself."""


def statements(docstring: str) -> Iterator[str]:
    """The statements of all examples, one after the other."""
    text = inspect.cleandoc(docstring)
    for pattern, instead in _GPU:
        text = pattern.sub(instead, text)
    for code in _prompted(text) or _blocks(text):
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError):
            continue
        yield from map(ast.unparse, tree.body)


def _prompted(text: str) -> list[str]:
    """The lines after the prompts of Python, those as one piece that no output stands between."""
    pieces: list[list[str]] = [[]]
    for line in text.splitlines():
        found = re.match(r"\s*(>>>|\.\.\.)(?: (.*)|$)", line)
        if found is None:
            pieces.append([])
        else:
            pieces[-1].append(found[2] or "")
    return ["\n".join(piece) for piece in pieces if piece]


def _blocks(text: str) -> list[str]:
    """What stands between fences, and what is indented below ``::``."""
    found = _FENCED.findall(text)
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if _BLOCK.search(line.strip()):
            depth = _depth(line)
            inner = []
            for later in lines[number:]:
                if later.strip() and _depth(later) <= depth:
                    break
                inner.append(later)
            found.append(inspect.cleandoc("\n" + "\n".join(inner)))
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
