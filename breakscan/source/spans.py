"""The positions of ast nodes in the text of their file, in lines and columns from 1."""

from __future__ import annotations

import ast

from breakscan.model.findings import Site
from breakscan.source.module import SourceModule
from breakscan.source.walking import Definition, blocks


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
    inner = {statement for block in blocks(node) for statement in block}
    inner |= {*getattr(node, "handlers", ())}
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
