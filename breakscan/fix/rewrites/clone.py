"""``copy.deepcopy(tensor)`` → ``tensor.detach().clone()``.

A deep copy of an autograd leaf is a leaf with its own storage that requires a gradient if the original does; a deep
copy of a tensor that is not a leaf raises.
"""

from __future__ import annotations

from breakscan.fix.support.build import method
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.operators import only_argument

_PLAIN = differs(
    "the copy is a plain dense tensor: not a parameter or a view, without attributes, requiring no gradient",
    *(Effect.STRIDES, Effect.STATE, Effect.GRADIENTS, Effect.TYPES, Effect.NO_LONGER_RAISES),
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
    detached = copied if fact.dtype in ("int", "bool") else method(copied, "detach")
    return Edit({node: method(detached, "clone")}, [_PLAIN])
