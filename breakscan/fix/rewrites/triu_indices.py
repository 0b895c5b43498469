"""``torch.combinations(x)`` → ``x[torch.triu_indices(n, n, 1).T.contiguous()]``.

The indices of all pairs above the diagonal of a square are in the order of ``combinations``, those with the diagonal in
the order of ``with_replacement=True``.  Their number depends only on the length of the tensor.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.asserted_ranks import asserted_rank
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import EXCEPTIONS, Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.masked import may_require_gradient
from breakscan.fix.support.shapes import rank_of


def rewrite(context: RewriteContext) -> Edit:
    """The pairs, selected by their indices."""
    node = context.node
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        raise Declined("the arguments are not passed individually")
    names = ["input", "r", "with_replacement"]
    given = {arg.keyword.value if arg.keyword else names[at]: arg.value for at, arg in enumerate(node.args)}
    many, again, vector = given.get("r"), given.get("with_replacement"), given.get("input")
    if many is not None and not m.matches(many, m.Integer("2")):
        raise Declined("the combinations are not pairs")
    if again is not None and not m.matches(again, m.Name("True") | m.Name("False")):
        raise Declined("`with_replacement` is not a literal")
    if not isinstance(vector, cst.Name | cst.Attribute):
        raise Declined("the tensor would be computed several times: assign it to a variable first")
    text = context.code(vector)
    offset = build.expression("0" if again is not None and m.matches(again, m.Name("True")) else "1")
    length = build.expression(f"{text}.shape[0]")
    device = build.expression(f"{text}.device")
    pairs = build.call(context.imported("torch.triu_indices"), length, length, offset, device=device)
    # The result is laid out as the index is.
    index = build.method(cst.Attribute(pairs, cst.Name("T")), "contiguous")
    made = cst.Subscript(build.operand(vector), [cst.SubscriptElement(cst.Index(index))])
    rank = rank_of(context, vector)
    if not asserted_rank(context, vector).allows(1):
        raise Declined(f"`{text}` does not have one dimension, as the code asserts")
    said = f"if `{text}` does not have one dimension, the RuntimeError is another error or none"
    differences = [] if rank.least == rank.most == 1 else [differs(said, *EXCEPTIONS)]
    if may_require_gradient(context, vector):
        said = f"autograd does not need the old values of `{text}`, which may be changed in place then"
        differences.append(differs(said, Effect.GRADIENTS))
    return Edit({node: made}, differences)
