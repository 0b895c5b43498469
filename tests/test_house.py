"""The house: which room may import which, how large each may be, and what the static half never imports.

A room is a folder of ``breakscan/``.  It imports rooms further up in ``ROOMS`` alone, and grows only by a commit that
changes its row here and says why.
"""

import ast
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.trees import FILES, PACKAGE, trees


class Room(NamedTuple):
    imports: str
    """The rooms that it may import besides itself, also for types and inside functions."""
    lines: int
    files: int


STATIC = "model source rulebook"
ROOMS = {
    "model": Room("", 1157, 9),
    "source": Room("model", 1754, 14),
    "rulebook": Room("model source", 2417, 12),
    "check": Room(STATIC, 10865, 40),
    "fix": Room(f"{STATIC} check", 6842, 36),
    "recording": Room(STATIC, 7845, 30),
    "explanation": Room(f"{STATIC} check recording", 5817, 20),
    "survey": Room(f"{STATIC} check recording explanation", 1585, 7),
    "prove": Room(f"{STATIC} check fix recording explanation", 11662, 32),
    "report": Room(f"{STATIC} check fix recording explanation survey prove", 5206, 32),
    "serve": Room(f"{STATIC} check fix recording explanation survey prove report", 1160, 10),
    "cli": Room(f"{STATIC} check fix recording explanation survey prove report serve", 2917, 27),
    # api.py, notebook.py, pytest_plugin.py, __main__.py
    "": Room(f"{STATIC} check fix recording explanation survey prove report serve cli", 773, 5),
}
INSIDE = {
    "check": ("project", "interpreter", "compile_uses", "pipeline"),
    "fix": ("support", "rewrites"),
    "recording": ("parsers", "hooks", "bootstrap"),
}
"""Folders inside a room of which each imports none of those after it."""
WITHOUT_TORCH = ("model", "source", "rulebook", "check", "fix", "report")
"""Rooms that read or write code that names torch, and never import it."""


def room_of(module: str) -> str:
    part = module.split(".")[1] if "." in module else ""
    return part if part in ROOMS else ""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, name: str, is_package: bool, known: Mapping[str, object]) -> set[str]:
    """The modules of the package that a module names in import statements, wherever they stand."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".") if is_package else name.split(".")[:-1]
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in known else base)
    return {module for module in found if module in known}


def components(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The strongly connected components (Tarjan), those of one module without a loop left out."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            cut = stack.index(module)
            group = frozenset(stack[cut:])
            del stack[cut:]
            if len(group) > 1 or module in graph[module]:
                found.append(group)

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found


@functools.cache
def import_graph() -> dict[str, set[str]]:
    paths = {module_name(path): path for path in FILES}
    graph = {name: imported(trees()[path], name, path.name == "__init__.py", paths) for name, path in paths.items()}
    # The package offers what users import, and everything may read its version: the one edge that points upwards.
    graph["breakscan"].discard("breakscan.api")
    return graph


def test_modules_do_not_import_one_another() -> None:
    found = components(import_graph())
    assert not found, [sorted(group) for group in found]


def test_a_cycle_is_found() -> None:
    assert components({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [frozenset("abc")]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room or "top")
def test_imports_point_downwards(room: str) -> None:
    upwards = {
        f"{importer} imports {module}"
        for importer, modules in import_graph().items()
        for module in modules
        if room_of(importer) == room and room_of(module) not in {room, *ROOMS[room].imports.split()}
        # Everything may read the version.
        if module != "breakscan"
    }
    assert not upwards


@pytest.mark.parametrize("room", INSIDE)
def test_folders_of_a_room_import_downwards(room: str) -> None:
    def rank(module: str) -> int | None:
        _, own, folder, *_ = [*module.split("."), "", ""]
        return INSIDE[room].index(folder) if own == room and folder in INSIDE[room] else None

    graph = import_graph()
    ranks = [(importer, rank(importer), module, rank(module)) for importer in graph for module in graph[importer]]
    upwards = [(importer, module) for importer, a, module, b in ranks if a is not None and b is not None and b > a]
    assert not upwards


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room or "top")
def test_a_room_keeps_its_size(room: str) -> None:
    paths = [path for path in FILES if room_of(module_name(path)) == room]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
    assert lines <= ROOMS[room].lines
    assert len(paths) <= ROOMS[room].files


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_the_static_half_names_no_torch(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(trees()[path]):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] in ("torch", "numpy", "jinja2")], path


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in trees()[path].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


READS = {
    "open",
    "read_bytes",
    "read_text",
    "read_file",
    "read_regular_file",
    "read_source",
    "source_lines",
    "getline",
    "getlines",
    "getsource",
    "is_file",
    "exists",
}
MAY_READ = {
    "explanation": {"gates.py", "remedies.py"},
    "recording/parsers": set(),
    "recording/records.py": set(),
    # The logs that the user names, and a file of the installed torch.
    "recording/tracelog.py": {"tracelog.py"},
    # Parts of the page itself, and the table of libraries.
    "report/explain": {"write.py"},
    "report/diff.py": set(),
}


@pytest.mark.parametrize("folder", MAY_READ)
def test_recorded_paths_are_opened_by_source_files_alone(folder: str) -> None:
    """A recording or a log can come from anyone: source/source_files.py decides which of the files that it names may
    be opened."""
    found = set()
    for path in [PACKAGE / folder] if folder.endswith(".py") else (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(trees()[path]):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name in READS:
                found.add(path.name)
    assert found == MAY_READ[folder]
