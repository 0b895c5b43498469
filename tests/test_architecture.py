"""The layout holds: imports point downwards, a class name means one thing, and the static half stays free of torch.

Further rules have tests of their own: no import cycle and the levels inside ``analysis/`` (``test_import_cycles.py``),
the levels inside ``reports/`` (``reports/test_layers.py``) and ``runtime/`` (``runtime/test_levels.py``), no decision
by comparing with English (``test_prose.py``), no lists of torch's functions outside ``torch_facts/``
(``test_torch_names.py``), torch's private names in one table (``runtime/test_torch_internals.py``), and a row in
``docs/coverage.md`` for each break id of a rule (``rulebook/test_coverage.py``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import breakscan

PACKAGE = Path(breakscan.__file__).parent
LEVELS = {
    "findings": 0,
    "facts": 0,
    "observations": 0,
    "cores": 0,
    "dataclass_json": 0,
    "source": 1,
    "torch_facts": 0,
    "torch_versions": 0,
    "rewrite_support": 1,
    "rewrites": 2,
    "rulebook": 2,
    "config": 3,
    "analysis": 4,
    "runtime": 4,
    "agreement": 5,
    "baseline": 4,
    "repair": 5,
    "repro": 5,
    "survey": 5,
    "worker": 6,
    "bench": 7,
    "verify": 7,
    "reports": 8,
    "server": 9,
    "mcp_server": 9,
    "cli": 10,
    "api": 10,
    "notebook": 11,
    "pytest_plugin": 11,
    "__main__": 11,
}
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py")


def folder_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "breakscan" and len(parts) > 1 else None


def imported_folders(tree: ast.Module) -> set[str]:
    """Imports under ``TYPE_CHECKING`` and inside functions count as well."""
    found: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {folder_of(node.module)}
        elif isinstance(node, ast.Import):
            found |= {folder_of(alias.name) for alias in node.names}
    return {folder for folder in found if folder in LEVELS}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for folder in imported_folders(ast.parse(path.read_text(encoding="utf-8"))) - {own}:
        assert LEVELS[folder] < LEVELS[own], f"{own} imports {folder}"


def test_every_file_and_folder_has_a_level() -> None:
    found = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert found - {"__init__"} == set(LEVELS)


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize(
    "folder", ["analysis", "rulebook", "source", "torch_facts", "rewrite_support", "rewrites", "repair", "reports"]
)
def test_the_static_half_names_no_torch(folder: str) -> None:
    for path in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] in ("torch", "numpy", "jinja2")], path


@pytest.mark.process
def test_importing_breakscan_imports_nothing_else() -> None:
    code = "import sys; import breakscan; print([m for m in sys.modules if m.startswith('breakscan.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


READS = {
    "open",
    "read_bytes",
    "read_text",
    "read_file",
    "read_regular_file",
    "read_source",
    "source_text",
    "source_lines",
    "getline",
    "getlines",
    "getsource",
    "is_file",
    "exists",
}
MAY_READ = {
    "runtime/explain": set(),
    "runtime/parsers": set(),
    "runtime/records": set(),
    # The logs that the user names, and a file of the installed torch.
    "runtime/tracelog": {"lines.py", "read.py"},
    "runtime/gates": {"gates.py"},
    "agreement": set(),
    # Parts of the page itself, and the table of libraries.
    "reports/explain": {"write.py", "library_words.py"},
    "reports/diff": set(),
    # The root of the checkout, and the sources that check was asked for.
    "reports/diagnostics": {"checkout.py", "diagnostic.py"},
}


@pytest.mark.parametrize("folder", MAY_READ)
def test_recorded_paths_are_opened_by_source_files_alone(folder: str) -> None:
    """A recording or a log can come from anyone: source/source_files.py decides which of the files that it names may
    be opened."""
    found = set()
    for path in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name in READS:
                found.add(path.name)
    assert found == MAY_READ[folder]
