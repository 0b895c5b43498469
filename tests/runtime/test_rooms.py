"""The rooms of the runtime half: what runs in a program's process knows nothing of digests and judgements."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import breakscan

RUNTIME = Path(breakscan.__file__).parent / "runtime"
PREFIX = "breakscan.runtime."
FORBIDDEN = {"explain": ("gates",), "gates": ()}
"""What a room must not import; of those that are not named here, both."""
ONLY = {"parsers": ("records", "parsers"), "tracelog": ("records", "parsers", "traced", "tracelog")}
"""Of the runtime half, all that a room may import."""


def imported(path: Path) -> list[str]:
    """The modules of the runtime half that a file imports, from the folder on."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names]
    names += [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]


@pytest.mark.parametrize("path", sorted(RUNTIME.rglob("*.py")), ids=lambda p: p.relative_to(RUNTIME).as_posix())
def test_a_file_imports_no_room_above_its_own(path: Path) -> None:
    own = path.relative_to(RUNTIME).parts[0]
    rooms = {name.partition(".")[0] for name in imported(path)}
    assert not rooms & set(FORBIDDEN.get(own, ("explain", "gates")))
    if own in ONLY:
        assert rooms <= set(ONLY[own])
