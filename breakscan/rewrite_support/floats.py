"""Which tensors are known to hold floats because the code asks for it, and which should be."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext

_FLOATS = ("torch.float16", "torch.half", "torch.bfloat16", "torch.float32", "torch.float", "torch.float64")


def float_tested(spot: RewriteContext, test: cst.BaseExpression) -> cst.Name | None:
    """``x`` of ``x.dtype == torch.float16``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    left, target = test.left, test.comparisons[0]
    named = isinstance(left, cst.Attribute) and left.attr.value == "dtype" and isinstance(left.value, cst.Name)
    dtype = spot.dotted(target.comparator) or spot.code(target.comparator)
    if not named or not isinstance(target.operator, cst.Equal) or dtype not in _FLOATS:
        return None
    return cst.ensure_type(cst.ensure_type(left, cst.Attribute).value, cst.Name)


def asked_limits(spot: RewriteContext, node: cst.CSTNode) -> list[str]:
    """The tensors whose dtype ``torch.finfo`` is asked for, which raises for whole numbers."""
    found = _Limits(spot)
    node.visit(found)
    return found.tensors


class _Limits(cst.CSTVisitor):
    """The tensors whose dtype ``torch.finfo`` is asked for, unless they are known to be floats."""

    def __init__(self, spot: RewriteContext) -> None:
        self.spot = spot
        self.tensors: list[str] = []

    def visit_Call(self, node: cst.Call) -> None:
        if self.spot.dotted(node.func) not in ("torch.finfo", "torch.iinfo") or not node.args:
            return
        asked = node.args[0].value
        if isinstance(asked, cst.Attribute) and self.spot.fact(asked.value).dtype != "float":
            self.tensors.append(self.spot.code(asked.value))
