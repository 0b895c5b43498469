"""``copy.deepcopy(tensor)`` → ``tensor.detach().clone()``.

A deep copy of an autograd leaf is a leaf with its own storage that requires a gradient if the original does; a deep
copy of a tensor that is not a leaf raises.  Integers and bools never require a gradient: for them, ``clone`` alone is
equivalent.  The strides may become those of a dense tensor.
"""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.build import method
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.difference import Effect, differs
from breakscan.rewrite_support.edit import Declined, Edit


def rewrite(context: RewriteContext) -> Edit:
    """The copy of a tensor by the tensor's own method."""
    node = context.node
    if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].keyword is not None or node.args[0].star:
        raise Declined("the call does not have exactly one argument")
    copied = node.args[0].value
    fact = context.fact(copied)
    if fact.kind == "module":
        raise Declined("a module is copied: copy it once, before the compiled call")
    if not fact.is_tensor or not fact.certain:
        # Deep copies are often of lists of tensors, which have no `clone`.
        raise Declined(f"`{context.code(copied)}` is not known to be a tensor")
    if fact.dtype in ("int", "bool") and fact.certain:
        return Edit({node: method(copied, "clone")})
    differences = [
        differs("the copy of a tensor that requires a gradient does not require one", Effect.GRADIENTS),
        differs("a tensor with a `grad_fn` is copied instead of raising an error", Effect.EXCEPTIONS),
    ]
    return Edit({node: method(method(copied, "detach"), "clone")}, differences)
