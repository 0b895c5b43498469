"""``kept = x[mask]``, then ``kept.sum()`` → ``kept = torch.where(mask, x, 0.0)``; a mean is divided by ``mask.sum()``.

Elements outside the mask are zero, and all operations on the vector up to the sum keep zeros at zero, with a gradient
of zero: differences, products, squares, absolute values, and the corresponding losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_settled, origin, reads_of
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference
from breakscan.fix.support.edit import Declined, Edit, OtherForm, Replacement
from breakscan.fix.support.losses import loss_of, name_of_loss
from breakscan.fix.support.masked import (
    COUNT,
    MEAN,
    ROUNDING,
    Leaf,
    conditions,
    filled,
    in_place_of,
    is_scalar,
    leaf_at,
    leaf_of,
    zero,
)
from breakscan.fix.support.names import read, written
from breakscan.fix.support.operators import called
from breakscan.rulebook.torch_facts.not_measured import ELEMENTWISE_SETTINGS, OF_CLASSES, WEIGHTED

_ZERO_AT_ZERO = frozenset({"abs", "square", "relu", "float", "double", "to", "neg", "clone", "contiguous"})
_LENGTH = m.Call(m.Name("len"), [m.Arg()]) | m.Call(m.Attribute(attr=m.Name("numel")), [])
_SIZE = m.Call(m.Attribute(attr=m.Name("size")), [m.Arg(m.Integer("0"))]) | m.Subscript(
    m.Attribute(attr=m.Name("shape")), [m.SubscriptElement(m.Index(m.Integer("0")))]
)


@dataclass
class _Group:
    """Names that hold elements selected by one mask, and the changes to their uses."""

    mask: cst.BaseExpression
    counter: cst.BaseExpression
    lines: dict[cst.SimpleStatementLine, Leaf] = field(default_factory=dict)
    waiting: list[cst.SimpleStatementLine] = field(default_factory=list)
    changes: dict[cst.CSTNode, Replacement] = field(default_factory=dict)
    divides: bool = False
    counts: bool = False
    compares: bool = False
    differences: list[Difference] = field(default_factory=list)


def rewrite(context: RewriteContext) -> Edit:
    """The vector filled with zeros, and its mean over the selected elements."""
    leaf = leaf_of(context)
    line = context.line()
    if _leaf_on(context, line) is None:
        raise OtherForm("the selected elements are not assigned to a name")
    named = isinstance(leaf.mask, cst.Name) and is_settled(context, leaf.mask.value)
    if isinstance(leaf.mask, cst.Name) and not named:
        raise Declined(f"`{leaf.mask.value}` may be a different mask where the elements are used: give it another name")
    group = _Group(leaf.mask, build.copied(leaf.mask) if named else cst.Name("mask"))
    group.lines[line] = leaf
    group.waiting.append(line)
    while group.waiting:
        _follow(context, group, group.waiting.pop())
    needs = conditions(context, leaf.mask, group.lines.values())
    above: list[cst.BaseStatement] = []
    if group.counts and not named:
        if len(group.lines) > 1 or "mask" in {*read(context.function), *written(context.function)}:
            raise Declined("the mask has no name: assign it to a variable first")
        above.append(build.with_leading_lines(build.assignment(cst.Name("mask"), build.copied(leaf.mask)), line))
    for one, picked in group.lines.items():
        mask = cst.Name("mask") if above else leaf.mask
        made = filled(context, mask, picked.owner, zero(context, picked.owner))
        if above:
            assignment = cst.ensure_type(one.body[0], cst.Assign)
            new = one.with_changes(body=[assignment.with_changes(value=made)], leading_lines=[])
            group.changes[one] = [*above, new]
        else:
            group.changes[picked.node] = made
    hazard = MEAN if group.divides else COUNT if group.compares else ROUNDING
    return Edit(group.changes, [hazard, *dict.fromkeys(group.differences), *needs])


def _leaf_on(context: RewriteContext, line: cst.SimpleStatementLine) -> Leaf | None:
    """The elements that a line ``name = x[mask]`` selects."""
    if len(line.body) != 1 or not m.matches(line.body[0], m.Assign([m.AssignTarget(m.Name())])):
        return None
    return leaf_at(context, cst.ensure_type(line.body[0], cst.Assign).value)


def _follow(context: RewriteContext, group: _Group, line: cst.SimpleStatementLine) -> None:
    """Determines the changes to the uses of the name that a line assigns."""
    target = cst.ensure_type(cst.ensure_type(line.body[0], cst.Assign).targets[0].target, cst.Name)
    for use in reads_of(context, target, line):
        _one(context, group, use)


def _one(context: RewriteContext, group: _Group, use: cst.Name) -> None:
    value: cst.BaseExpression = use
    while True:
        above = context.parent(value)
        if isinstance(above, cst.Attribute) and isinstance(call := context.parent(above), cst.Call):
            if above.attr.value in ("sum", "mean") and call.func is above:
                _reduced(context, group, call, value, call.args)
                return
        elif isinstance(above, cst.Arg) and isinstance(call := context.parent(above), cst.Call):
            function, _ = called(context, call)
            if function in ("torch.sum", "torch.mean"):
                _reduced(context, group, call, value, call.args[1:])
                return
            if name_of_loss(context, call) is not None:
                _lost(context, group, call)
                return
        else:
            call = None
        counted = call if call is not None and m.matches(call, _LENGTH | _SIZE) else _size_at(context, above)
        if counted is not None and value is use:
            _counted(context, group, counted)
            return
        value = _computed(context, value, above, call)


def _computed(
    context: RewriteContext, value: cst.BaseExpression, above: cst.CSTNode | None, call: cst.Call | None
) -> cst.BaseExpression:
    """The operation that uses a value."""
    if isinstance(above, cst.BinaryOperation | cst.UnaryOperation):
        return above
    if call is not None:
        function, method = called(context, call)
        if (method or function or "").rpartition(".")[2] in _ZERO_AT_ZERO:
            return call
        raise Declined(
            f"`{context.code(call.func)}` needs the selected elements themselves, whose number depends on values"
        )
    where = above if isinstance(above, cst.BaseExpression) else value
    raise Declined(f"`{context.code(where)}` needs the selected elements themselves, whose number depends on values")


def _size_at(context: RewriteContext, above: cst.CSTNode | None) -> cst.BaseExpression | None:
    outer = context.parent(above) if above is not None else None
    return outer if isinstance(outer, cst.BaseExpression) and m.matches(outer, _SIZE) else None


def _reduced(
    context: RewriteContext, group: _Group, call: cst.Call, value: cst.BaseExpression, args: Sequence[cst.Arg]
) -> None:
    if args:
        raise Declined(f"`{context.code(call.func)}` has additional arguments")
    _zero_at_zero(context, group, value)
    if m.matches(call.func, m.Attribute(attr=m.Name("mean"))):
        _divided(context, group, call, build.method(value, "sum"))


def _divided(context: RewriteContext, group: _Group, node: cst.Call, summed: cst.Call) -> None:
    made: cst.BaseExpression = build.binary(summed, cst.Divide(), build.method(group.counter, "sum"))
    group.changes[node] = in_place_of(context, node, made)
    group.divides = group.counts = True


def _lost(context: RewriteContext, group: _Group, call: cst.Call) -> None:
    loss = loss_of(context, call)
    if loss.name in OF_CLASSES:
        raise OtherForm(f"`{context.code(call.func)}` is a loss of rows: see `ignore-index`")
    if any(keyword not in ELEMENTWISE_SETTINGS for keyword, _ in loss.settings):
        raise Declined(f"`{context.code(call.func)}` has additional arguments")
    for side in loss.sides:
        _zero_at_zero(context, group, side.value)
    if loss.reduction == "sum" and loss.name != WEIGHTED:
        return
    group.differences += loss.without_module()
    arguments = [build.argument(one.value, one.keyword.value if one.keyword else None) for one in loss.sides]
    arguments += [build.argument(value, keyword) for keyword, value in loss.settings]
    if loss.name == WEIGHTED:
        arguments.append(build.argument(group.counter, "weight"))
        group.counts = True
    arguments.append(build.argument(build.expression('"sum"'), "reduction"))
    summed = cst.Call(build.operand(loss.function(context)), arguments)
    if loss.reduction == "sum":
        group.changes[call] = summed
    else:
        _divided(context, group, call, summed)


def _counted(context: RewriteContext, group: _Group, node: cst.BaseExpression) -> None:
    above = context.parent(node)
    if isinstance(above, cst.BinaryOperation):
        fact = context.fact(above.right if above.left is node else above.left)
        if fact.is_tensor and fact.certain and fact.dtype == "float":
            group.changes[node] = build.method(group.counter, "sum")
            group.counts = group.compares = True
            return
    raise Declined("the count is needed as a Python number: use `mask.sum()`, a tensor, instead")


def _zero_at_zero(context: RewriteContext, group: _Group, node: cst.BaseExpression) -> None:
    """Records the names in an expression that is zero where they are zero.  Declines for any other expression."""
    if isinstance(node, cst.Name):
        line = origin(context, node).anchor
        leaf = _leaf_on(context, line) if isinstance(line, cst.SimpleStatementLine) else None
        if leaf is None or context.code(leaf.mask) != context.code(group.mask):
            raise Declined(f"`{node.value}` is not selected by the same mask")
        if line not in group.lines:
            assert isinstance(line, cst.SimpleStatementLine)
            group.lines[line] = leaf
            group.waiting.append(line)
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        _zero_at_zero(context, group, node.expression)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
        _zero_at_zero(context, group, node.left)
        _zero_at_zero(context, group, node.right)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply | cst.Divide):
        _zero_at_zero(context, group, node.left)
        if not is_scalar(context, node.right):
            if isinstance(node.operator, cst.Divide):
                raise Declined(f"`{context.code(node)}` may divide by zero where the mask is False")
            _zero_at_zero(context, group, node.right)
    elif isinstance(node, cst.BinaryOperation) and m.matches(
        node, m.BinaryOperation(operator=m.Power(), right=m.Integer())
    ):
        if cst.ensure_type(node.right, cst.Integer).evaluated_value < 1:
            raise Declined(f"`{context.code(node)}` is not zero where the elements are zero")
        _zero_at_zero(context, group, node.left)
    elif isinstance(node, cst.Call):
        function, method = called(context, node)
        if (method or function or "").rpartition(".")[2] not in _ZERO_AT_ZERO:
            raise Declined(f"`{context.code(node)}` is not zero where the elements are zero")
        receiver = (
            node.func.value if method is not None and isinstance(node.func, cst.Attribute) else node.args[0].value
        )
        _zero_at_zero(context, group, receiver)
    else:
        raise Declined(f"`{context.code(node)}` is not zero where the elements are zero")
