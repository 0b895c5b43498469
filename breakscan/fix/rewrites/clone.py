"""``copy.deepcopy(tensor)`` → ``tensor.detach().clone()``.

A deep copy of an autograd leaf is a leaf with its own storage that requires a gradient if the original does; a deep
copy of a tensor that is not a leaf raises.  Integers and bools never require a gradient: for them, ``clone`` alone is
equivalent, if they were made here: the copy of a view becomes dense.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.build import method
from breakscan.fix.support.called import only_argument
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import EXCEPTIONS, Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.walking import findall

_LAYOUT = differs(
    "the copy of a view has memory, strides and attributes of its own, not those of a copy of the whole memory",
    *(Effect.STRIDES, Effect.STATE),
    *EXCEPTIONS,
)


def rewrite(context: RewriteContext) -> Edit:
    """The copy of a tensor by the tensor's own method."""
    node = context.node
    copied = only_argument(node)
    if copied is None:
        raise Declined("the call does not have exactly one argument")
    fact = context.fact(copied)
    if fact.kind == "module":
        raise Declined("a module is copied: copy it once, before the compiled call")
    if not fact.is_tensor or not fact.certain:
        # Deep copies are often of lists of tensors, which have no `clone`.
        raise Declined(f"`{context.code(copied)}` is not known to be a tensor")
    layout = [] if _is_plain(context, copied) else [_LAYOUT]
    if fact.dtype in ("int", "bool") and fact.certain:
        return Edit({node: method(copied, "clone")}, layout)
    differences = [
        *layout,
        differs("the copy of a tensor that requires a gradient does not require one", Effect.GRADIENTS),
        differs("the copy of a `Parameter` is a plain tensor", Effect.TYPES),
        differs("a tensor with a `grad_fn` is copied instead of raising an error", Effect.NO_LONGER_RAISES),
    ]
    return Edit({node: method(method(copied, "detach"), "clone")}, differences)


def _is_plain(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether a tensor was made here, and so is no view, and has no attributes of its own."""
    made = defined(context, node)
    facts = context.fact(made).tensor
    named = node.value if isinstance(node, cst.Name) else ""
    return (
        not isinstance(made, cst.Name)
        and facts is not None
        and facts.is_new
        and not findall(context.function, m.AssignTarget(m.Attribute(value=m.Name(named))))
        and not findall(context.tree.module, m.Attribute(attr=m.Name("_version")))
    )
