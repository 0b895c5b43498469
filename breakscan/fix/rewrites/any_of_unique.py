"""``torch.any(torch.unique(t) > n)`` → ``torch.any(t > n)``.

A condition holds for any or all of the unique values if and only if it holds for any or all values.  The largest and
smallest value are also the same.  Unique values that are needed for an error message are computed where it is raised.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import change_behind
from breakscan.fix.support.assignments import is_bound_once, is_read, origin
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm, Replacement
from breakscan.fix.support.masked import is_scalar, may_require_gradient
from breakscan.fix.support.names import written
from breakscan.fix.support.operators import is_elementwise
from breakscan.fix.support.walking import nodes_named

_INDIFFERENT = frozenset({"all", "amax", "amin", "any", "max", "min"})
_INDIFFERENT_FUNCTIONS = frozenset(f"torch.{name}" for name in _INDIFFERENT)


def rewrite(context: RewriteContext) -> Edit:
    """The test of all values."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise OtherForm("this is not a call")
    tensor = _tensor(context, node)
    if (reduction := _reduction(context, node)) is not None:
        return Edit({node: build.operand(tensor)}, _differences(context, tensor, [reduction]))
    assignment = context.parent(node) or node
    if not m.matches(assignment, m.Assign([m.AssignTarget(m.Name())])):
        raise _needed(context, node)
    return _named(context, cst.ensure_type(assignment, cst.Assign), tensor)


def _tensor(context: RewriteContext, node: cst.Call) -> cst.BaseExpression:
    function, method = called(context, node)
    harmless = m.Arg(keyword=m.Name("dim"), value=m.Name("None")) | m.Arg(keyword=m.Name("sorted"))
    given = [arg for arg in node.args if not m.matches(arg, harmless)]
    if method == "unique" and isinstance(node.func, cst.Attribute) and not given:
        return node.func.value
    if function == "torch.unique" and len(given) == 1 and given[0].keyword is None:
        return given[0].value
    raise Declined("the call returns more than the unique values, so how many there are is needed")


def _needed(context: RewriteContext, node: cst.CSTNode) -> Declined:
    text = context.code(_above(context, node))
    return Declined(f"`{text}` needs the unique values themselves, whose number depends on values")


def _above(context: RewriteContext, node: cst.CSTNode) -> cst.CSTNode:
    """The expression or statement around a node, or the node itself if it is the head of a block."""
    for above in context.around(node):
        if isinstance(above, cst.BaseExpression | cst.BaseSmallStatement):
            return above
        if isinstance(above, cst.BaseCompoundStatement):
            break
    return node


def _differences(context: RewriteContext, tensor: cst.BaseExpression, reductions: Sequence[str]) -> list[Difference]:
    if all(name in ("any", "all") for name in reductions) or not may_require_gradient(context, tensor):
        return []
    return [differs("the backward pass, which raises for `unique`, gives a gradient", Effect.GRADIENTS)]


def _reduction(context: RewriteContext, node: cst.BaseExpression) -> str | None:
    """The reduction around a value that has the same result for repeated elements in any order."""
    values, text = node, context.code(node)
    while True:
        above = _above(context, values)
        if above is values:
            return None
        if isinstance(above, cst.Attribute) and isinstance(call := context.parent(above), cst.Call):
            if above.attr.value in _INDIFFERENT and call.func is above:
                return above.attr.value if not call.args and _is_each(context, values, text) else None
            above = call
        if isinstance(above, cst.Call):
            function, _ = called(context, above)
            if function is not None and function in _INDIFFERENT_FUNCTIONS:
                is_all = len(above.args) == 1 and _is_each(context, values, text)
                return function.removeprefix("torch.") if is_all else None
        elif not isinstance(above, cst.Comparison | cst.BinaryOperation | cst.UnaryOperation):
            return None
        values = above


def _is_each(context: RewriteContext, node: cst.BaseExpression, text: str) -> bool:
    """Whether an expression is computed element by element from a value."""
    if context.code(node) == text or is_scalar(context, node):
        return True
    if isinstance(node, cst.UnaryOperation):
        operands = [node.expression]
    elif isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        operands = [node.left, node.right]
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        operands = [node.left, node.comparisons[0].comparator]
    elif isinstance(node, cst.Call):
        _, method = called(context, node)
        if not is_elementwise(context, node):
            return False
        operands = [arg.value for arg in node.args]
        operands += [node.func.value] if method is not None and isinstance(node.func, cst.Attribute) else []
    else:
        return False
    return all(_is_each(context, one, text) for one in operands)


def _named(context: RewriteContext, assignment: cst.Assign, tensor: cst.BaseExpression) -> Edit:
    """The tests of a name that holds the values; the assignment moves to where an error is raised, or is removed."""
    name = cst.ensure_type(assignment.targets[0].target, cst.Name)
    line = context.line(assignment)
    if not isinstance(tensor, cst.Name):
        raise Declined("the tensor would be computed several times: assign it to a variable first")
    if not is_bound_once(context, name.value):
        raise Declined(f"`{name.value}` may have a different value where it is used: give it another name")
    changes: dict[cst.CSTNode, Replacement] = {}
    reductions: list[str] = []
    for one in nodes_named(context.function, name.value):
        if one is name or not is_read(context, one):
            continue
        error = context.enclosing(cst.Raise, one)
        if error is not None:
            raised = context.line(error)
            changes[raised] = [cst.SimpleStatementLine([assignment.deep_clone()]), raised]
        elif (reduction := _reduction(context, one)) is not None:
            reductions.append(reduction)
            changes[one] = build.copied(tensor)
        else:
            raise _needed(context, one)
    if _may_change(context, tensor, line):
        raise Declined(f"`{tensor.value}` may be a different tensor where it is tested")
    behind = context.behind(line)
    if not changes or not behind:
        raise Declined(f"`{name.value}` is not used")
    # The comment above the assignment is about the test, so it stays.
    following = behind[0]
    inner = {node: new for node, new in changes.items() if _is_within(context, node, following)}
    moved = following.visit(_Changes(inner))
    assert isinstance(moved, cst.BaseStatement)
    rest = {node: new for node, new in changes.items() if node not in inner}
    replaced = {line: None, following: build.with_leading_lines(moved, line), **rest}
    return Edit(replaced, _differences(context, tensor, reductions))


class _Changes(cst.CSTTransformer):
    def __init__(self, changes: dict[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self.changes = changes

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        new = self.changes.get(original_node)
        if new is None or isinstance(new, cst.CSTNode):
            return new or updated_node
        return cst.FlattenSentinel(new)  # type: ignore[return-value]


def _is_within(context: RewriteContext, node: cst.CSTNode, statement: cst.CSTNode) -> bool:
    return node is statement or any(one is statement for one in context.around(node))


def _may_change(context: RewriteContext, tensor: cst.Name, line: cst.SimpleStatementLine) -> bool:
    """Whether a tensor is rebound after a line, or changed in place: another name may be the same tensor."""
    if change_behind(context, None, line) is not None:
        return True
    rebound = any(tensor.value in written(one) for one in context.behind(line))
    return rebound or origin(context, tensor).anchor is tensor
