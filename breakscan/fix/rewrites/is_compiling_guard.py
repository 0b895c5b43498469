"""A print, a log call or a warning → the same under ``if not torch.compiler.is_compiling():``.

Eager code is unchanged.  Compiled code skips the call, and the values that would have been shown are not computed.  A
printed line and a log record are safe to skip if their arguments have no side effects."""

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.result import Effect, differs
from breakscan.fix.support.checks import (
    and_not_compiling,
    block_of,
    breaking,
    is_caught,
    not_compiling,
    reason_in,
    reported,
    skipped,
)
from breakscan.fix.support.context import Declined, Edit, OtherForm, Replacement, RewriteContext, Statement
from breakscan.fix.support.purity import decline_for, is_line_or_record, is_reporting, why_missed, why_shown

_SILENT = differs("compiled code does not print, log or warn", Effect.OUTPUT)


def rewrite(context: RewriteContext) -> Edit:
    """The statement under a guard, or the guard in front of an existing test."""
    line = context.statement()
    if isinstance(line, cst.If):
        if line.orelse is not None or not all(_reports(context, one) for one in line.body.body):
            raise OtherForm("the `if` does more than report something")
        line = cst.ensure_type(line.body.body[0], cst.SimpleStatementLine)
    elif not isinstance(context.node, cst.Call) or not is_reporting(context, context.node):
        made = context.node.func if isinstance(context.node, cst.Call) else context.node
        raise Declined(f"`{context.plain(made)}` does more than report something")
    if not isinstance(line, cst.SimpleStatementLine) or not _reports(context, line):
        call = context.code(cst.ensure_type(context.node, cst.Call).func)
        raise Declined(f"the result of `{call}` is used, or the call shares its line")
    run = _neighbours(context, line)
    for one in run:
        decline_for(reason_in(context, one, why_missed), "compiled code would skip it, and ")
    if len(run) == 1 and breaking(context, (block := block_of(context, line))[:-1]) is not None:
        run = block
    test = _skipped_test(context, run)
    reasons = [why_shown(context, test)] if test is not None else []
    reasons += [reason_in(context, one, why_shown) for one in run]
    differences = skipped(reasons)
    if differences or is_caught(context, run[0]) or not all(_prints_or_logs(context, one) for one in run):
        differences.insert(0, _SILENT)
    return Edit(_under_guard(context, run), differences)


def _is_plain(context: RewriteContext, statement: cst.CSTNode) -> bool:
    return _prints_or_logs(context, statement) and reason_in(context, statement, why_shown) is None


def _prints_or_logs(context: RewriteContext, statement: cst.CSTNode) -> bool:
    """True if a statement only prints lines to the console or makes log records."""
    return _reports(context, statement) and all(is_line_or_record(context, one) for one in reported(statement))


def _reports(context: RewriteContext, statement: cst.CSTNode) -> bool:
    is_line = isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(one, cst.Expr) for one in statement.body
    )
    return is_line and all(is_reporting(context, one) for one in reported(statement))


def _neighbours(context: RewriteContext, line: cst.SimpleStatementLine) -> list[Statement]:
    """The reporting statements directly before and after a statement, including itself."""
    body, position = context.siblings(line)
    first = last = position

    is_plain = _is_plain(context, line)

    def joins(one: cst.BaseStatement) -> bool:
        may_be_skipped = _reports(context, one) and reason_in(context, one, why_missed) is None
        return may_be_skipped and _is_plain(context, one) is is_plain

    while first > 0 and joins(body[first - 1]):
        first -= 1
    while last + 1 < len(body) and joins(body[last + 1]):
        last += 1
    return [one for one in body[first : last + 1] if isinstance(one, cst.SimpleStatementLine)]


# -- where the guard goes --------------------------------------------------------------------------------------------


def _under_guard(context: RewriteContext, statements: Sequence[Statement]) -> dict[cst.CSTNode, Replacement]:
    """The statements under a guard.

    If they are the whole body of an ``if``, the guard is added to its test; of an ``else``, it becomes an ``elif``."""
    first, *others = statements
    owner = _whole_owner(context, statements)
    if isinstance(owner, cst.If):
        guard_is_first = _skipped_test(context, statements) is not None
        return {owner.test: and_not_compiling(context, owner.test, first=guard_is_first)}
    if isinstance(owner, cst.Else):
        above = [line.deep_clone() for line in owner.leading_lines]
        return {owner: cst.If(not_compiling(context), owner.body.deep_clone(), leading_lines=above)}
    # What is above them stays above the guard.
    inner = [one.deep_clone() for one in statements]
    inner[0] = inner[0].with_changes(leading_lines=())
    guard = cst.If(not_compiling(context), cst.IndentedBlock(inner), leading_lines=first.leading_lines)
    return {first: guard, **dict.fromkeys(others)}


def _whole_owner(context: RewriteContext, statements: Sequence[Statement]) -> cst.If | cst.Else | None:
    """The ``if`` without other branches, or the ``else``, of which statements are the whole body."""
    block = context.parent(statements[0])
    owner = context.parent(block) if block is not None else None
    if not isinstance(block, cst.IndentedBlock) or len(block.body) != len(statements):
        return None
    if isinstance(owner, cst.If):
        return owner if owner.orelse is None and block is owner.body else None
    return owner if isinstance(owner, cst.Else) and isinstance(context.parent(owner), cst.If) else None


def _skipped_test(context: RewriteContext, statements: Sequence[Statement]) -> cst.BaseExpression | None:
    """The test of an ``if`` that compiled code skips, too: the guard is put in front of it."""
    owner = _whole_owner(context, statements)
    return owner.test if isinstance(owner, cst.If) and why_missed(context, owner.test) is None else None
