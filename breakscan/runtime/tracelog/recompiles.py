"""Reads recompiles off the reasons that the trace gives: of each version that did not fit, the guard that failed."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

from breakscan.runtime.parsers.guard_text import read_guard
from breakscan.runtime.parsers.tracebacks import frames_of
from breakscan.runtime.records import CompileStarted, FailedGuard, RecompileSeen, RecompileTraced, Record

_REASON = re.compile(r"(?P<id>!?\d+(?:/\d+)+): (?P<text>.*)", re.S)
_SCOPES = {"L", "G"}


def with_recompiles(records: Sequence[Record]) -> Iterator[Record]:
    """The records of one process, with the recompiles as a hook would have recorded them.

    One that did not come to a compilation, because of the recompile limit, is left out.  The value that a guard met is
    the one that the next version was compiled for, where that version did not fit either later on.
    """
    failed = {
        index: tuple(map(_failed_guard, record.reasons))
        for index, record in enumerate(records)
        if isinstance(record, RecompileTraced)
    }
    of_version: dict[str, list[tuple[int, FailedGuard]]] = {}
    for index, guards in failed.items():
        for guard in guards:
            of_version.setdefault(guard.compile_id, []).append((index, guard))
    waiting: dict[str, tuple[FailedGuard, ...]] = {}
    for index, record in enumerate(records):
        if isinstance(record, RecompileTraced):
            later = [guard for at, guard in of_version.get(record.compile_id, ()) if at > index]
            waiting[record.compile_id] = tuple(_with_new_value(guard, later) for guard in failed[index])
            continue
        yield record
        if isinstance(record, CompileStarted) and (guards := waiting.pop(record.compile_id, ())):
            yield RecompileSeen(record.compile_id, record.code, guards, record.stack)


def _failed_guard(reason: str) -> FailedGuard:
    """Of ``0/1: flag == 'a'  # …``, with the traced stack behind it."""
    found = _REASON.match(reason)
    compile_id, text = (found["id"], found["text"]) if found else ("", reason)
    first, _, rest = text.partition("\n")
    return FailedGuard(compile_id, _with_scope(first), 0, None, tuple(frames_of(rest)))


def _with_new_value(guard: FailedGuard, later: Sequence[FailedGuard]) -> FailedGuard:
    asked = read_guard(guard.text)
    next_version = (read_guard(other.text) for other in later)
    new = next((other.old for other in next_version if other.subject == asked.subject), None)
    return FailedGuard(guard.compile_id, guard.text, guard.executed, asked.new or new, guard.stack)


def _with_scope(text: str) -> str:
    """The guard over Dynamo's scopes, as hooks see it: in its reasons torch writes ``x`` for ``L['x']``.  A comment
    behind it stays."""
    text = text.strip()
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return text
    rest = text.encode()[tree.body.end_col_offset :].decode(errors="replace")
    _, comment, words = rest.partition("#")
    return f"{ast.unparse(_Scoped().visit(tree))}{f'  {comment}{words}' if comment else ''}"


class _Scoped(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in _SCOPES or hasattr(builtins, node.id):
            return node
        return ast.Subscript(ast.Name("L", ast.Load()), ast.Constant(node.id), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        return node
