"""Expressions of elements that a mask selects, the same expressions for all elements, and losses of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.result import Difference, Effect, assumes, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, origin
from breakscan.fix.support.context import Declined, NotKnown, OtherForm, RewriteContext
from breakscan.fix.support.operators import called, flattens, is_conversion, is_elementwise, operator_of, poles
from breakscan.fix.support.purity import decline_for, why_not_pure
from breakscan.fix.support.walking import findall, walk
from breakscan.rulebook.torch_facts.not_measured import DIVIDES, OF_MODULES
from breakscan.rulebook.torch_facts.operators import Gradient

_LINEAR = (cst.Add, cst.Subtract)
_SCALARS = frozenset({"constant", "drawn", "number", "shape"})
_MOST_ROOTS = 64
_VIEWS = frozenset({"flatten", "reshape", "view"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """``owner[mask]``, or an equivalent expression.

    ``loose`` says that the mask may have a different shape from the owner: ``masked_select`` broadcasts them, and
    indices from a mask may index any tensor."""

    node: cst.BaseExpression
    owner: cst.BaseExpression
    mask: cst.BaseExpression
    loose: str = ""


@dataclass(slots=True)
class Masked:
    """An expression of selected elements.

    ``leaves`` are the expressions that select them.  ``bends`` says that a zero gradient may not stay zero."""

    leaves: list[Leaf] = field(default_factory=list)
    bends: bool = False


def leaf_at(context: RewriteContext, node: cst.CSTNode) -> Leaf | None:
    """``owner[mask]``, ``owner[torch.where(mask)]`` or ``owner.masked_select(mask)``; ``mask`` may be any index."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        index = node.slice[0].slice.value
        mask = hits_of(context, index)
        return Leaf(node, node.value, mask, "indices") if mask is not None else Leaf(node, node.value, index)
    if m.matches(node, m.Call(func=m.Attribute(attr=m.Name("masked_select")))):
        call = cst.ensure_type(node, cst.Call)
        function = cst.ensure_type(call.func, cst.Attribute)
        given = [arg.value for arg in call.args if arg.keyword is None or arg.keyword.value in ("input", "mask")]
        if len(given) == len(call.args) == 2:
            return Leaf(call, given[0], given[1], "select")
        if len(given) == len(call.args) == 1:
            return Leaf(call, function.value, given[0], "select")
    return None


def hits_of(context: RewriteContext, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The mask of a call that returns the indices of its nonzero elements as a tuple with one tensor per dimension."""
    if not isinstance(node, cst.Call):
        return None
    function, method = called(context, node)
    positional = [arg.value for arg in node.args if arg.keyword is None]
    as_tuple = [arg for arg in node.args if m.matches(arg, m.Arg(m.Name("True"), keyword=m.Name("as_tuple")))]
    if method == "nonzero" and isinstance(node.func, cst.Attribute) and len(node.args) == len(as_tuple) == 1:
        return node.func.value
    if function == "torch.nonzero" and len(as_tuple) == 1 and len(positional) == 1 and len(node.args) == 2:
        return positional[0]
    return positional[0] if function == "torch.where" and len(positional) == len(node.args) == 1 else None


def leaf_of(context: RewriteContext) -> Leaf:
    """The masked index that the finding is about.  Declines if the index is not a single mask."""
    node: cst.CSTNode | None = context.node
    if isinstance(node, cst.Call) and hits_of(context, node) is not None:
        node = next((one for one in context.around() if isinstance(one, cst.Subscript)), None)
        if node is None or not any(one is context.node for one in findall(node.slice[0], m.Call())):
            raise Declined("the indices are not used directly as an index, as in `x[mask.nonzero()]`")
    leaf = leaf_at(context, node) if node is not None else None
    if leaf is None:
        if not isinstance(node, cst.Subscript):
            raise OtherForm("this is not an index")
        raise Declined("the mask is one of several indices")
    if leaf.loose == "indices" and leaf.node is not node:
        raise Declined("the indices are not used directly as an index, as in `x[mask.nonzero()]`")
    context.require_tensor(leaf.owner)
    if context.fact(leaf.mask).dtype not in (None, "bool"):
        raise Declined(f"`{context.plain(leaf.mask)}` is not a bool mask")
    for part in (leaf.owner, leaf.mask):
        decline_for(why_not_pure(context, part))
    return leaf


def is_scalar(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if a value is a single number: a Python number or a 0-d tensor."""
    fact = context.fact(node)
    if isinstance(node, cst.UnaryOperation):
        return is_scalar(context, node.expression)
    return isinstance(node, cst.BaseNumber) or fact.kind in _SCALARS or (fact.is_tensor and fact.zero_dim is True)


# -- for all elements ------------------------------------------------------------------------------------------------


def masked(context: RewriteContext, node: cst.BaseExpression, mask: cst.BaseExpression) -> Masked:
    """An expression of elements that a mask selects.  Declines if it is not elementwise."""
    found = Masked()
    _collect(context, node, found, context.plain(mask))
    return found


def refuse_poles(context: RewriteContext, node: cst.BaseExpression, leaves: Sequence[Leaf]) -> None:
    """Declines where the mask may keep values away for which a gradient is infinite: `torch.where` makes it NaN."""
    for one, part in poles(node) if may_require_gradient(context, node) else ():
        if any(leaf.node in walk(part) for leaf in leaves):
            code = context.plain(one)
            raise NotKnown(f"`{code}` would be computed for all elements, and gradients may become NaN")


def _collect(context: RewriteContext, node: cst.BaseExpression, found: Masked, mask: str) -> None:
    leaf = leaf_at(context, node)
    if leaf is not None and context.plain(leaf.mask) == mask:
        found.leaves.append(leaf)
    elif is_scalar(context, node) or _is_setting(context, node):
        pass
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.BitInvert):
        _collect(context, node.expression, found, mask)
    elif isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        if isinstance(node.operator, cst.FloorDivide | cst.Modulo):
            _refuse_zeros(context, node, [node])
        found.bends |= not _is_linear(context, node)
        _collect(context, node.left, found, mask)
        _collect(context, node.right, found, mask)
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        _collect(context, node.left, found, mask)
        _collect(context, node.comparisons[0].comparator, found, mask)
    elif isinstance(node, cst.Call):
        _collect_call(context, node, found, mask)
    else:
        raise Declined(f"`{context.plain(node)}` may have as many elements as the mask selects")


def _is_setting(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if a value of unknown kind is an attribute of the object that only its ``__init__`` sets: a number."""
    fact = context.fact(node)
    if not m.matches(node, m.Attribute(value=m.Name("self"))) or fact.kind != "unknown" or fact.maybe_none:
        return False
    owner = next((one for one in context.around(node) if isinstance(one, cst.ClassDef)), None)
    text = context.plain(node)
    stores = findall(owner, m.AssignTarget() | m.AugAssign() | m.AnnAssign()) if owner is not None else ()
    own = [one for one in stores if context.plain(one.target) == text]  # type: ignore[attr-defined]
    functions = [next((up for up in context.around(one) if isinstance(up, cst.FunctionDef)), None) for one in own]
    return {one and one.name.value for one in functions} == {"__init__"}


def _is_linear(context: RewriteContext, node: cst.BinaryOperation) -> bool:
    if isinstance(node.operator, cst.Multiply):
        return _is_number(context, node.left) or _is_number(context, node.right)
    divides = isinstance(node.operator, cst.Divide) and _is_number(context, node.right)
    return divides or isinstance(node.operator, _LINEAR)


def _is_number(context: RewriteContext, node: cst.BaseExpression) -> bool:
    return context.fact(node).kind in _SCALARS and context.fact(node).literal != 0


def _collect_call(context: RewriteContext, node: cst.Call, found: Masked, mask: str) -> None:
    function, method = called(context, node)
    if method is not None and isinstance(node.func, cst.Attribute):
        receiver = node.func.value
        converts = is_conversion(context, node) and not any(leaf_at(context, arg.value) for arg in node.args)
        if is_flattening(context, node) or (converts and why_not_pure(context, node) is None):
            _collect(context, receiver, found, mask)
            return
        operands = [receiver, *(arg.value for arg in node.args)]
    elif (function or "").startswith("torch."):
        operands = [arg.value for arg in node.args]
    else:
        raise Declined(f"`{context.plain(node.func)}` is called with the selected elements: pass all and the mask")
    starred = any(arg.star for arg in node.args)
    if starred or not is_elementwise(context, node) or why_not_pure(context, node) is not None:
        raise Declined(f"`{context.plain(node.func)}` is not elementwise")
    if (method or function or "").rpartition(".")[2] in DIVIDES:
        _refuse_zeros(context, node, operands)
    known = operator_of(context, node)
    # Of others, a gradient of zero may not stay zero for infinity and NaN.
    found.bends |= known is None or known.gradient not in (Gradient.NONE, Gradient.ZERO)
    for operand in operands:
        _collect(context, operand, found, mask)


def _refuse_zeros(context: RewriteContext, node: cst.BaseExpression, sides: Sequence[cst.BaseExpression]) -> None:
    """Declines for a division of integers, which raises for a zero that the mask leaves out."""
    if not any(context.fact(one).dtype == "float" for one in sides):
        raise Declined(f"`{context.plain(node)}` may divide by zero where the mask is False")


def is_flattening(context: RewriteContext, node: cst.Call) -> bool:
    """True if a method returns a vector unchanged."""
    minus_one = m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
    to_vector = m.Call(func=m.Attribute(attr=m.Name("view") | m.Name("reshape")), args=[m.Arg(minus_one)])
    return flattens(context, node) or m.matches(node, to_vector)


class _Whole(cst.CSTTransformer):
    def __init__(self, context: RewriteContext, leaves: Iterable[Leaf]) -> None:
        super().__init__()
        self.context = context
        self.owners = {leaf.node: leaf.owner for leaf in leaves}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.owners

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        if (owner := self.owners.get(original_node)) is not None:  # type: ignore[call-overload]
            return build.operand(owner)
        if not isinstance(original_node, cst.Call) or not is_flattening(self.context, original_node):
            return updated_node
        return cst.ensure_type(cst.ensure_type(updated_node, cst.Call).func, cst.Attribute).value


def whole(context: RewriteContext, node: cst.BaseExpression, leaves: Iterable[Leaf]) -> cst.BaseExpression:
    """The expression for all elements: ``x - y`` for ``x[mask] - y[mask]``."""
    made = node.visit(_Whole(context, leaves))
    assert isinstance(made, cst.BaseExpression)
    return build.copied(made)


# -- which elements a mask selects -----------------------------------------------------------------------------------


def conditions(context: RewriteContext, mask: cst.BaseExpression, leaves: Iterable[Leaf]) -> list[Difference]:
    """The assumption under which a mask selects single elements; nothing where the code shows it.

    Declines if the code computes the mask from other tensors than those that it is an index of: it may select rows."""
    text = context.plain(mask)
    roots = _roots(context, mask)
    owners = {context.plain(leaf.owner): leaf for leaf in leaves}
    # Other tensors may broadcast a mask that is not computed from its owner alone.
    tight = {one: leaf.owner for one, leaf in owners.items() if not leaf.loose}
    direct = [one for one, owner in tight.items() if _key(context, owner) in roots <= _roots(context, owner)]
    related = direct or [one for one, leaf in owners.items() if roots & _roots(context, leaf.owner)]
    if not related and not isinstance(defined(context, mask), cst.Name | cst.Attribute) and _is_known(context, mask):
        raise Declined(f"nothing gives `{text}` as many dimensions as `{next(iter(owners))}`: it may select rows")
    kind = context.fact(mask)
    is_bool = kind.is_tensor and kind.certain and kind.dtype == "bool"
    if set(owners) <= set(direct):
        return [] if is_bool else [assumes(f"`{text}` must be a bool tensor")]
    return [assumes(f"`{text}` must be a bool tensor with the shape of what it selects from")]


def is_vector(context: RewriteContext, mask: cst.BaseExpression) -> bool:
    """True if the code flattens a mask, or what it is made from."""
    return (".view(-1)", None) in _roots(context, mask)


def _is_known(context: RewriteContext, mask: cst.BaseExpression) -> bool:
    """True if the function computes a mask by operators, or by functions of torch."""
    made = defined(context, mask)
    if isinstance(made, cst.Call):
        function, method = called(context, made)
        return method is not None or (function or "").startswith("torch.")
    return isinstance(made, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison)


_Root = tuple[str, cst.CSTNode | None]


def _key(context: RewriteContext, node: cst.BaseExpression) -> _Root:
    return context.plain(node), origin(context, node).anchor if isinstance(node, cst.Name) else None


def _roots(context: RewriteContext, node: cst.BaseExpression) -> set[_Root]:
    """The values that an expression is computed from element by element, those on the way among them."""
    found: set[_Root] = set()
    pending: list[cst.BaseExpression] = [node]
    while pending and len(found) < _MOST_ROOTS:
        one = pending.pop()
        if isinstance(one, cst.UnaryOperation):
            pending.append(one.expression)
        elif isinstance(one, cst.BinaryOperation) and not isinstance(one.operator, cst.MatrixMultiply):
            pending += [one.left, one.right]
        elif isinstance(one, cst.Comparison):
            pending += [one.left, *(target.comparator for target in one.comparisons)]
        elif isinstance(one, cst.Call) and (
            (called(context, one)[1] or called(context, one)[0] or "").endswith("_like")
            or is_elementwise(context, one)
            or is_conversion(context, one)
        ):
            pending += [arg.value for arg in one.args]
            pending += [one.func.value] if context.method(one) and isinstance(one.func, cst.Attribute) else []
        elif isinstance(one, cst.Call) and (context.method(one) or "") in _VIEWS:
            # Two tensors that are viewed in one way mostly have one shape.
            given = ", ".join(context.plain(arg) for arg in one.args)
            found.add((f".view({given or -1})", None))
        elif not is_scalar(context, one):
            key = _key(context, one)
            value = origin(context, one).value if isinstance(one, cst.Name) else None
            if key not in found and value is not None:
                pending.append(value)
            found.add(key)
    return found


# -- what replaces them ----------------------------------------------------------------------------------------------

NAN_GRADIENTS = differs("values outside the mask can make gradients NaN", Effect.GRADIENTS)
ROUNDING = differs("the numbers are added in a different order, so the last digits may differ", Effect.VALUES)
MEAN = differs(
    "float16 numbers are added in float16; a mean of integers does not raise", Effect.VALUES, Effect.NO_LONGER_RAISES
)


def may_require_gradient(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if a value is not known to be an integer or bool tensor."""
    fact = context.fact(node)
    return not (fact.certain and fact.dtype in ("bool", "int"))


def in_place_of(context: RewriteContext, node: cst.BaseExpression, made: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that can replace a node: a quotient in parentheses if needed."""
    above = context.parent(node)
    if not isinstance(made, cst.BinaryOperation):
        return made
    if isinstance(above, cst.BinaryOperation):
        looser = isinstance(above.operator, cst.Add | cst.Subtract)
        on_the_left = above.left is node and isinstance(above.operator, cst.Multiply | cst.Divide)
        return made if looser or on_the_left else build.operand(made)
    closer = isinstance(above, cst.Attribute | cst.UnaryOperation | cst.Subscript | cst.Await)
    return build.operand(made) if closer else made


def filled(
    context: RewriteContext, mask: cst.BaseExpression, node: cst.BaseExpression, off: cst.BaseExpression
) -> cst.Call:
    """``torch.where(mask, node, off)``."""
    return build.call(context.imported("torch.where"), mask, node, off)


def zero(context: RewriteContext, node: cst.BaseExpression) -> cst.BaseExpression:
    """A zero that does not change the dtype of an expression."""
    fact = context.fact(node)
    return build.expression("0.0" if fact.dtype == "float" and fact.certain else "0")


_SIDES = "input", "target"
NO_MODULE = differs("hooks of the module do not run, and it must not be replaced by a later assignment", *Effect)


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss that is reduced by ``reduction``: ``sum``, ``mean`` or ``batchmean``.

    ``name`` is that of the function in ``torch.nn.functional``.  ``sides`` are the prediction and the target,
    ``settings`` the other arguments, by their names; those of a module are in the call ``module`` that creates it."""

    call: cst.Call
    name: str
    sides: Sequence[cst.Arg]
    reduction: str
    settings: Sequence[tuple[str, cst.BaseExpression]]
    module: cst.Call | None = None


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
