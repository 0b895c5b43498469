"""The entries of ``libraries.toml``: advice for the users of a library where the code at hand is the library's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import resources

from breakscan.explanation.context import package_of
from breakscan.source.toml_text import parse_toml


class Against(Enum):
    """The subject of an entry of the table."""

    SIZE = "size"
    ARGUMENTS = "arguments"
    CODE = "code"


def known_for_library(path: str, against: Against, subject: str = "", dimension: str = "") -> str | None:
    """The advice of the first entry for the library that fits, if any does."""
    for entry in libraries().get(package_of(path) or "", ()):
        if (
            entry["against"] == against.value
            and entry.get("within", "") in path
            and entry.get("of", "") in subject
            and entry.get("dimension", dimension) == dimension
        ):
            return entry["advice"]
    return None


@cache
def libraries() -> Mapping[str, Sequence[Mapping[str, str]]]:
    """The table: its entries by the name of the package."""
    return parse_toml((resources.files(__package__) / "libraries.toml").read_text(encoding="utf-8"))
