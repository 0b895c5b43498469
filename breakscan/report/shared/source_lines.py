"""The source lines that a report shows."""

from __future__ import annotations

from breakscan.source.module import SourceProblem
from breakscan.source.remembered import source_text


def source_lines(path: str) -> list[str]:
    """The lines of a file, or of remembered code, by its path in a report; none where they cannot be read."""
    try:
        return source_text(path).split("\n")
    except (OSError, ValueError, SourceProblem):  # a path with a NUL is a ValueError
        return []
