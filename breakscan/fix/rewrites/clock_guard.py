"""``start = time.time()`` … ``print(time.time() - start)`` → the same under ``if not torch.compiler.is_compiling():``.

For times that are only printed or logged.  In compiled code, they would measure when calls were traced or launched.
"""

from __future__ import annotations

import re

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.compiling import guarded
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import read, written
from breakscan.fix.support.walking import findall, nodes_named

DIFFERENCE = differs("in compiled code, no time is measured or reported", Effect.OUTPUT)
_REPORTS = re.compile(r"(self\.)?(print|(_?log(ger|ging)?|writer)\.\w+)", re.IGNORECASE)

_CLOCK = re.compile(r"\b(time|time_ns|perf_counter|perf_counter_ns|monotonic|process_time|now|default_timer)\(\)")


def rewrite(context: RewriteContext) -> Edit:
    """All statements that measure, compute with or report the time, under a guard."""
    first = context.line()
    lines = [first]
    queue = [first]
    while queue:
        line = queue.pop()
        new: list[cst.SimpleStatementLine] = []
        if m.matches(line.body[0], m.Assign([m.AssignTarget(m.Name())])):
            new = _uses(context, written(line)[0])
        elif not _reports(context, line):
            raise Declined(_why_not(context, line))
        new = [one for one in (*new, *_taken(context, line)) if one not in lines]
        lines += new
        queue += new
    if not any(_reports(context, line) for line in lines):
        raise Declined("the time is not reported: measure it around the compiled call")
    for name in {name for line in lines for name in written(line)}:
        if any(line not in lines for line in _uses(context, name, bindings=True)):
            raise Declined(f"`{name}` is also assigned something else")
    return Edit({line: guarded(context, [line]) for line in lines}, [DIFFERENCE])


def _uses(context: RewriteContext, name: str, bindings: bool = False) -> list[cst.SimpleStatementLine]:
    """The lines of the function that read a name, or that bind it."""
    found: list[cst.SimpleStatementLine] = []
    for one in nodes_named(context.function.body, name):
        statement = context.statement(one)
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            raise Declined(f"`{name}` controls which code runs")
        if statement not in found and (bindings or name in read(statement)):
            found.append(statement)
    return found


def _taken(context: RewriteContext, line: cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    """The lines of the function that measure the times in a line."""
    names = set(read(line))
    return [
        statement
        for one in findall(context.function.body, m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name())])]))
        for statement in [cst.ensure_type(one, cst.SimpleStatementLine)]
        if names & set(written(statement)) and _CLOCK.search(context.code(statement))
    ]


def _reports(context: RewriteContext, line: cst.SimpleStatementLine) -> bool:
    statement = line.body[0]
    return (
        isinstance(statement, cst.Expr)
        and isinstance(statement.value, cst.Call)
        and _REPORTS.fullmatch(context.code(statement.value.func)) is not None
    )


def _why_not(context: RewriteContext, line: cst.SimpleStatementLine) -> str:
    if "sleep" in context.code(line):
        return "the code sleeps: move the pause outside the compiled call"
    return "the time is used in a computation or returned: measure it outside the compiled call and pass it in"
