"""The functions of a file by their names, so that they are known again after they have moved."""

from __future__ import annotations

from collections import Counter

from breakscan.source.module import SourceModule
from breakscan.source.outline import Outline, OutlineEntry


def functions_by_name(module: SourceModule) -> dict[str, OutlineEntry]:
    """The functions and classes of a file, by their qualified names without ``<locals>``; none for a name that several
    have."""
    scopes = Outline(module.tree).scopes
    names = Counter(scope.path for scope in scopes)
    return {scope.path: scope for scope in scopes if names[scope.path] == 1}


def code_of(module: SourceModule, scope: OutlineEntry) -> str:
    """The lines of a function, with its decorators."""
    return "\n".join(module.lines[scope.first_line - 1 : scope.last_line])
