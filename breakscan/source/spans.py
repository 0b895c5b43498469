"""The spans of nodes in source text, the nodes around a site, and the outline of a file: its functions and classes."""

import ast
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from breakscan.model.findings import Site
from breakscan.source.module import SourceModule
from breakscan.source.walking import Definition, FunctionNode, blocks


def span(module: SourceModule, node: ast.AST) -> tuple[int, int, int, int]:
    """Line and column, end line and end column of a node, from 1; for a class, only its header."""
    line: int = node.lineno  # type: ignore[attr-defined]
    start: int = node.col_offset  # type: ignore[attr-defined]
    if isinstance(node, ast.ClassDef):
        column = module.column(line, start)
        return line, column, line, column + len(f"class {node.name}")
    end_line: int = node.end_lineno  # type: ignore[attr-defined]
    end: int = node.end_col_offset  # type: ignore[attr-defined]
    return line, module.column(line, start), end_line, module.column(end_line, end)


def head_span(module: SourceModule, node: ast.stmt) -> tuple[int, int, int, int]:
    """As :func:`span`, for the header of a compound statement: up to the colon; for a definition, to the line end."""
    if not getattr(node, "body", None):
        return span(module, node)
    inner = {statement for block in blocks(node) for statement in block} | {*getattr(node, "handlers", ())}
    heads = [child for child in ast.iter_child_nodes(node) if child not in inner]
    parts = [part for head in heads for part in ast.walk(head) if isinstance(part, ast.expr | ast.arg)]
    end = max(((p.end_lineno or 0, p.end_col_offset or 0) for p in parts), default=(0, 0))
    end_line = max(end[0], node.lineno)
    to_end_of_line = isinstance(node, Definition) or end[0] < node.lineno
    last = len(module.lines[end_line - 1].rstrip()) + 1 if to_end_of_line else module.column(end_line, end[1])
    return node.lineno, module.column(node.lineno, node.col_offset), end_line, last


def text_of(module: SourceModule, node: ast.AST) -> str:
    """The source of a node on one line, shortened to sixty characters."""
    text = " ".join(module.segment(Site(module.display, *span(module, node))).split())
    return text if len(text) <= 60 else text[:59] + "…"


def begins_in(site: Site, other: Site) -> bool:
    """True if a site begins inside another one."""
    return (other.line, other.column) <= (site.line, site.column) < (other.end_line, other.end_column)


def nodes_around(site: Site, module: SourceModule) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes in which a site begins, outermost first, each after its parent."""
    parent: ast.AST = module.tree
    while True:
        near: Iterable[ast.AST] = ast.iter_child_nodes(parent)
        if isinstance(parent, ast.Module):
            last = bisect_right(_first_lines(parent), site.line)
            near = parent.body[max(last - 2, 0) : last]  # decorators come before the line of a definition
        lines = ((c, getattr(c, "lineno", site.line), getattr(c, "end_lineno", None) or site.line) for c in near)
        around = (c for c, first, end in lines if first <= site.line <= end)
        child = next((c for c in around if begins_in(site, extent([c], module))), None)
        if child is None:
            return
        yield parent, child
        parent = child


def extent(nodes: Sequence[ast.AST], module: SourceModule) -> Site:
    """From the start of the first node to the end of the last; a ``case`` has no position but its children's."""
    first, last = nodes[0], nodes[-1]
    if not hasattr(first, "lineno"):
        children = list(ast.iter_child_nodes(first))
        return extent(children, module) if children else Site(module.display, 1, 1, 1, 1)
    line, end_line = first.lineno, last.end_lineno  # type: ignore[attr-defined]
    start, end = first.col_offset, last.end_col_offset  # type: ignore[attr-defined]
    return Site(module.display, line, module.column(line, start), end_line, module.column(end_line, end))


@lru_cache(maxsize=1)
def _first_lines(module: ast.Module) -> list[int]:
    """The lines on which the statements of a file begin: generated files have a hundred thousand statements."""
    return [node.lineno for node in module.body]


_LOCALS = ".<locals>"


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A function, a lambda or a class.

    ``qualname`` is the name that CPython gives its code object (``co_qualname``): ``f.<locals>.<lambda>``.
    Comprehensions are not scopes here.
    ``first_line`` is the line of the first decorator, as in ``co_firstlineno``."""

    node: Definition | ast.Lambda
    qualname: str
    first_line: int
    last_line: int


class Outline:
    """The scopes of a parsed file, in source order."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes = sorted(_scopes(tree), key=lambda scope: (scope.first_line, -scope.last_line))
        self._first_lines = [scope.first_line for scope in self.scopes]

    def function_at(self, line: int) -> OutlineEntry | None:
        """The innermost function around a line, or None at the top level of the file.

        A class that a function defines is skipped, as is a lambda: a line may contain one and still belong to the
        function around it."""
        following = bisect_right(self._first_lines, line)
        for scope in reversed(self.scopes[:following]):
            if scope.last_line >= line and not isinstance(scope.node, ast.Lambda | ast.ClassDef):
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
