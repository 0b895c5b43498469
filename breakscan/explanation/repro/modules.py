"""The modules whose code a program is made of: what their top levels bind, and where a name leads."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from breakscan.source.module import SourceModule, SourceProblem, parse_module
from breakscan.source.outline import Outline, OutlineEntry
from breakscan.source.source_files import SourceFiles
from breakscan.source.walking import stored_names, walk

_INSTALLED = re.compile(r".*(?:site|dist)-packages/(?P<name>.+?)(?:/__init__)?\.py$")
_MOST_FOLDERS = 5
"""Above a file, in which a module that it imports is looked for."""


@dataclass(eq=False)
class ProgramModule:
    """A file of the run.  ``installed_as`` is the name by which a library's can be imported; None for the program's
    own."""

    path: str
    source: SourceModule
    installed_as: str | None

    @cached_property
    def outline(self) -> Outline:
        return Outline(self.source.tree)

    @cached_property
    def bindings(self) -> dict[str, list[ast.stmt]]:
        """The statements of the top level that bind each name; those under ``if __name__ == "__main__"`` too."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in _top_level(self.source.tree.body):
            for name in _bound_by(statement):
                found.setdefault(name, []).append(statement)
        return found

    @property
    def star_imports(self) -> list[ast.ImportFrom]:
        return [n for n in self.source.tree.body if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]

    def scope(self, name: str) -> OutlineEntry | None:
        """The function or class of that qualified name: the last, if several have it."""
        return next((one for one in reversed(self.outline.scopes) if one.path == name), None)

    def text(self, node: ast.stmt | ast.expr, first_line: int | None = None) -> str:
        """The source of a node from the beginning of its line on, moved to the left margin."""
        start = first_line or node.lineno
        lines = self.source.lines[start - 1 : node.end_lineno]
        blanks = len(lines[0]) - len(lines[0].lstrip())
        return "\n".join(line[blanks:] if not line[:blanks].strip() else line for line in lines).rstrip()


class ProgramModules:
    """Reads the files of a run, each once."""

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        self._known: dict[str, ProgramModule | None] = {}

    def at(self, path: str) -> ProgramModule | None:
        """None for a file that may not be read, or is not Python."""
        if path not in self._known:
            self._known[path] = self._parsed(path)
        return self._known[path]

    def imported(self, importer: ProgramModule, node: ast.ImportFrom) -> str:
        """The absolute name of the module that a ``from`` names."""
        if not node.level:
            return node.module or ""
        parts = (importer.installed_as or "").split(".")
        is_package = importer.path.endswith("__init__.py")
        above = parts[: len(parts) - node.level + is_package]
        return ".".join([*above, *([node.module] if node.module else [])])

    def programs_own(self, importer: ProgramModule, name: str, level: int = 0) -> ProgramModule | None:
        """A module of the program by the name that another one imports it with; None where it is a library's."""
        if importer.installed_as is not None:
            return None
        folder = posixpath.dirname(importer.path)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        for _ in range(1 if level else _MOST_FOLDERS):
            below = posixpath.join(folder, *name.split(".")) if name else folder
            for path in (f"{below}.py", posixpath.join(below, "__init__.py")):
                if (module := self.at(path)) is not None:
                    return module
            if folder in ("", "/"):
                break
            folder = posixpath.dirname(folder)
        return None

    def _parsed(self, path: str) -> ProgramModule | None:
        text = self._files.text(path)
        if text is None:
            return None
        try:
            source = parse_module(text, Path(path), path)
        except (SourceProblem, RecursionError):
            return None
        installed = _INSTALLED.match(path)
        return ProgramModule(path, source, installed["name"].replace("/", ".") if installed else None)


def is_main_guard(statement: ast.stmt) -> bool:
    """Return whether it is ``if __name__ == "__main__"``."""
    return isinstance(statement, ast.If) and "__name__" in {
        n.id for n in walk(statement.test) if isinstance(n, ast.Name)
    }


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If) and is_main_guard(statement):
            yield from statement.body
        else:
            yield statement


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    if isinstance(statement, ast.For | ast.While | ast.AsyncFor):
        # Running a loop again is the program itself.
        return
    yield from stored_names(statement)
    for node in walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
