"""``y.requires_grad = False`` → ``y = y.detach()``.

For a tensor that the function created.  If it is not an autograd leaf and requires a gradient, the assignment raises.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.build import assignment, method, with_leading_lines
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import written
from breakscan.fix.support.operators import operator_of


def rewrite(context: RewriteContext) -> Edit:
    """The name, bound to a tensor that shares the memory and requires no gradient."""
    line = context.line()
    statement = line.body[0]
    target = m.AssignTarget(m.Attribute(attr=m.Name("requires_grad")))
    if not m.matches(statement, m.Assign([target], m.Name("False"))):
        raise Declined("only `requires_grad = False` has an equivalent in the graph, `detach()`")
    tensor = cst.ensure_type(cst.ensure_type(statement, cst.Assign).targets[0].target, cst.Attribute).value
    if not isinstance(tensor, cst.Name) or tensor.value not in written(context.function.body):
        raise Declined(
            f"`{context.code(tensor)}` is visible outside the function: set `requires_grad` before the compiled call"
        )
    made_by = defined(context, tensor)
    is_plain = isinstance(made_by, cst.Call) and operator_of(context, made_by) is not None
    if context.fact(tensor).parameter or not is_plain:
        raise Declined(f"`{tensor.value}` may be a parameter, which `detach()` would turn into a plain tensor")
    if any(isinstance(one, cst.For | cst.While) for one in context.around(line)):
        raise Declined("a loop usually freezes parameters: set `requires_grad` before the compiled call")
    made = assignment(tensor, method(tensor, "detach")).with_changes(trailing_whitespace=line.trailing_whitespace)
    said = "other names of the same tensor still require a gradient"
    raised = f"if `{tensor.value}` requires a gradient already, `detach()` does not raise"
    differences = [differs(said, Effect.GRADIENTS), differs(raised, Effect.NO_LONGER_RAISES)]
    return Edit({line: with_leading_lines(made, line)}, differences)
