"""Recognizes syntax that is newer than the Python that runs breakscan, and so than its parser."""

from __future__ import annotations

import re
import sys

FEATURES = (
    ((3, 11), "except*", re.compile(r"\s*except\s*\*")),
    ((3, 12), "the type statement", re.compile(r"\s*type\s+\w+\s*(\[.*\]\s*)?=")),
    ((3, 12), "type parameters", re.compile(r"\s*(async\s+)?(def|class)\s+\w+\s*\[")),
    ((3, 14), "a t-string", re.compile(r".*(?<!\w)([tT][rR]?|[rR][tT])['\"]")),
)
"""The first Python version with the feature, the feature, and the line at which an older parser fails."""
NESTED_FSTRINGS = (3, 12)


def newer_syntax_hint(line: str, message: str, running: tuple[int, int] = sys.version_info[:2]) -> str | None:
    """The newer Python that a line with a syntax error needs, by the parser's message; None if it needs none."""
    for version, feature, pattern in FEATURES:
        if running < version and pattern.match(line):
            return f"{feature} needs Python {_dotted(version)}, {_remedy(running)}"
    if running < NESTED_FSTRINGS and message.startswith("f-string"):
        return f"such an f-string may need Python {_dotted(NESTED_FSTRINGS)}, {_remedy(running)}"
    return None


def _remedy(running: tuple[int, int]) -> str:
    return f"and breakscan runs on {_dotted(running)}: run it with a newer one"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
