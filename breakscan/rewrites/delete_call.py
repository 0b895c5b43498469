"""``torch._dynamo.graph_break()`` → nothing.

In eager code the call does nothing, so only the break is removed.
"""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.edit import Declined, Edit
from breakscan.rewrite_support.purity import why_may_raise, why_not_pure


def rewrite(context: RewriteContext) -> Edit:
    """The statement that requests a break, deleted; ``pass`` if it is the only one in its block."""
    line = context.line()
    statement = line.body[0]
    if not isinstance(statement, cst.Expr) or statement.value is not context.node:
        raise Declined("the call is not a separate statement")
    for arg in statement.value.args if isinstance(statement.value, cst.Call) else ():
        if (reason := why_not_pure(context, arg.value) or why_may_raise(context, arg.value)) is not None:
            raise Declined(f"an argument of the call would not be computed, and {reason}")
    body, _ = context.siblings(line)
    if len(body) > 1:
        return Edit({line: None}, keeps_operations=True)
    return Edit({statement: cst.Pass()}, keeps_operations=True)
