"""Errors of the rulebook."""

from __future__ import annotations

from pathlib import Path


class RuleError(Exception):
    """A rule document is malformed.  Names the file, the line (from 1) and, if there is one, the key."""

    def __init__(self, path: Path | str, line: int, message: str, key: str | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.key = key
        self.reason = message
        where = f" [{key}]" if key else ""
        super().__init__(f"{path}:{line}:{where} {message}")
