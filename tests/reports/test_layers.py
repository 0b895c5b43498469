"""``reports/`` is layered: shared parts, then diagnostics, then one folder for each command, then the registry."""

from __future__ import annotations

import ast
import pkgutil
from pathlib import Path

import pytest

import breakscan
from breakscan.reports import formats

REPORTS = Path(breakscan.__file__).parent / "reports"
FILES = sorted(path for path in REPORTS.rglob("*.py") if path.name != "__init__.py")
BELOW = {"shared": {"shared"}, "diagnostics": {"diagnostics", "shared"}}
"""The parts of ``reports`` that the two lowest layers may import; a command may import them and its own folder."""
COMMANDS = [value for value in vars(formats).values() if isinstance(value, formats.Formats)]


def imported_parts(path: Path) -> set[str]:
    """The parts of ``reports`` that a file imports, for types too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {module.split(".")[2] for module in modules if module.startswith("breakscan.reports.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPORTS).as_posix())
def test_no_command_imports_from_another(path: Path) -> None:
    part = path.relative_to(REPORTS).parts[0]
    if part == "formats.py":
        return
    assert imported_parts(path) <= BELOW.get(part, {part, "diagnostics", "shared"})


def test_every_format_of_the_registry_can_be_imported() -> None:
    assert len(COMMANDS) == 10
    for command in COMMANDS:
        for name in (*command.writers.values(), *filter(None, [command.producer])):
            assert callable(pkgutil.resolve_name(name))
    for name in formats.DIAGNOSTIC_FORMATS.values():
        assert callable(pkgutil.resolve_name(name))


def test_a_new_format_of_diagnostics_serves_every_command_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(formats.DIAGNOSTIC_FORMATS, "new", "some.file:write_new")
    assert {"new" in command.names for command in (formats.CHECK, formats.EXPLAIN, formats.FIX, formats.VERIFY)} == {
        True
    }
    assert "new" not in formats.BENCH.names
