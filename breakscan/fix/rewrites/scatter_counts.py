"""``torch.bincount(t, minlength=n)`` → ``t.new_zeros(n).scatter_add_(0, t, torch.ones_like(t))``.

The counts of values below ``n``, in a result that has the same length for every input.  ``bincount`` returns more if a
value is larger; code that passes ``minlength`` usually relies on there being none.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.result import Effect, differs
from breakscan.fix.support import build
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import called


def rewrite(context: RewriteContext) -> Edit:
    """The counts of a fixed number of values."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise OtherForm("this is not a call")
    function, method = called(context, node)
    names = ["input", "weights", "minlength"]
    given: dict[str, cst.BaseExpression] = {}
    if method is not None and isinstance(node.func, cst.Attribute):
        given["input"] = node.func.value
    elif function != "torch.bincount":
        raise Declined("this is not PyTorch's function")
    for arg in node.args:
        name = arg.keyword.value if arg.keyword is not None else names[len(given)]
        given[name] = arg.value
    length, counted, weights = given.get("minlength"), given["input"], given.get("weights")
    if length is None or (isinstance(length, cst.Integer) and length.evaluated_value == 0):
        raise Declined("without `minlength`, the code does not show how many values there are")
    for one in (counted, weights):
        if one is not None and not isinstance(one, cst.Name | cst.Attribute):
            raise Declined(f"`{context.code(one)}` would be computed several times: assign it to a variable first")
    said = f"values that are not below `{context.code(length)}` raise an error, and so do dtypes narrower than int32"
    differences = [differs(said, Effect.RAISES)]
    if weights is None:
        differences.append(differs("the counts of an int32 tensor are int32, not int64", Effect.DTYPES))
    ones = build.call(context.imported("torch.ones_like"), counted)
    if weights is not None:
        said = "weights are summed in their own dtype; `bincount` sums all but float32 in float64"
        differences.append(differs(said, Effect.DTYPES, Effect.VALUES))
    zeros = build.method(weights if weights is not None else counted, "new_zeros", length)
    made = build.method(zeros, "scatter_add_", build.expression("0"), counted, weights if weights is not None else ones)
    return Edit({node: made}, differences)
