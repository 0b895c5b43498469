"""What a value is made from: the names that it is computed from, through assignments of the function."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.assignments import defined, origin
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.walking import code_children

Root = tuple[str, cst.CSTNode | None]
"""The code of a name or an attribute, and where the name is bound."""

MOST_ROOTS = 64


def is_computed(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether the function computes a value itself, and does not only get it."""
    made = defined(context, node)
    return not isinstance(made, cst.Name | cst.Attribute)


def have_common_root(context: RewriteContext, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two values are computed from a common one, by the code of the function."""
    return not roots(context, one).isdisjoint(roots(context, other))


def roots(context: RewriteContext, node: cst.BaseExpression) -> set[Root]:
    """The values that an expression is computed from, those on the way among them."""
    found: set[Root] = set()
    pending: list[cst.CSTNode] = [node]
    while pending and len(found) < MOST_ROOTS:
        one = pending.pop()
        if isinstance(one, cst.Name):
            bound = origin(context, one)
            root = one.value, bound.anchor
            if root not in found and bound.value is not None:
                pending.append(bound.value)
            found.add(root)
        elif isinstance(one, cst.Attribute):
            if context.fact(one.value).is_tensor:
                pending.append(one.value)
            else:
                found.add((context.code(one), None))
        elif isinstance(one, cst.Call):
            pending += [arg.value for arg in one.args]
            if isinstance(one.func, cst.Attribute):
                pending.append(one.func.value)
        else:
            pending += code_children(one)
    return found
