"""``if tensor: x = costly(a)`` → ``x = torch.cond(tensor, lambda: costly(a), lambda: x.clone())``.

Only one side runs, in the graph.  Both are traced: they must return tensors of the same shapes and dtypes, have no side
effects, and not return an input itself, hence the `clone`.  Never safe, because calls of modules are not analyzed.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.bool_tensor import Truth, truth
from breakscan.fix.support.build import call, copied, joined_and, method
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.costs import what_costs
from breakscan.fix.support.devices import TESTS_APART
from breakscan.fix.support.difference import Difference, assumes
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.if_sides import Side, branch_of, read_side
from breakscan.fix.support.operators import makes_new, operator_of
from breakscan.fix.support.purity import why_not_pure
from breakscan.fix.support.where_builder import Chooser, SideValue
from breakscan.rulebook.torch_facts.operators import Often

_DIFFERENCE = assumes("both sides must return the same shape, dtype and strides, and must not have side effects")


def rewrite(context: RewriteContext) -> Edit:
    """The branch whose test is at the site, as an operation in the graph."""
    node = branch_of(context)
    return _of_statement(context, node) if isinstance(node, cst.If) else _of_expression(context, node)


def _of_expression(context: RewriteContext, node: cst.IfExp) -> Edit:
    tested = truth(context, node.test)
    if tested.static:
        raise Declined(f"`{context.code(tested.static[0])}` is not a tensor")
    chooser = Chooser(context, computes_both=False)
    made = _conditional(context, tested, chooser.value(node.body), chooser.value(node.orelse))
    return Edit({node: made}, _differences(tested, chooser))


def _of_statement(context: RewriteContext, node: cst.If) -> Edit:
    tested = truth(context, node.test)
    if isinstance(context.parent(node), cst.If) or isinstance(node.orelse, cst.If):
        raise Declined("there are more than two branches")
    if not isinstance(node.body, cst.IndentedBlock):
        raise Declined("a side is on the same line as its test")
    chooser = Chooser(context, computes_both=False)
    yes = read_side(node.body.body, context)
    no = None
    if node.orelse is not None:
        if not isinstance(node.orelse.body, cst.IndentedBlock):
            raise Declined("a side is on the same line as its test")
        if tested.static:
            raise Declined(f"`{context.code(tested.static[0])}` is not a tensor, and there is another side")
        no = read_side(node.orelse.body.body, context)
    small: cst.BaseSmallStatement
    if any(side is not None and side.messages for side in (yes, no)):
        raise Declined("a side of `torch.cond` must not have side effects, and one reports a message")
    if yes.returned is not None and not yes.assigned and no is not None and no.returned is not None and not no.assigned:
        made = _conditional(context, tested, chooser.value(yes.returned), chooser.value(no.returned))
        small = cst.Return(made)
    else:
        name = _only_name(yes)
        if no is not None and _only_name(no) != name:
            raise Declined("the sides assign different names")
        old = chooser.old(name, context.names_before(node).get(name)) if no is None else _assigned(chooser, no)
        made = _conditional(context, tested, _assigned(chooser, yes), old)
        small = cst.Assign([cst.AssignTarget(cst.Name(name))], made)
    line = cst.SimpleStatementLine([small])
    comments = [*yes.comments, *(no.comments if no is not None else ())]
    if (header := node.body.header.comment) is not None:
        comments.insert(0, cst.EmptyLine(comment=header))
    above = [one.deep_clone() for one in node.leading_lines]
    inside = [one.deep_clone() for one in comments]
    if tested.static:
        block = cst.IndentedBlock([line.with_changes(leading_lines=inside)])
        made_if = cst.If(joined_and(tested.static), block, leading_lines=above)
        return Edit({node: made_if}, _differences(tested, chooser))
    return Edit({node: [line.with_changes(leading_lines=[*above, *inside])]}, _differences(tested, chooser))


def _only_name(side: Side) -> str:
    if len(side.assigned) != 1 or side.returned is not None or side.messages:
        raise Declined("a side does more than assign one name, and each side of `torch.cond` is a function")
    return side.assigned[0].name


def _assigned(chooser: Chooser, side: Side) -> SideValue:
    one = side.assigned[0]
    if one.operator is not None:
        raise Declined(f"`{one.name}` is changed in place")
    return chooser.value(one.value)


def _conditional(context: RewriteContext, tested: Truth, yes: SideValue, no: SideValue) -> cst.BaseExpression:
    sources = [value.source for value in (yes, no) if value.source is not None]
    if not any(what_costs(context, source) for source in sources):
        raise Declined("no side is costly, so there is nothing to gain from `torch.cond`")
    for source in sources:
        if (reason := why_not_pure(context, source, modules=True)) is not None:
            raise Declined(f"a side of `torch.cond` must not have side effects, and {reason}")
    sides = (no, yes) if tested.opposite else (yes, no)
    functions = [cst.Lambda(cst.Parameters(), _own(context, side)) for side in sides]
    return call(context.imported("torch.cond"), tested.tensor, *functions)


def _own(context: RewriteContext, value: SideValue) -> cst.BaseExpression:
    """Code for a value that does not share memory with its inputs."""
    made = value.made
    if isinstance(made, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison):
        return copied(made)
    if isinstance(made, cst.Call):
        known = operator_of(context, made)
        if known is None:
            return copied(made)
        if known.result != "tensor" or known.contiguous is not Often.ALWAYS:
            raise Declined(f"`{context.code(made)}` may have different strides from the other side")
        if makes_new(context, made):
            return copied(made)
    return method(made, "clone")


def _differences(tested: Truth, chooser: Chooser) -> list[Difference]:
    apart = [] if tested.one_device else [TESTS_APART]
    return [_DIFFERENCE, *tested.doubts, *apart, *chooser.doubts]
