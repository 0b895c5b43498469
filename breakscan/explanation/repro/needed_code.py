"""Collects the code that a function needs: helpers, classes, constants and imports, from the files of the program.

What a library defines is imported from it, and only a function that is to be shown is copied."""

from __future__ import annotations

import ast
import builtins
import posixpath
import re
import symtable
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from breakscan.explanation.repro.problem import NotReproducible, Obstacle
from breakscan.source.module import SourceModule, SourceProblem, parse_module
from breakscan.source.outline import Outline, OutlineEntry
from breakscan.source.source_files import SourceFiles
from breakscan.source.walking import FunctionNode, stored_names, walk

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


LAZY_ANNOTATIONS = "from __future__ import annotations"
"""Leaves the names in annotations unread."""


@dataclass(frozen=True, slots=True)
class CodeNames:
    """``free`` are read and not bound by the code; ``attributes`` those of any object, ``of`` those of a name."""

    free: tuple[str, ...]
    attributes: frozenset[str]
    of: Mapping[str, frozenset[str]]


def names_in(code: str) -> CodeNames:
    """The names in statements at the left margin."""
    tree = ast.parse(code)
    reads = [node for node in walk(tree) if isinstance(node, ast.Attribute)]
    of: dict[str, set[str]] = {}
    for node in reads:
        if isinstance(node.value, ast.Name):
            of.setdefault(node.value.id, set()).add(node.attr)
    table = symtable.symtable(f"{LAZY_ANNOTATIONS}\n{code}", "<code>", "exec")
    bound = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    free = dict.fromkeys(name for name in _read(table, is_top=True) if name not in bound)
    texts = (n.value for n in walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    # getattr(self, "scale")
    attributes = frozenset(node.attr for node in reads) | frozenset(text for text in texts if text.isidentifier())
    return CodeNames(tuple(free), attributes, {name: frozenset(found) for name, found in of.items()})


def _read(table: symtable.SymbolTable, *, is_top: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global() or (is_top and symbol.is_referenced()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _read(inner)


_LEFT_OUT = re.compile(r"\bcompile\b|^(?:functools\.)?wraps\(")
"""Decorators: the program compiles by itself, and the name of a wrapper changes nothing."""
_MAKES_OBJECTS = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__repr__", "__str__", "__del__"}
"""Methods that are left out: objects are stand-ins."""
_INDENT = "    "


class CopiedClass:
    """A class with those of its methods that are needed.  ``attributes`` are expressions, by name, for the objects
    that stand in for the program's; ``is_module`` says that they are modules."""

    def __init__(self, module: ProgramModule, scope: OutlineEntry, node: ast.ClassDef) -> None:
        self.module, self.scope, self.node = module, scope, node
        self.attributes: dict[str, str] = {}
        self.is_module = False
        self.methods: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self.node.name

    def kept(self, read: set[str]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The methods that are read, and those that operators call."""
        methods = (one for one in self.node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        for one in methods:
            is_operator = one.name.startswith("__") and one.name.endswith("__")
            if (is_operator or one.name in read) and one.name not in _MAKES_OBJECTS:
                yield one

    def constants(self) -> Iterator[str]:
        for one in self.node.body:
            if isinstance(one, ast.Assign | ast.AnnAssign):
                yield self.module.text(one)

    def text(self) -> str:
        """The source of the class."""
        given = (f"{one.arg}={ast.unparse(one.value)}" for one in self.node.keywords if one.arg)
        bases = ", ".join([*map(ast.unparse, self.node.bases), *given])
        init = []
        if self.attributes or self.is_module:
            call = ["torch.nn.Module.__init__(self)"] if self.is_module else []
            made = (f"self.{name} = {expression}" for name, expression in self.attributes.items())
            init = ["def __init__(self):\n" + "\n".join(f"{_INDENT}{line}" for line in (*call, *made))]
        parts = ["\n".join(self.constants()), *init, *self.methods.values()]
        body = "\n\n".join(_indented(part) for part in parts if part) or f"{_INDENT}pass"
        return f"{_decorators(self.node)}class {self.name}{f'({bases})' if bases else ''}:\n{body}"


class NeededCode:
    """Grows with each function and class that is asked for.  ``unknown`` are names that nothing defines."""

    def __init__(self, modules: ProgramModules) -> None:
        self._modules = modules
        self._pieces: dict[tuple[str, int], Callable[[], str]] = {}
        self._imports: dict[str, str] = {"torch": "import torch"}
        self._owners: dict[str, str] = {}
        self._read: set[str] = set()
        self._of: dict[str, set[str]] = {}
        self._classes: dict[tuple[str, int], CopiedClass] = {}
        self._namespaces: dict[str, ProgramModule] = {}
        self.unknown: dict[str, None] = {}

    def function(self, module: ProgramModule, scope: OutlineEntry, given: Sequence[str]) -> None:
        """Copies a function; ``given`` are names of enclosing functions that have stand-ins."""
        node = scope.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._copy_function(module, node, _around(module, scope), given)

    def class_of(self, module: ProgramModule, scope: OutlineEntry) -> CopiedClass:
        """Copies a class, without its methods until something reads them."""
        node = scope.node
        assert isinstance(node, ast.ClassDef)
        key = module.path, node.lineno
        if key not in self._classes:
            self._own(node.name, module)
            copied = self._classes[key] = CopiedClass(module, scope, node)
            before = [*map(ast.unparse, (*node.bases, *node.decorator_list)), *copied.constants()]
            for code in before:
                self._scan(code, module, _around(module, scope), (node.name,))
            self._pieces[key] = copied.text
        return self._classes[key]

    def method(self, name: str) -> None:
        """Has the copied classes keep their methods of a name."""
        self._read.add(name)

    def imports(self, name: str, statement: str) -> None:
        """Adds an import.  One object has several names in a package, and the first will do."""
        known = self._imports.setdefault(name, statement)
        if known.split(".")[0] != statement.split(".")[0]:
            raise NotReproducible(Obstacle.SAME_NAME, name)

    def settle(self) -> None:
        """Adds what the code so far reads of the classes and modules in it."""
        before = -1
        while before != (before := self._size()):
            for copied in list(self._classes.values()):
                for method in copied.kept(self._read):
                    if method.name not in copied.methods:
                        copied.methods[method.name] = f"{_decorators(method)}{copied.module.text(method)}"
                        around = _around(copied.module, copied.scope)
                        self._scan(copied.methods[method.name], copied.module, around, ())
            for name, module in list(self._namespaces.items()):
                for attribute in sorted(self._of.get(name, ())):
                    self._need(attribute, module, ())

    def text(self) -> tuple[list[str], list[str]]:
        """The imports, and the definitions."""
        spaces = []
        for name, module in self._namespaces.items():
            self._imports.setdefault("types", "import types")
            known = [one for one in sorted(self._of.get(name, ())) if one in module.bindings]
            spaces.append(f"{name} = types.SimpleNamespace({', '.join(f'{one}={one}' for one in known)})")
        lines = sorted(set(self._imports.values()), key=lambda line: (line.startswith("from"), line))
        return lines, [*(piece() for piece in self._pieces.values()), *spaces]

    def _size(self) -> int:
        return len(self._pieces) + len(self._read) + sum(len(one.methods) for one in self._classes.values())

    def _copy_function(
        self,
        module: ProgramModule,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        around: Sequence[FunctionNode],
        given: Sequence[str] = (),
    ) -> None:
        key = module.path, node.lineno
        if key in self._pieces:
            return
        self._own(node.name, module)
        # Its place is kept for the end: what it reads comes first.
        text = f"{_decorators(node)}{module.text(node)}"
        self._pieces[key] = lambda: text
        self._scan(text, module, around, (node.name, *given))
        self._pieces[key] = self._pieces.pop(key)

    def _scan(self, code: str, module: ProgramModule, around: Sequence[FunctionNode], given: Sequence[str]) -> None:
        names = names_in(code)
        self._read |= names.attributes
        for name, attributes in names.of.items():
            self._of.setdefault(name, set()).update(attributes)
        for name in names.free:
            if name not in given:
                self._need(name, module, around)

    def _need(self, name: str, module: ProgramModule, around: Sequence[FunctionNode]) -> None:
        for number, function in enumerate(around):
            for inner in function.body if isinstance(function.body, list) else ():
                if isinstance(inner, ast.FunctionDef) and inner.name == name:
                    return self._copy_function(module, inner, around[number:])
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    for alias in inner.names:
                        if (alias.asname or alias.name.partition(".")[0]) == name:
                            return self._need_import(name, inner, alias, module)
        statements = module.bindings.get(name)
        if statements is None:
            return self._need_elsewhere(name, module)
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name.partition(".")[0]) == name:
                        self._need_import(name, statement, alias, module)
            elif module.installed_as is not None:
                self.imports(name, f"from {module.installed_as} import {name}")
            elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self._copy_function(module, statement, ())
            elif isinstance(statement, ast.ClassDef):
                scope = module.scope(statement.name)
                if scope is not None:
                    self.class_of(module, scope)
            else:
                self._copy_statement(name, statement, module)
        return None

    def _need_import(
        self, name: str, node: ast.Import | ast.ImportFrom, alias: ast.alias, module: ProgramModule
    ) -> None:
        renamed = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.Import):
            own = self._modules.programs_own(module, alias.name)
            if own is not None and (alias.asname or "." not in alias.name):
                self._own(name, own)
                self._namespaces[name] = own
            else:
                self.imports(name, f"import {alias.name}{renamed}")
            return
        if node.module == "__future__":
            return
        own = self._modules.programs_own(module, node.module or "", node.level)
        if own is not None and alias.name in own.bindings:
            self._need(alias.name, own, ())
            if name != alias.name:
                self._pieces.setdefault((module.path, node.lineno), lambda: f"{name} = {alias.name}")
            return
        inner = self._modules.programs_own(module, ".".join(filter(None, (node.module, alias.name))), node.level)
        if inner is not None:
            self._own(name, inner)
            self._namespaces[name] = inner
        else:
            self.imports(name, f"from {self._modules.imported(module, node)} import {alias.name}{renamed}")

    def _need_elsewhere(self, name: str, module: ProgramModule) -> None:
        for star in module.star_imports:
            own = self._modules.programs_own(module, star.module or "", star.level)
            if own is not None and name in own.bindings:
                return self._need(name, own, ())
        if hasattr(builtins, name):
            return None
        libraries = [s for s in module.star_imports if not self._modules.programs_own(module, s.module or "", s.level)]
        for star in libraries:
            text = f"from {self._modules.imported(module, star)} import *"
            self.imports(text, text)
        if not libraries:
            self.unknown[name] = None
        return None

    def _copy_statement(self, name: str, statement: ast.stmt, module: ProgramModule) -> None:
        key = module.path, statement.lineno
        if key in self._pieces:
            return
        self._own(name, module)
        text = module.text(statement)
        self._pieces[key] = lambda: text
        self._scan(text, module, (), (name,))
        self._pieces[key] = self._pieces.pop(key)

    def _own(self, name: str, module: ProgramModule) -> None:
        if self._owners.setdefault(name, module.path) != module.path:
            raise NotReproducible(Obstacle.SAME_NAME, name)


def _around(module: ProgramModule, scope: OutlineEntry) -> list[FunctionNode]:
    """The functions around a scope, from the inside out."""
    found = [
        one.node
        for one in module.outline.scopes
        if one is not scope and one.first_line <= scope.first_line and scope.last_line <= one.last_line
    ]
    return [node for node in reversed(found) if not isinstance(node, ast.ClassDef)]


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    kept = (text for one in node.decorator_list if not _LEFT_OUT.search(text := ast.unparse(one)))
    return "".join(f"@{text}\n" for text in kept)


def _indented(text: str) -> str:
    return "\n".join(f"{_INDENT}{line}" if line.strip() else line for line in text.split("\n"))
