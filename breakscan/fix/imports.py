"""The imports that a file needs after an edit."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

_Import = cst.Import | cst.ImportFrom
_Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


def with_imports(module: cst.Module, names: Sequence[str]) -> cst.Module:
    """The module with ``import name`` for each name, in the block of imports where it belongs."""
    for name in names:
        lines = list(module.body)
        place = _place(lines, name)
        if place is None:
            # Only few edits need these, and importing them takes long.
            from libcst.codemod import CodemodContext
            from libcst.codemod.visitors import AddImportsVisitor

            context = CodemodContext()
            AddImportsVisitor.add_needed_import(context, name)
            module = AddImportsVisitor(context).transform_module(module)
            continue
        new = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name(name))])])
        there = lines[place]
        if _starts_block(lines, place) and isinstance(there, cst.SimpleStatementLine):
            new = new.with_changes(leading_lines=there.leading_lines)
            lines[place] = there.with_changes(leading_lines=[])
        lines.insert(place, new)
        module = module.with_changes(body=lines)
    return module


def _place(lines: Sequence[cst.CSTNode], name: str) -> int | None:
    """The position of ``import name``: in front of the imports that follow it in order; None if there is no block."""
    block = [at for at, line in enumerate(lines) if _package(line) == name]
    if not block:
        return None
    first = block[0]
    while not _starts_block(lines, first):
        first -= 1
    last = first
    while last + 1 < len(lines) and _imported(lines[last + 1]) and not _starts_block(lines, last + 1):
        last += 1
    for at in range(first, last + 1):
        small = _imported(lines[at])
        if isinstance(small, cst.ImportFrom) or (_package(lines[at]) or "") > name:
            return at
    return last + 1


def _starts_block(lines: Sequence[cst.CSTNode], at: int) -> bool:
    line = lines[at]
    above = getattr(line, "leading_lines", ())
    before = lines[at - 1] if at else None
    # Imports from `__future__` stay first.
    is_first = before is None or _imported(before) is None or _package(before) == "__future__"
    return is_first or any(one.comment is None for one in above)


def _imported(line: cst.CSTNode) -> _Import | None:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return small if isinstance(small, cst.Import | cst.ImportFrom) else None


def _package(line: cst.CSTNode) -> str | None:
    """The top-level package that a line imports; None for relative imports and other code."""
    small = _imported(line)
    if isinstance(small, cst.Import):
        return small.names[0].evaluated_name.split(".")[0]
    if isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
        return cst.Module([]).code_for_node(small.module).split(".")[0]
    return None
