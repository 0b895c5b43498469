"""``t.item()``, ``float(t)``, ``int(t)`` and ``bool(t)`` → the 0-d tensor, if only tensor operations use the number.

``.detach()`` stops the gradient, as the number did.  Every use is followed: if one takes a Python number (a size, a
branch, a list index, other code), nothing is changed.  As an index, the tensor gets a dimension
(``x[t[None]].squeeze(0)``).  A number that is only kept for a log, in a dictionary that is returned or in an attribute,
becomes a tensor there."""

import libcst as cst

from breakscan.fix.result import EXCEPTIONS, Difference, Effect, differs
from breakscan.fix.rewrites.index_one_element import element_edit
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_bound_once, is_changed_in_place, reads_of
from breakscan.fix.support.build import copied, method, operand
from breakscan.fix.support.context import Declined, Edit, RewriteContext
from breakscan.fix.support.operators import (
    called,
    cuts_gradient,
    is_number,
    is_size,
    makes_new,
    only_argument,
    takes_alike,
)
from breakscan.fix.support.walking import findall, nodes_named

_MOVED = frozenset({"cpu", "detach"})
_CONVERSIONS = frozenset({"bool", "float", "int"})
_ARITHMETIC = cst.Add | cst.Subtract | cst.Multiply | cst.Divide | cst.FloorDivide | cst.Modulo
_ORDERS = cst.LessThan | cst.LessThanEqual | cst.GreaterThan | cst.GreaterThanEqual | cst.Equal | cst.NotEqual
_CONTAINERS = (cst.Element, cst.DictElement, cst.Tuple, cst.List, cst.Dict)
_OF_A_KEY = m.SimpleString() | m.FormattedString() | m.Call(m.Name("str") | m.Name("tuple") | m.Name("repr"))
_OPERANDS = (None, "other", "value", "min", "max")
"""The names of arguments for which a function treats a number and a tensor alike."""

A_TENSOR = differs(
    "a 0-d tensor replaces the number: results have its dtype, precision and device, and nothing overflows or raises",
    *(Effect.VALUES, Effect.DTYPES, Effect.NO_LONGER_RAISES, Effect.RAISES),
)
CALLER = differs("the caller gets a 0-d tensor instead of a Python number", Effect.TYPES)
ASSERT = differs("in compiled code, a failing assertion is a RuntimeError", *EXCEPTIONS)


def rewrite(context: RewriteContext) -> Edit:
    """The 0-d tensor instead of the number."""
    node, tensor, conversions = _read(context)
    text = context.code(tensor)
    if findall(tensor, m.Name("np") | m.Name("numpy") | m.Attribute(attr=m.Name("numpy"))):
        raise Declined(f"`{text}` is a NumPy array, not a tensor")
    context.require_tensor(tensor)
    made, dtype = _converted(context, tensor, conversions)
    above = context.parent(node)
    element = context.parent(above) if isinstance(above, cst.Index) else None
    subscript = context.parent(element) if isinstance(element, cst.SubscriptElement) else None
    if isinstance(subscript, cst.Subscript):
        if dtype != "int":
            raise Declined(f"`{context.code(node)}` is not known to be an integer")
        if not context.fact(subscript.value).is_tensor:
            owner = context.code(subscript.value)
            raise Declined(f"`{owner}` is not known to be a tensor, and may need a Python number")
        _must_have_no_dimension(context, tensor)
        return element_edit(context, subscript, node, made)
    uses = Uses(context, dtype, text)
    uses.follow(node)
    _must_have_no_dimension(context, tensor)
    if uses.is_kept and not (isinstance(tensor, cst.Call) and makes_new(context, tensor)):
        is_log = not uses.is_read and isinstance(tensor, cst.Name)
        if not is_log or is_changed_in_place(context.function, cst.ensure_type(tensor, cst.Name).value):
            made = method(made, "clone")
    if isinstance(above, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison | cst.ComparisonTarget):
        made = operand(made)
    return Edit({node: made}, list(uses.differences))


def _read(context: RewriteContext) -> tuple[cst.Call, cst.BaseExpression, list[str]]:
    """The outermost conversion at the site, the tensor, and the conversions from the inside out."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise Declined("this is not a conversion")
    given = only_argument(node)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "item" and not node.args:
        tensor: cst.BaseExpression = node.func.value
        conversions: list[str] = []
    elif isinstance(node.func, cst.Name) and node.func.value in _CONVERSIONS and given is not None:
        tensor, conversions = given, [node.func.value]
    else:
        raise Declined(f"`{context.code(node.func)}` is not called with one tensor")
    outer = node
    while (call := _conversion_around(context, outer)) is not None:
        outer = call
        conversions.append(cst.ensure_type(call.func, cst.Name).value)
    while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute) and not tensor.args:
        if tensor.func.attr.value not in _MOVED or context.method(tensor) is None:
            break
        tensor = tensor.func.value
    return outer, tensor, conversions


def _conversion_around(context: RewriteContext, node: cst.Call) -> cst.Call | None:
    arg = context.parent(node)
    call = context.parent(arg) if isinstance(arg, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and len(call.args) == 1:
        return call if call.func.value in _CONVERSIONS else None
    return None


def _must_have_no_dimension(context: RewriteContext, tensor: cst.BaseExpression) -> None:
    if not context.fact(tensor).zero_dim:
        raise Declined(f"`{context.code(tensor)}` may have dimensions of size 1, which a number does not have")


def _converted(
    context: RewriteContext, tensor: cst.BaseExpression, conversions: list[str]
) -> tuple[cst.BaseExpression, str | None]:
    """The tensor that replaces the number, and its dtype."""
    dtype = "int" if _is_integer(context, tensor) else context.fact(tensor).dtype
    has_no_gradient = dtype in ("int", "bool") or cuts_gradient(context, tensor)
    made: cst.BaseExpression = copied(tensor) if has_no_gradient else method(tensor, "detach")
    for one in conversions:
        if one == dtype:
            continue
        if one == "bool":
            made = cst.Comparison(operand(made), [cst.ComparisonTarget(cst.NotEqual(), cst.Integer("0"))])
        else:
            made = method(tensor if (dtype, one) == ("float", "int") else made, "long" if one == "int" else "float")
        dtype = one
    return made, dtype


def _is_integer(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is known to have an integer dtype, or to be a Python integer."""
    node = defined(context, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract | cst.Multiply):
        return _is_integer(context, node.left) and _is_integer(context, node.right)
    if isinstance(node, cst.Call) and context.method(node) in ("max", "min") and isinstance(node.func, cst.Attribute):
        return _is_integer(context, node.func.value)
    is_count = isinstance(node, cst.Integer) or is_size(context, node) or m.matches(node, m.Call(m.Name("int")))
    return is_count or context.fact(node).dtype == "int"


class Uses:
    """Follows a number to all its uses, and declines if one takes only a Python number."""

    def __init__(self, context: RewriteContext, dtype: str | None, text: str) -> None:
        self.context = context
        self.dtype = dtype
        self.text = text
        self.differences: dict[Difference, None] = {A_TENSOR: None}
        self.is_kept = False
        """True if the value is kept after its statement."""
        self.is_read = False
        """True if the function itself reads what is kept."""
        self._followed: set[cst.CSTNode] = set()

    def follow(self, node: cst.BaseExpression) -> None:
        if node in self._followed:
            return
        self._followed.add(node)
        above = self.context.parent(node)
        if isinstance(above, cst.BinaryOperation):
            self._in_arithmetic(above, node)
        elif isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Minus | cst.Plus):
            self._must_be_no_bool(above)
            self.follow(above)
        elif isinstance(above, cst.IfExp) and above.test is not node:
            self.follow(above)
        elif isinstance(above, cst.Comparison | cst.ComparisonTarget):
            self._in_comparison(above, node)
        elif isinstance(above, cst.Arg):
            self._in_call(above)
        elif isinstance(above, cst.Assign):
            self._in_assignment(above)
        elif isinstance(above, cst.AugAssign):
            self._in_augmented(above)
        elif isinstance(above, (cst.Return, *_CONTAINERS)):
            self._in_return(above, node)
        else:
            self._elsewhere(above)

    def _must_be_no_bool(self, node: cst.BaseExpression) -> None:
        """Python does arithmetic with bools, but torch raises for bool tensors."""
        if self.dtype == "bool":
            raise Declined(f"`{self.context.code(node)}` would raise for a bool tensor")

    def _in_arithmetic(self, above: cst.BinaryOperation, node: cst.BaseExpression) -> None:
        other = above.right if above.left is node else above.left
        if isinstance(above.operator, cst.Subtract):
            self._must_be_no_bool(above)
        if not isinstance(above.operator, _ARITHMETIC):
            raise Declined(f"`{self.context.code(above)}` may give a different result with a tensor")
        if self.context.fact(other).is_tensor:
            return
        is_plain = self.context.fact(other).kind in ("constant", "shape") and self.dtype not in ("int", "bool")
        if self.text not in self.context.code(other) and not is_number(self.context, other) and not is_plain:
            raise Declined(f"the other operand, `{self.context.code(other)}`, is not known to be a tensor or a number")
        self.dtype = "float" if isinstance(above.operator, cst.Divide) else self.dtype
        self.follow(above)

    def _in_comparison(self, above: cst.Comparison | cst.ComparisonTarget, node: cst.BaseExpression) -> None:
        comparison = above if isinstance(above, cst.Comparison) else self.context.parent(above)
        if not isinstance(comparison, cst.Comparison) or len(comparison.comparisons) != 1:
            raise Declined("the number is in a chain of comparisons")
        target = comparison.comparisons[0]
        other = target.comparator if comparison.left is node else comparison.left
        if not isinstance(target.operator, _ORDERS):
            raise Declined(f"`{self.context.code(comparison)}` has a different meaning for a tensor")
        if self.context.fact(other).is_tensor:
            return
        parent = self.context.parent(comparison)
        if not isinstance(parent, cst.Assert) or parent.test is not comparison:
            code = self.context.code(comparison)
            raise Declined(f"the branch on `{code}` would become a branch on a tensor, which breaks too")
        plain = cst.SimpleString | cst.ConcatenatedString
        if parent.msg is not None and (not isinstance(parent.msg, plain) or findall(parent.msg, m.FormattedString())):
            raise Declined("an assertion on a tensor still breaks the graph if its message is formatted")
        self.differences[ASSERT] = None

    def _in_call(self, arg: cst.Arg) -> None:
        call = self.context.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            raise Declined("it is not known what receives the number")
        function, is_method = called(self.context, call)[0], self.context.method(call) is not None
        keyword = arg.keyword.value if arg.keyword is not None else None
        text = self.context.code(call.func)
        if function in ("builtins.max", "builtins.min") and len(call.args) > 1 and keyword is None:
            others = [one.value for one in call.args if one is not arg]
            if self.dtype != "float" or not all(is_number(self.context, one) for one in others):
                raise Declined(f"`{self.context.code(call)}` may return a number or a tensor")
            self.follow(call)
        elif function == "torch.where" and keyword is None and call.args.index(arg) > 0:
            return
        elif not takes_alike(self.context, call, arg) or (not is_method and call.args[0] is arg):
            raise Declined(f"`{text}` may need a Python number")
        elif keyword not in _OPERANDS:
            raise Declined(f"`{keyword}` of `{text}` must be a Python number")
        else:
            owner = call.func.value if is_method and isinstance(call.func, cst.Attribute) else call.args[0].value
            self.context.require_tensor(owner)

    def _in_assignment(self, above: cst.Assign) -> None:
        line, target = self.context.parent(above), above.targets[0].target
        if len(above.targets) != 1 or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise Declined("the number is assigned to several names")
        if not isinstance(target, cst.Name):
            self._in_store(target)
            return
        if not is_bound_once(self.context, target.value):
            raise Declined(f"`{target.value}` is also assigned other values: give the number a name of its own")
        self.is_kept = self.is_read = True
        for one in reads_of(self.context, target, line):
            if self.context.enclosing(cst.FunctionDef, one) is not self.context.function:
                raise Declined(f"an inner function reads `{target.value}`")
            self.follow(one)

    def _in_augmented(self, above: cst.AugAssign) -> None:
        places = above.target, defined(self.context, above.target)
        if not any(self.context.fact(one).is_tensor for one in places):
            raise Declined(f"`{self.context.code(above.target)}` is a Python number")
        if not isinstance(above.operator, cst.AddAssign | cst.SubtractAssign | cst.MultiplyAssign | cst.DivideAssign):
            raise Declined(f"`{self.context.code(above)}` may give a different result with two tensors")
        self.is_kept = True  # an in-place operation raises if its input is a part of its output

    def _in_return(self, above: cst.CSTNode, node: cst.BaseExpression) -> None:
        if isinstance(above, cst.DictElement) and above.value is not node:
            raise Declined("the number is a dictionary key")
        up: cst.CSTNode | None = above
        while isinstance(up, _CONTAINERS):
            if isinstance(up, cst.Tuple) and any(m.matches(one.value, _OF_A_KEY) for one in up.elements):
                raise Declined("a tuple with strings may be a key, for which a tensor is another one in each call")
            up = self.context.parent(up)
        if isinstance(up, cst.Assign) and isinstance(above, cst.DictElement):
            self._in_log(up.targets[0].target)
        elif not isinstance(up, cst.Return):
            raise Declined("code that reads the container may need a Python number")
        if (self.dtype != "float" and not isinstance(above, cst.DictElement)) or up is above:
            raise Declined("the caller may need a Python number for an index, a size or a branch")
        self.is_kept = True
        self.differences[CALLER] = None

    def _in_store(self, target: cst.BaseExpression) -> None:
        """A number that is stored in a dictionary by a name, or in an attribute."""
        text = self.context.plain(target)
        if m.matches(target, m.Subscript(slice=[m.SubscriptElement(m.Index(m.SimpleString()))])):
            self._in_log(cst.ensure_type(target, cst.Subscript).value)
        elif isinstance(target, cst.Attribute):
            uses = findall(self.context.tree.module, m.Attribute(attr=m.Name(target.attr.value)))
            if any(not isinstance(self.context.parent(one), cst.AssignTarget) for one in uses):
                raise Declined(f"`{text}` stores the number, and other code may need a Python number")
        else:
            raise Declined(f"`{text}` stores the number, and other code may need a Python number")
        self.is_kept = True
        self.differences[CALLER] = None

    def _in_log(self, holder: cst.BaseExpression) -> None:
        """Declines unless a dictionary is only filled and returned."""
        uses = nodes_named(self.context.function, holder.value) if isinstance(holder, cst.Name) else ()
        if not uses or not all(map(self._only_keeps, uses)):
            raise Declined("code that reads the container may need a Python number")

    def _only_keeps(self, name: cst.Name) -> bool:
        """True if a use of a dictionary binds, fills or returns it."""
        above = self.context.parent(name)
        if isinstance(above, cst.Subscript):
            return isinstance(self.context.parent(above), cst.AssignTarget)
        return isinstance(self.context.outside(above, *_CONTAINERS), cst.AssignTarget | cst.Return | cst.Param)

    def _elsewhere(self, above: cst.CSTNode | None) -> None:
        if isinstance(above, cst.If | cst.While | cst.IfExp | cst.BooleanOperation | cst.UnaryOperation | cst.Assert):
            raise Declined(
                "the branch on the value would become a branch on a tensor, which breaks too: compare the tensor first"
            )
        reasons = {
            cst.Slice: "the number is a slice bound, so a shape depends on it",
            cst.FormattedStringExpression: "the number is formatted into a string",
            cst.Index: "the number indexes an object that is not known to be a tensor",
        }
        raise Declined(reasons.get(type(above), "the code that uses the number may need a Python number"))  # type: ignore[arg-type]
