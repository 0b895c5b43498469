"""What is too costly to compute and throw away."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.purity import called
from breakscan.rewrite_support.walking import children

_COSTLY = frozenset(
    {
        *("addbmm", "addmm", "baddbmm", "bilinear", "bmm", "cdist", "conv1d", "conv2d", "conv3d", "conv_transpose1d"),
        *("conv_transpose2d", "conv_transpose3d", "det", "einsum", "fft", "fft2", "fftn", "grid_sample", "interpolate"),
        *("linear", "logdet", "lu", "matmul", "matrix_exp", "matrix_power", "mm", "multi_dot", "pinv", "pinverse"),
        *("scaled_dot_product_attention", "slogdet", "tensordot", "unfold"),
    }
)


def what_costs(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of the first part of an expression that is costly: a product of matrices, a convolution, a module."""
    if isinstance(node, cst.Call):
        function, method = called(context, node)
        if (method or function or "").rpartition(".")[2] in _COSTLY or context.fact(node.func).kind == "module":
            return context.code(node.func)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return context.code(node)
    for child in children(node):
        if (found := what_costs(context, child)) is not None:
            return found
    return None
