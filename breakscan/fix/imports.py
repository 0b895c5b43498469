"""The imports that a file needs after an edit."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

_DOCSTRING = m.SimpleStatementLine([m.Expr(m.SimpleString() | m.ConcatenatedString())])


def with_imports(module: cst.Module, names: Sequence[str]) -> cst.Module:
    """The module with ``import name`` for each name: before the first import of that package, else before the other
    imports but those from ``__future__``."""
    for name in names:
        lines = list(module.body)
        packages = list(map(_package, lines))
        start = max((at + 1 for at, package in enumerate(packages) if package == "__future__"), default=0)
        start = start or int(bool(lines) and m.matches(lines[0], _DOCSTRING))
        first = next((at for at, package in enumerate(packages) if package and at >= start), start)
        place = packages.index(name) if name in packages else first
        new = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name(name))])])
        there = lines[place] if place < len(lines) else None
        if isinstance(there, cst.SimpleStatementLine) and packages[place]:
            new = new.with_changes(leading_lines=there.leading_lines)
            lines[place] = there.with_changes(leading_lines=[])
        elif place:
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
