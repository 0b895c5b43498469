"""The outline of a file: the functions and classes that it defines, their lines and their qualified names."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from breakscan.source.walking import Definition, FunctionNode

_LOCALS = ".<locals>"


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A function, a lambda or a class.

    ``qualname`` is the name that CPython gives its code object (``co_qualname``): ``f.<locals>.<lambda>``.
    Comprehensions are not scopes here.
    ``first_line`` is the line of the first decorator, as in ``co_firstlineno``.
    """

    node: Definition | ast.Lambda
    qualname: str
    first_line: int
    last_line: int

    @property
    def path(self) -> str:
        """The qualified name without ``<locals>``."""
        return without_locals(self.qualname)


class Outline:
    """The scopes of a parsed file, in source order."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes = sorted(_scopes(tree), key=lambda scope: (scope.first_line, -scope.last_line))
        self._first_lines = [scope.first_line for scope in self.scopes]

    def function_at(self, line: int, *, lambdas: bool = False) -> OutlineEntry | None:
        """The innermost function around a line, or None at the top level of the file.

        A class that a function defines is skipped.  A lambda counts only on request: a line may contain one and
        still belong to the function around it.
        """
        following = bisect.bisect_right(self._first_lines, line)
        for scope in reversed(self.scopes[:following]):
            wanted = lambdas if isinstance(scope.node, ast.Lambda) else not isinstance(scope.node, ast.ClassDef)
            if wanted and scope.last_line >= line:
                return scope
        return None

    def functions_from(self, line: int) -> Iterator[FunctionNode]:
        """The functions and lambdas that begin at a line, which may be that of the first decorator."""
        for scope in self.scopes:
            if not isinstance(scope.node, ast.ClassDef) and line in (scope.node.lineno, scope.first_line):
                yield scope.node


def without_locals(qualname: str) -> str:
    """A qualified name without its ``<locals>`` parts: ``f.g`` for ``f.<locals>.g``."""
    return qualname.replace(_LOCALS, "")


def _scopes(tree: ast.Module) -> Iterator[OutlineEntry]:
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend((child, prefix) for child in ast.iter_child_nodes(node))
            continue
        name = prefix + ("<lambda>" if isinstance(node, ast.Lambda) else node.name)
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        yield OutlineEntry(node, name, first, node.end_lineno or node.lineno)
        # Decorators, defaults, annotations and base classes are evaluated in the scope around the definition.
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        inside = f"{name}." if isinstance(node, ast.ClassDef) else f"{name}{_LOCALS}."
        stack.extend((child, inside if child in body else prefix) for child in ast.iter_child_nodes(node))
