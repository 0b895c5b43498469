"""The imports of a file after an edit: those that it needs now, and those that it no longer needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.walking import findall, nodes_named

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


def without_unused(module: cst.Module, before: cst.Module) -> cst.Module:
    """The module without the imports whose last use an edit has removed. A file that re-exports names keeps all."""
    gone = {
        name
        for line, alias, name in _bound(before)
        if not _is_used(module, name) and not _is_marked(line) and not _is_listed(module, name)
    }
    if not gone or any(not _is_used(before, name) for _, _, name in _bound(before)):
        return module
    body: list[_Line] = []
    above: Sequence[cst.EmptyLine] = ()
    for line in module.body:
        kept = _without(line, gone)
        if kept is None:
            above = above or line.leading_lines
            continue
        if above:
            own = kept.leading_lines
            has_comment = any(one.comment is not None for one in above)
            kept = kept.with_changes(leading_lines=[*above, *own] if has_comment else own or above)
            above = ()
        body.append(kept)
    if body and body[0] is not module.body[0] and not module.header:
        body[0] = body[0].with_changes(leading_lines=[one for one in body[0].leading_lines if one.comment is not None])
    return module.with_changes(body=body)


def _place(lines: Sequence[cst.CSTNode], name: str) -> int | None:
    """The position of ``import name``: in front of the imports that follow it in order; None if there is no block."""
    block = [at for at, line in enumerate(lines) if _package(line) == name]
    if not block:
        same = [at for at, line in enumerate(lines) if name in sys.stdlib_module_names and _is_standard(line)]
        block = same[:1]
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


def _is_standard(line: cst.CSTNode) -> bool:
    package = _package(line)
    return package in sys.stdlib_module_names and package != "__future__"


def _bound(module: cst.Module) -> Iterator[tuple[cst.SimpleStatementLine, cst.ImportAlias, str]]:
    """The imports of the top level, each with the name that it binds."""
    for line in module.body:
        small = _imported(line)
        names = small.names if small is not None else ()
        if _package(line) == "__future__" or isinstance(names, cst.ImportStar):
            continue
        for alias in names:
            assert isinstance(line, cst.SimpleStatementLine)
            yield line, alias, _name(alias)


def _name(alias: cst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name.split(".")[0]


def _is_used(module: cst.Module, name: str) -> bool:
    inside = sum(len(nodes_named(line, name)) for line in module.body if _imported(line) is not None)
    return len(nodes_named(module, name)) > inside


def _is_listed(module: cst.Module, name: str) -> bool:
    """True if a string of the module is the name, as in ``__all__``, or holds it and may be an annotation."""
    texts = [str(cst.ensure_type(one, cst.SimpleString).raw_value) for one in findall(module, m.SimpleString())]
    return any(" " not in text and re.search(rf"\b{re.escape(name)}\b", text) for text in texts)


def _is_marked(line: cst.SimpleStatementLine) -> bool:
    """True if a comment, such as ``noqa``, may ask to keep a line."""
    return line.trailing_whitespace.comment is not None


def _without(line: _Line, gone: Collection[str]) -> _Line | None:
    small = _imported(line)
    if small is None or isinstance(small.names, cst.ImportStar) or _package(line) == "__future__":
        return line
    kept = [one for one in small.names if _name(one) not in gone]
    if len(kept) == len(small.names):
        return line
    if not kept:
        return None
    kept[-1] = kept[-1].with_changes(comma=small.names[-1].comma)
    return line.with_changes(body=[small.with_changes(names=kept)])
