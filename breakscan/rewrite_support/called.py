"""What a call calls."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext


def called(context: RewriteContext, node: cst.Call) -> tuple[str | None, str | None]:
    """The dotted name of the function that a call calls, or the name of the tensor method; None if unknown."""
    if (method := context.method(node)) is not None:
        return None, method
    name = context.dotted(node.func)
    if isinstance(node.func, cst.Name) and (name is None or name == node.func.value):
        name = f"builtins.{node.func.value}"
    return name, None
