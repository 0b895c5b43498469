"""``torch.linalg.lstsq(a, b).solution`` → ``torch.linalg.pinv(a) @ b``.

Both give the solution of least norm.  ``lstsq`` also returns residuals, whose shape depends on the rank of the matrix,
so only code that uses just the solution can be rewritten.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit

_SOLUTION = m.Attribute(attr=m.Name("solution")) | m.Subscript(slice=[m.SubscriptElement(m.Index(m.Integer("0")))])


def rewrite(context: RewriteContext) -> Edit:
    """The solution computed with the pseudo-inverse."""
    node = context.node
    if not isinstance(node, cst.Call) or context.dotted(node.func) != "torch.linalg.lstsq":
        raise Declined("this is not PyTorch's function")
    if len(node.args) != 2 or any(arg.keyword is not None or arg.star for arg in node.args):
        raise Declined("the call has other arguments than the two tensors")
    taken = context.parent(node)
    if not isinstance(taken, cst.Attribute | cst.Subscript) or not m.matches(taken, _SOLUTION):
        raise Declined("more than the solution is used")
    matrix, right = (arg.value for arg in node.args)
    inverse = build.call(context.imported("torch.linalg.pinv"), matrix)
    made: cst.BaseExpression = build.binary(inverse, cst.MatrixMultiply(), right)
    above = context.parent(taken)
    if isinstance(above, cst.Attribute | cst.Subscript | cst.UnaryOperation | cst.BinaryOperation):
        made = build.operand(made)
    rounds = differs("singular values give the solution, which rounds differently and takes longer", Effect.VALUES)
    # ``lstsq`` takes a batch of vectors, which ``@`` takes for a matrix.
    said = f"if `{context.code(matrix)}` is a batch of matrices, `{context.code(right)}` must be one as well"
    batch = differs(said, Effect.VALUES, Effect.RAISES, Effect.SHAPES)
    casts = differs("under autocast the solution has a lower precision", Effect.DTYPES, Effect.VALUES, Effect.RAISES)
    strides = differs("the strides of the solution change", Effect.STRIDES)
    return Edit({taken: made}, [rounds, batch, strides, casts])
