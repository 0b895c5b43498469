"""Whether reading an attribute or an item, or an operator, runs code of the program: a property, ``__getattr__``."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.walking import findall


def may_run_code(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of an attribute, item or operator in an expression that may run code; None if there is none."""
    for one in findall(node, m.Attribute() | m.Subscript() | m.BinaryOperation()):
        if not context.tree.holds(one):
            continue
        if isinstance(one, cst.Attribute):
            runs_code = not _is_plain(context, one)
        elif isinstance(one, cst.Subscript):
            runs_code = context.fact(one.value).kind in ("instance", "unknown")
        else:
            parts = cst.ensure_type(one, cst.BinaryOperation)
            runs_code = "instance" in {context.fact(part).kind for part in (parts.left, parts.right)}
        if runs_code:
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
    fact = context.fact(node)
    return fact.kind != "unknown" and fact.certain and node.attr.value not in _functions_of_classes(context)


def _functions_of_classes(context: RewriteContext) -> set[str]:
    return {
        one.name.value
        for one in findall(context.tree.module, m.FunctionDef())
        if isinstance(one, cst.FunctionDef)
        if one.decorators
    }
