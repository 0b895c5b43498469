"""Where the nodes of an ast stand in the text of their file, as people count."""

from __future__ import annotations

import ast

from breakscan.findings import Site
from breakscan.source.module import SourceModule


def span(module: SourceModule, node: ast.AST) -> tuple[int, int, int, int]:
    """Line and column, end line and end column of a node, from 1; of a class its header alone."""
    line: int = node.lineno  # type: ignore[attr-defined]
    start: int = node.col_offset  # type: ignore[attr-defined]
    if isinstance(node, ast.ClassDef):
        column = module.column(line, start)
        return line, column, line, column + len(f"class {node.name}")
    end_line: int = node.end_lineno  # type: ignore[attr-defined]
    end: int = node.end_col_offset  # type: ignore[attr-defined]
    return line, module.column(line, start), end_line, module.column(end_line, end)


def text_of(module: SourceModule, node: ast.AST) -> str:
    """The source of a node on one line, shortened to sixty characters."""
    text = " ".join(module.segment(Site(module.display, *span(module, node))).split())
    return text if len(text) <= 60 else text[:59] + "…"
