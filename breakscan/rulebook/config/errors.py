"""What is wrong with a configuration."""

from __future__ import annotations

from pathlib import Path


class ConfigError(Exception):
    """A configuration file or option is wrong.  Names the file and line (from 1), or the option, and the key."""

    def __init__(self, message: str, *, path: Path | None = None, line: int = 1, key: str | None = None) -> None:
        self.path = path
        self.line = line
        self.key = key
        self.reason = message
        where = f"{path}:{line}: " if path else ""
        what = (key if path else f"--{key}") if key else ""
        super().__init__(f"{where}{what}{': ' if what else ''}{message}")
