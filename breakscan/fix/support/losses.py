"""Calls of losses, by function or by module: their arguments, and how they reduce the loss to one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.context import Declined, RewriteContext
from breakscan.fix.support.difference import Difference, Effect, differs
from breakscan.fix.support.operators import called
from breakscan.fix.support.walking import findall
from breakscan.rulebook.torch_facts.not_measured import OF_MODULES

_SIDES = "input", "target"
_NO_MODULE = differs("hooks of the module do not run, and it must not be replaced by a later assignment", *Effect)


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss that is reduced by ``reduction``: ``sum``, ``mean`` or ``batchmean``.

    ``name`` is that of the function in ``torch.nn.functional``.  ``sides`` are the prediction and the target,
    ``settings`` the other arguments, by their names; those of a module are in the call ``module`` that creates it.
    """

    call: cst.Call
    name: str
    sides: Sequence[cst.Arg]
    reduction: str
    settings: Sequence[tuple[str, cst.BaseExpression]]
    module: cst.Call | None = None

    def function(self, context: RewriteContext) -> cst.BaseExpression:
        """The function of the loss; a module computes it with its own reduction."""
        return self.call.func if self.module is None else context.imported(f"torch.nn.functional.{self.name}")

    def without_module(self) -> list[Difference]:
        """The difference if a function computes the loss of a module."""
        return [] if self.module is None else [_NO_MODULE]


def name_of_loss(context: RewriteContext, call: cst.Call) -> str | None:
    """The name in ``torch.nn.functional`` of the loss that a call computes; None if it computes no loss."""
    fact = context.fact(call.func)
    if fact.kind == "module":
        return OF_MODULES.get(fact.name or "")
    package, _, name = (called(context, call)[0] or "").rpartition(".")
    return name if package == "torch.nn.functional" and name in OF_MODULES.values() else None


def loss_of(context: RewriteContext, call: cst.Call) -> Loss:
    """The loss that a call computes.  Declines if not all is known about it, or if it is not reduced."""
    name = name_of_loss(context, call)
    module = _made(context, call.func) if name is not None and context.fact(call.func).kind == "module" else None
    sides: list[cst.Arg] = []
    given: list[tuple[str, cst.BaseExpression]] = []
    for position, arg in enumerate(call.args):
        keyword = arg.keyword.value if arg.keyword is not None else None
        if not arg.star and ((position < len(_SIDES) and keyword is None) or keyword in _SIDES):
            sides.append(arg)
        elif keyword is not None:
            given.append((keyword, arg.value))
        elif position == len(_SIDES) and not arg.star:
            given.append(("weight", arg.value))
        else:
            raise Declined(f"`{context.plain(call.func)}` has additional arguments")
    if module is not None:
        given = [(arg.keyword.value if arg.keyword else "weight", arg.value) for arg in module.args]
    if name is None or len(sides) != len(_SIDES) or [one.keyword.value for one in sides if one.keyword] == ["input"]:
        raise Declined(f"`{context.plain(call.func)}` has additional arguments")
    reduction = next((value for keyword, value in given if keyword == "reduction"), cst.SimpleString('"mean"'))
    kind = reduction.evaluated_value if isinstance(reduction, cst.SimpleString) else None
    if kind not in ("mean", "sum") and not (kind == "batchmean" and name == "kl_div"):
        raise Declined("the loss is not reduced to a mean or a sum")
    settings = [one for one in given if one[0] != "reduction"]
    if any(keyword in ("size_average", "reduce") for keyword, _ in settings):
        raise Declined("the loss is not reduced to a mean or a sum by its argument `reduction`")
    return Loss(call, name, sides, str(kind), settings, module)


def _made(context: RewriteContext, module: cst.BaseExpression) -> cst.Call:
    """The call that creates a module, which no other code of the file replaces."""
    made: cst.BaseExpression | None = defined(context, module)
    if isinstance(module, cst.Attribute):
        attribute = m.Attribute(attr=m.Name(module.attr.value))
        stores = findall(context.tree.module, m.AssignTarget(attribute) | m.AnnAssign(attribute))
        above = context.parent(stores[0]) if len(stores) == 1 else None
        made = above.value if isinstance(above, cst.Assign) else None
    kind = (context.fact(module).name or "").rpartition(".")[2]
    if not isinstance(made, cst.Call) or context.code(made.func).rpartition(".")[2] != kind:
        raise Declined(f"it is not known how `{context.plain(module)}` was created")
    if any(arg.star for arg in made.args) or sum(arg.keyword is None for arg in made.args) > 1:
        raise Declined(f"`{context.plain(made)}` has additional arguments")
    return made
