"""Whether code can distinguish a copy of a tensor from a view of it: how the value of an expression is used."""

from __future__ import annotations

from enum import IntEnum

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.assignments import origin, plain_value
from breakscan.rewrite_support.called import called
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.operators import makes_new, operator_of
from breakscan.rewrite_support.walking import findall, nodes_named

_READING_BUILTINS = frozenset({f"builtins.{name}" for name in ("abs", "bool", "float", "int", "len", "max", "min")})


class Fate(IntEnum):
    """How a value is used: only in its own statement, through a name, by code that is not analyzed, or it is changed
    in place."""

    USED = 0
    HELD = 1
    HANDED_ON = 2
    CHANGED = 3


def fate(context: RewriteContext, node: cst.BaseExpression) -> Fate:
    """How the storage of an expression's value is used."""
    return _fate(context, node, set())


def _fate(context: RewriteContext, node: cst.BaseExpression, seen: set[cst.CSTNode]) -> Fate:
    """As :func:`fate`.  ``seen`` are the assignments already followed: in a loop, a name may depend on itself."""
    above = context.parent(node)
    if isinstance(above, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison | cst.ComparisonTarget):
        return Fate.USED
    if isinstance(above, cst.Expr | cst.Assert | cst.If | cst.While | cst.FormattedStringExpression):
        return Fate.USED
    if isinstance(above, cst.AugAssign):
        return Fate.CHANGED if above.target is node else Fate.USED
    if isinstance(above, cst.Attribute):
        return _of_attribute(context, above, seen)
    if isinstance(above, cst.Subscript) and above.value is node:
        stored = isinstance(context.parent(above), cst.AssignTarget | cst.AugAssign | cst.Del)
        return Fate.CHANGED if stored else _fate(context, above, seen)
    if isinstance(above, cst.Arg):
        call = context.parent(above)
        return _of_argument(context, call, above, seen) if isinstance(call, cst.Call) else Fate.HANDED_ON
    if isinstance(above, cst.Assign):
        return _of_assigned(context, above, seen)
    return Fate.HANDED_ON


def _of_attribute(context: RewriteContext, above: cst.Attribute, seen: set[cst.CSTNode]) -> Fate:
    call = context.parent(above)
    if isinstance(call, cst.Call) and call.func is above:
        return _of_call(context, call, above.attr.value, seen)
    return _fate(context, above, seen) if context.fact(above).kind in ("tensor", "unknown") else Fate.USED


def _of_argument(context: RewriteContext, call: cst.Call, arg: cst.Arg, seen: set[cst.CSTNode]) -> Fate:
    if arg.keyword is not None and arg.keyword.value == "out":
        return Fate.CHANGED
    function, method = called(context, call)
    if method is not None or function in _READING_BUILTINS:
        return Fate.USED
    if (function or "").startswith("torch."):
        return _of_call(context, call, (function or "").rpartition(".")[2], seen)
    return Fate.HANDED_ON


def _of_call(context: RewriteContext, call: cst.Call, name: str, seen: set[cst.CSTNode]) -> Fate:
    if name.endswith("_") and not name.endswith("__"):
        return Fate.CHANGED
    known = operator_of(context, call)
    if known is None or known.writes is None or known.writes:
        return Fate.HANDED_ON
    return Fate.USED if makes_new(context, call) else _fate(context, call, seen)


def _of_assigned(context: RewriteContext, assign: cst.Assign, seen: set[cst.CSTNode]) -> Fate:
    """The highest fate among all reads of the name."""
    line = context.parent(assign)
    target = assign.targets[0].target
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(target, cst.Name):
        return Fate.HANDED_ON
    if plain_value(line, target.value) is None:
        return Fate.HANDED_ON
    if line in seen:
        return Fate.HELD
    seen.add(line)
    return max([_fate(context, read, seen) for read in reads(context, line, target)], default=Fate.HELD) or Fate.HELD


def reads(context: RewriteContext, line: cst.SimpleStatementLine, target: cst.Name) -> list[cst.Name]:
    """The reads of a name that may get the value that a line assigns."""
    found = []
    for name in nodes_named(context.function, target.value):
        if not context.tree.holds(name) or not is_read(context, name):
            continue
        anchor = origin(context, name).anchor
        if anchor is line or not isinstance(anchor, cst.SimpleStatementLine):
            found.append(name)
    return found


def is_read(context: RewriteContext, name: cst.Name) -> bool:
    """Whether a name node reads a variable: it is not an attribute, a keyword or a target."""
    above = context.parent(name)
    if isinstance(above, cst.Attribute | cst.Arg):
        return above.value is name
    if isinstance(above, cst.Param):
        return above.default is name
    if isinstance(above, cst.For | cst.CompFor | cst.AnnAssign | cst.NamedExpr):
        return above.target is not name
    return not isinstance(above, cst.AssignTarget | cst.FunctionDef | cst.ClassDef | cst.NameItem)


def change_behind(context: RewriteContext, names: set[str] | None, node: cst.CSTNode) -> str | None:
    """The code after a node that changes the value of one of some names in place; None if there is none.

    Without names, code that changes any value in place counts.

    In a loop, the whole loop counts as code after the node.
    """
    start = context.tree.span(node)[:2]
    for one in context.around(node):
        if isinstance(one, cst.FunctionDef):
            break
        if isinstance(one, cst.For | cst.While):
            start = context.tree.span(one)[:2]
    for found in findall(context.function, m.AugAssign() | m.AssignTarget() | m.Call()):
        if found in context.tree.parents and context.tree.span(found)[:2] >= start:
            changed = _changed(found)
            if changed is not None and (names is None or _first_name(changed) in names):
                return context.code(found.target if isinstance(found, cst.AssignTarget) else found)
    return None


def _changed(node: cst.CSTNode) -> cst.CSTNode | None:
    """What a statement or call changes in place, judged by its syntax."""
    if isinstance(node, cst.AugAssign):
        return node.target
    if isinstance(node, cst.AssignTarget):
        return node.target.value if isinstance(node.target, cst.Subscript) else None
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute):
        name = node.func.attr.value
        if name.endswith("_") and not name.endswith("__"):
            return node.func.value
    out = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "out"]
    return out[0] if out else None


def _first_name(node: cst.CSTNode) -> str | None:
    while isinstance(node, cst.Attribute | cst.Subscript | cst.Call):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None
