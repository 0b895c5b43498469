"""The levels of the runtime half: what runs in a program's process knows nothing of explanations and gates."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import breakscan

RUNTIME = Path(breakscan.__file__).parent / "runtime"
PREFIX = "breakscan.runtime."
LEVELS = (
    ("records", "cells", "exit_status", "job", "launch", "requests_file", "torch_internals"),
    ("parsers", "recording", "compile_option"),
    ("traced", "record_counts", "session"),
    ("cache_lookups", "hooks", "recent_runs", "spans", "trace_fallback", "waiting"),
    ("replay", "trace_and_hooks", "tracelog"),
    ("recorder",),
    ("bootstrap",),
    ("explain",),
    ("gates",),
)
"""Folders and files of ``runtime/``.  Each imports those of the levels before its own."""
NEVER = {"explain": {"hooks", "recorder", "bootstrap", "replay"}, "tracelog": {"hooks", "recorder"}}
"""What a folder must not import although it is on a lower level: reports are made without the program's torch."""


def imported(path: Path) -> list[str]:
    """The modules of the runtime half that a file imports, from the folder on."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names]
    names += [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]


def level(part: str) -> int:
    return next(number for number, parts in enumerate(LEVELS) if part in parts)


@pytest.mark.parametrize("path", sorted(RUNTIME.rglob("*.py")), ids=lambda p: p.relative_to(RUNTIME).as_posix())
def test_a_file_imports_lower_levels_only(path: Path) -> None:
    own = path.relative_to(RUNTIME).parts[0].removesuffix(".py")
    for part in {name.partition(".")[0] for name in imported(path)} - {own}:
        assert level(part) < level(own), f"{own} imports {part}"
        assert part not in NEVER.get(own, ())
