"""The imports that a file needs after an edit."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.support import matchers as m

_DOCSTRING = m.SimpleStatementLine([m.Expr(m.SimpleString() | m.ConcatenatedString())])


def with_imports(module: cst.Module, names: Sequence[str]) -> cst.Module:
    """The module with ``import name`` for each name: before the first import of that package, else after the first
    imports, else below the docstring."""
    for name in names:
        lines = list(module.body)
        packages = list(map(_package, lines))
        new = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name(name))])])
        if name in packages:
            place = packages.index(name)
            there = cst.ensure_type(lines[place], cst.SimpleStatementLine)
            new = new.with_changes(leading_lines=there.leading_lines)
            lines[place] = there.with_changes(leading_lines=[])
        else:
            place = int(bool(lines) and m.matches(lines[0], _DOCSTRING))
            while place < len(lines) and packages[place]:
                place += 1
            if place and packages[place - 1] in (None, "__future__"):
                new = new.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        lines.insert(place, new)
        module = module.with_changes(body=lines)
    return module


def _package(line: cst.CSTNode) -> str | None:
    """The top-level package that a line imports; None for relative imports and other code."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if isinstance(small, cst.Import):
        return small.names[0].evaluated_name.split(".")[0]
    if isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
        return cst.Module([]).code_for_node(small.module).split(".")[0]
    return None
