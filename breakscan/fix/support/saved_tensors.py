"""What autograd saves for the backward pass of new code, and later code changes in place: then ``backward()`` raises.

The code that is replaced read a number, or a copy of the elements, so that a change did no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import change_behind
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, differs
from breakscan.fix.support.edit import Edit
from breakscan.fix.support.grad_mode import no_gradient_scope
from breakscan.fix.support.names import written
from breakscan.fix.support.walking import code_children, findall
from breakscan.rulebook.torch_facts.not_measured import SAVES_NO_OPERAND, SAVES_THE_CONDITION, SHARES_THE_OPERAND

_KEEP_NOTHING = (cst.Add, cst.Subtract, cst.BitAnd, cst.BitOr, cst.BitXor)


def backward_raises(change: str) -> Difference:
    """The difference that autograd saves what some code changes in place."""
    said = f"backward() raises, or no longer does, if autograd saves what `{change}` changes in place"
    return differs(said, Effect.GRADIENTS)


def why_backward_raises(context: RewriteContext, edit: Edit) -> Difference | None:
    """What the new code saves and later code changes in place, as a difference; None if there is nothing."""
    if no_gradient_scope(context, context.node) is not None:
        return None
    for old, new in edit.replace.items():
        if not context.tree.holds(old):
            continue
        parts = [new] if isinstance(new, cst.CSTNode) else list(new or ())
        names = {*_saved(parts), *_handed_on(context, old, parts)}
        names -= {*_saved_before(context, old), *written(parts)}
        names &= {
            cst.ensure_type(one, cst.Name).value
            for one in findall(old, m.Name())
            if context.fact(one).kind in ("tensor", "unknown")
        }
        if names and (change := change_behind(context, names, old, but=tuple(edit.replace))) is not None:
            return backward_raises(change)
    return None


def _handed_on(context: RewriteContext, old: cst.CSTNode, parts: Iterable[cst.CSTNode]) -> Iterator[str]:
    """The tensors that the code around, or the name of a result, gets instead of a new value."""
    for part in parts:
        if isinstance(part, cst.Assign):
            yield from _same(part.value, views=True)
        elif isinstance(part, cst.BaseExpression) and not isinstance(context.parent(old), cst.Expr):
            yield from _same(part, views=True)


def _same(node: cst.CSTNode, *, views: bool) -> Iterator[str]:
    """The name of which an expression is the tensor itself, or a view of it; an index makes none unless ``views``."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Subscript) and views:
        yield from _same(node.value, views=views)
    elif m.matches(node, m.Call(m.Attribute(attr=m.Name(m.MatchIfTrue(SHARES_THE_OPERAND.__contains__))))):
        function = cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute)
        yield from _same(function.value, views=views)


def _saved(nodes: Iterable[cst.CSTNode]) -> Iterator[str]:
    """The names of which autograd may save the tensors for the backward pass of some code."""
    for node in nodes:
        for operand in _kept(node):
            yield from _same(operand, views=True)
        if not isinstance(node, cst.Comparison | cst.BooleanOperation | cst.Lambda):
            yield from _saved(code_children(node))


def _saved_before(context: RewriteContext, old: cst.CSTNode) -> Iterator[str]:
    """The names of which the tensors were saved anyway, by the code that is replaced."""
    for one in findall(old, m.Call() | m.BinaryOperation()):
        if context.fact(one).is_tensor:
            for operand in _kept(one):
                yield from _same(operand, views=False)


def _kept(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The operands that an operation may keep for its backward pass."""
    if isinstance(node, cst.Call):
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        operands = [arg.value for arg in node.args]
        if name in SAVES_THE_CONDITION:
            yield from operands[:1]
        elif name not in SAVES_NO_OPERAND:
            yield from operands
            # What changes its tensor in place does not keep it.
            if isinstance(node.func, cst.Attribute) and not (name.endswith("_") and not name.endswith("__")):
                yield node.func.value
    elif isinstance(node, cst.BinaryOperation):
        by_number = isinstance(node.operator, cst.Multiply | cst.Divide) and (
            isinstance(node.left, cst.BaseNumber) or isinstance(node.right, cst.BaseNumber)
        )
        if not by_number and not isinstance(node.operator, _KEEP_NOTHING):
            yield from (node.left, node.right)
    elif isinstance(node, cst.SubscriptElement) and isinstance(node.slice, cst.Index):
        yield node.slice.value
