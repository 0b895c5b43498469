"""Which files decide about others: configurations, rules and ``.gitignore``."""

from __future__ import annotations

from pathlib import Path

WATCHED = ("**/*.py", "**/*.ipynb", "**/*.toml", "**/.gitignore", "**/BRK*.md")
"""The files that editors are asked to tell of, as patterns of the protocol."""


def is_settings_file(path: Path) -> bool:
    """Whether all may be different after a change of a file: a configuration can extend any other TOML file."""
    return path.suffix in (".toml", ".md") or path.name == ".gitignore"
