"""No import cycles: what is imported for types alone and what functions import counts too."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import breakscan

PACKAGE = Path(breakscan.__file__).parent


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


def import_graph() -> dict[str, set[str]]:
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    graph = {
        name: imported(ast.parse(path.read_text(encoding="utf-8")), name, path.name == "__init__.py", paths)
        for name, path in paths.items()
    }
    # The package offers what users import, and everything may read its version: the one edge that points upwards.
    graph["breakscan"].discard("breakscan.api")
    return graph


def test_modules_do_not_import_one_another() -> None:
    found = components(import_graph())
    assert not found, [sorted(group) for group in found]


def test_a_cycle_is_found() -> None:
    assert components({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [frozenset("abc")]


LEVELS_OF_ANALYSIS = ("project", "interpreter", "compile_uses", "pipeline")
"""Each folder of ``analysis/`` imports those before it alone."""


def test_folders_of_analysis_import_downwards() -> None:
    prefix = "breakscan.analysis."
    for importer, modules in import_graph().items():
        for module in modules:
            if importer.startswith(prefix) and module.startswith(prefix):
                ranks = [LEVELS_OF_ANALYSIS.index(name.split(".")[2]) for name in (module, importer)]
                assert ranks[0] <= ranks[1], f"{importer} imports {module}"
