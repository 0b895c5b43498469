"""Whether reading an attribute runs code: a property, ``__getattr__``."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.walking import findall


def may_run_code(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of an attribute in an expression whose access may run code; None if there is none."""
    for one in findall(node, m.Attribute()):
        if isinstance(one, cst.Attribute) and context.tree.holds(one) and not _is_plain(context, one):
            return context.code(one)
    return None


def _is_plain(context: RewriteContext, node: cst.Attribute) -> bool:
    owner = context.fact(node.value)
    if owner.kind not in ("module", "instance", "unknown"):
        return True
    above = context.parent(node)
    if isinstance(above, cst.Call) and above.func is node:
        # The effects of calls are checked elsewhere.
        return True
    return context.fact(node).kind != "unknown" and node.attr.value not in _functions_of_classes(context)


def _functions_of_classes(context: RewriteContext) -> set[str]:
    return {
        one.name.value
        for one in findall(context.tree.module, m.FunctionDef())
        if isinstance(one, cst.FunctionDef)
        if one.decorators
    }
