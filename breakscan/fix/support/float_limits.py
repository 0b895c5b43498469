"""The tensors whose dtype is passed to ``torch.finfo``, which raises an error for integer dtypes."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.dtypes import KnownDtype, is_always
from breakscan.fix.support.walking import walk
from breakscan.model.facts import Exactly


def dtype_tested(context: RewriteContext, test: cst.BaseExpression) -> KnownDtype | None:
    """The fact about ``x`` that ``x.dtype == torch.float16`` implies."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    left, target = test.left, test.comparisons[0]
    if not isinstance(left, cst.Attribute) or left.attr.value != "dtype" or not isinstance(target.operator, cst.Equal):
        return None
    facts, asked = context.fact(left.value).tensor, context.fact(target.comparator).tensor
    if facts is None or asked is None or not isinstance(asked.dtype, Exactly):
        return None
    return KnownDtype(facts.dtype, asked.dtype.dtype)


def asked_limits(context: RewriteContext, node: cst.CSTNode, given: Sequence[KnownDtype]) -> list[str]:
    """The tensors whose dtype is passed to ``torch.finfo``, unless they are known to be float tensors."""
    found = []
    for call in walk(node):
        if not isinstance(call, cst.Call) or context.dotted(call.func) not in ("torch.finfo", "torch.iinfo"):
            continue
        asked = call.args[0].value if call.args else None
        if isinstance(asked, cst.Attribute):
            facts = context.fact(asked.value).tensor
            if facts is None or not is_always(context.torch_version, facts.dtype, "float", given):
                found.append(context.code(asked.value))
    return found
