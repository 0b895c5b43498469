"""The text of a generated file, after the code that it is made from has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from breakscan.check.project.index import FunctionInfo
from breakscan.fix.generated.origins import CodeOrigin
from breakscan.source.module import SourceModule
from breakscan.source.outline import Outline
from breakscan.source.walking import FunctionNode


@dataclass(frozen=True, slots=True)
class EditedOrigin:
    """A function of a generated file, what it is made from, and the new text of that file."""

    function: FunctionInfo
    origin: CodeOrigin
    after: str


def regenerated(module: SourceModule, edited: Sequence[EditedOrigin]) -> tuple[str, frozenset[str]]:
    """The text, in which functions have the bodies of their edited origins, and the names of these functions.

    Functions whose origins have another signature now, or other decorators, stay as they are.
    """
    trees = {text: ast.parse(text) for text in {one.after for one in edited}}
    lines: list[str] = list(module.lines)
    imports: set[str] = set()
    changed: set[str] = set()
    for one in sorted(edited, key=lambda one: -one.function.node.lineno):
        source, old = one.origin.function.index.module, one.origin.function.node
        new = next(
            (
                scope.node
                for scope in Outline(trees[one.after]).scopes
                if scope.qualname == one.origin.function.qualname
            ),
            None,
        )
        if isinstance(new, ast.FunctionDef) and _header(new) == _header(old):
            first, last = _lines_of_body(new)
            body = one.after.split("\n")[first - 1 : last]
            own_first, own_last = _lines_of_body(old)
            if body != source.lines[own_first - 1 : own_last]:
                start, end = _lines_of_body(one.function.node)
                lines[start - 1 : end] = [one.origin.renaming.applied(line) for line in body]
                changed.add(one.function.qualname)
                imports |= set(_imports(trees[one.after])) - set(_imports(source.tree))
    top = [node.lineno for node in module.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    at = next((line - 1 for line in top if "__future__" not in module.lines[line - 1]), 0)
    lines[at:at] = sorted(imports)
    return "\n".join(lines), frozenset(changed)


def _lines_of_body(function: FunctionNode) -> tuple[int, int]:
    body = function.body if isinstance(function.body, list) else [function.body]
    return body[0].lineno, body[-1].end_lineno or body[-1].lineno


def _header(function: FunctionNode) -> str:
    """The signature and the decorators."""
    decorators = [] if isinstance(function, ast.Lambda) else function.decorator_list
    return " ".join(map(ast.dump, [function.args, *decorators]))


def _imports(tree: ast.Module) -> Iterator[str]:
    return (ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
