"""``torch._dynamo.graph_break()`` → nothing.

In eager code the call does nothing, so only the break is removed.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined, Edit


def rewrite(context: RewriteContext) -> Edit:
    """The statement that requests a break, deleted; ``pass`` if it is the only one in its block."""
    line = context.line()
    statement = line.body[0]
    if not isinstance(statement, cst.Expr) or statement.value is not context.node:
        raise Declined("the call is not a separate statement")
    for arg in statement.value.args if isinstance(statement.value, cst.Call) else ():
        if not isinstance(arg.value, cst.SimpleString | cst.ConcatenatedString | cst.BaseNumber | cst.Name):
            raise Declined(f"`{context.code(arg.value)}` would not be computed")
    body, _ = context.siblings(line)
    if len(body) > 1:
        return Edit({line: None}, keeps_operations=True)
    return Edit({statement: cst.Pass()}, keeps_operations=True)
