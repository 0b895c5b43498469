"""The ``if`` of a check that raises."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined, OtherForm


def guard_of(context: RewriteContext) -> cst.If:
    """The ``if`` whose test is at the site and that then raises.  Declines if there is none."""
    child = context.node
    for above in context.around():
        if isinstance(above, cst.If):
            if child is not above.test:
                break
            if not _raises(above.body):
                raise Declined("the `if` does more than raise an exception")
            if _is_caught(context, above):
                raise Declined("the exception may be caught in this function")
            return above
        if isinstance(above, cst.BaseSmallStatement | cst.BaseCompoundStatement | cst.Lambda):
            break
        child = above
    raise OtherForm("this is not the test of an `if` that raises")


def _raises(body: cst.BaseSuite) -> bool:
    last = body.body[-1]
    return (
        isinstance(body, cst.IndentedBlock)
        and isinstance(last, cst.SimpleStatementLine)
        and isinstance(last.body[-1], cst.Raise)
    )


def _is_caught(context: RewriteContext, guard: cst.If) -> bool:
    child: cst.CSTNode = guard
    for above in context.around(guard):
        if isinstance(above, cst.FunctionDef):
            return False
        if isinstance(above, cst.Try | cst.TryStar) and above.handlers and child is above.body:
            return True
        child = above
    return False
