"""Whether code can distinguish a copy of a tensor from a view of it: how the value of an expression is used."""

from __future__ import annotations

import builtins
from collections.abc import Collection
from enum import IntEnum

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_outer, is_read, origin, plain_value
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.names import read
from breakscan.fix.support.operators import is_measured, leaves_arguments, makes_new, operator_of
from breakscan.fix.support.reporting_calls import is_reporting
from breakscan.fix.support.walking import findall, nodes_named
from breakscan.rulebook.torch_facts.not_measured import WRITING_ARGUMENTS

_READING_BUILTINS = frozenset({f"builtins.{name}" for name in ("abs", "bool", "float", "int", "len")})
_LEAVING_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "callable", "complex", "dict", "divmod", "enumerate", "float", "format"),
        *("frozenset", "getattr", "hasattr", "hash", "id", "int", "isinstance", "issubclass", "iter", "len", "list"),
        *("max", "min", "pow", "print", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum"),
        *("super", "tuple", "type", "zip"),
        *(name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)),
    }
)
"""Builtins that change no tensor that they get."""


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
    comparison = context.parent(above) if isinstance(above, cst.ComparisonTarget) else above
    if isinstance(comparison, cst.Comparison):
        return Fate.HANDED_ON if _asks_identity(comparison) else Fate.USED
    if isinstance(above, cst.BinaryOperation | cst.UnaryOperation):
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


def _asks_identity(node: cst.Comparison) -> bool:
    """Whether a comparison tells a tensor from a copy of it: with ``is``, or ``in``, which asks for identity first."""
    asks = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
    return any(
        isinstance(one.operator, asks) and not m.matches(one.comparator, m.Name("None")) for one in node.comparisons
    )


def _of_attribute(context: RewriteContext, above: cst.Attribute, seen: set[cst.CSTNode]) -> Fate:
    call = context.parent(above)
    if isinstance(call, cst.Call) and call.func is above:
        return _of_call(context, call, above.attr.value, seen)
    return _fate(context, above, seen) if context.fact(above).kind in ("tensor", "unknown") else Fate.USED


def _of_argument(context: RewriteContext, call: cst.Call, arg: cst.Arg, seen: set[cst.CSTNode]) -> Fate:
    if arg.keyword is not None and arg.keyword.value == "out":
        return Fate.CHANGED
    function, method = called(context, call)
    if function in ("builtins.max", "builtins.min"):
        return _fate(context, call, seen)
    if function in _READING_BUILTINS or (method is not None and is_measured(context, call)):
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
    if plain_value(line, target.value) is None or is_outer(context, target.value):
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


def change_behind(
    context: RewriteContext,
    names: set[str] | None,
    node: cst.CSTNode,
    *,
    trusts_calls: bool = False,
    but: Collection[cst.CSTNode] = (),
) -> str | None:
    """The code after a node that may change the value of one of some names in place; None if there is none.

    Without names, code that changes any value in place counts.  A call counts that gets the value and is not known to
    leave it as it is, unless ``trusts_calls``.  In a loop, the whole loop counts as code after the node, and an inner
    function may run at any time.
    """
    start = context.tree.span(node)[:2]
    for one in context.around(node):
        if isinstance(one, cst.FunctionDef):
            break
        if isinstance(one, cst.For | cst.While):
            start = context.tree.span(one)[:2]
    for found in findall(context.function, m.AugAssign() | m.AssignTarget() | m.Call()):
        if not context.tree.holds(found) or any(one is part for part in but for one in (found, *context.around(found))):
            continue
        # The call around a choice gets its result.
        behind = context.tree.span(found)[:2] >= start and not any(one is found for one in context.around(node))
        if not behind and not _runs_later(context, found):
            continue
        if trusts_calls and isinstance(found, cst.Call) and not _says_that_it_writes(found):
            continue
        changed = [one for one in _changed(context, found) if names is None or not names.isdisjoint(read(one))]
        if changed:
            return context.code(found.target if isinstance(found, cst.AssignTarget) else found)
    return None


def _says_that_it_writes(node: cst.Call) -> bool:
    """Whether the name of a method, or of an argument, says that a call changes something in place."""
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    return (name.endswith("_") and not name.endswith("__")) or any(
        arg.keyword is not None and arg.keyword.value in WRITING_ARGUMENTS for arg in node.args
    )


def _runs_later(context: RewriteContext, node: cst.CSTNode) -> bool:
    """Whether code is in a function or lambda inside the function around the site."""
    for one in context.around(node):
        if one is context.function:
            return False
        if isinstance(one, cst.FunctionDef | cst.Lambda):
            return True
    return False


def _changed(context: RewriteContext, node: cst.CSTNode) -> list[cst.CSTNode]:
    """What a statement or call may change in place."""
    if isinstance(node, cst.AugAssign):
        return [node.target]
    if isinstance(node, cst.AssignTarget):
        return _stored_into(context, node.target)
    if not isinstance(node, cst.Call) or _leaves_arguments(context, node):
        return []
    owner = node.func.value if isinstance(node.func, cst.Attribute) else node.func
    _, method = called(context, node)
    writes_to_owner = method is not None and method.endswith("_")
    return [owner] if writes_to_owner else [owner, *(arg.value for arg in node.args)]


def _stored_into(context: RewriteContext, target: cst.BaseExpression) -> list[cst.CSTNode]:
    if isinstance(target, cst.Tuple | cst.List):
        return [part for element in target.elements for part in _stored_into(context, element.value)]
    if isinstance(target, cst.Subscript):
        return [target.value]
    # An attribute of a tensor, such as `data`.
    is_tensors = isinstance(target, cst.Attribute) and context.fact(target.value).kind in ("tensor", "unknown")
    return [cst.ensure_type(target, cst.Attribute).value] if is_tensors else []


def _leaves_arguments(context: RewriteContext, node: cst.Call) -> bool:
    """Whether a call is known to change nothing that it gets in place."""
    function, method = called(context, node)
    if method is not None or (function or "").startswith("torch."):
        return leaves_arguments(context, node)
    package, _, name = (function or "").partition(".")
    if package == "builtins":
        return name in _LEAVING_BUILTINS
    if package == "math" or is_reporting(context, node):
        return True
    owner = node.func.value if isinstance(node.func, cst.Attribute) else None
    return owner is not None and context.fact(owner).kind in ("constant", "container", "number", "shape")
