"""``F.one_hot(x.argmax(1))`` → ``F.one_hot(x.argmax(1), num_classes=x.shape[1])``.

``F.one_hot(x, max(x.max() + 1, n))[..., :n]`` → ``(x[..., None] == torch.arange(n, device=x.device)).long()``.  The
number of classes, if the code shows what the labels are: positions in a dimension of known size, remainders of a
number, random integers below a number; or if a name is known for it.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_bound_once
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import written
from breakscan.fix.support.purity import why_not_pure
from breakscan.fix.support.walking import findall
from breakscan.fix.support.wording import plain

_NAMES = ("num_classes", "n_classes", "num_labels", "n_labels", "num_categories")
_PLACES = frozenset({"argmax", "argmin", "argsort"})


def rewrite(context: RewriteContext) -> Edit:
    """The call, with the number of classes."""
    node = context.node
    if not isinstance(node, cst.Call) or not node.args or any(arg.star for arg in node.args):
        raise Declined("the arguments are not passed individually")
    if len(node.args) > 1:
        return _first_columns(context, node)
    labels = node.args[0].value
    classes = _shown(context, defined(context, labels)) or _named(context)
    if classes is None:
        raise Declined("the code does not show the number of classes: pass `num_classes`")
    first = node.args[0].deep_clone().with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    made = node.deep_clone().with_changes(args=[first, build.argument(classes, "num_classes")])
    columns = context.code(classes)
    said = f"the result always has `{columns}` columns, not one more than the largest label"
    return Edit({node: made}, [differs(said, Effect.SHAPES, Effect.RAISES)])


def _first_columns(context: RewriteContext, node: cst.Call) -> Edit:
    """``F.one_hot(x, max(x.max() + 1, n))[..., :n]``, as a comparison with ``n`` numbers."""
    above, labels, most = context.parent(node), node.args[0].value, node.args[1].value
    columns = [m.SubscriptElement(m.Index(m.Ellipsis())), m.SubscriptElement(m.Slice(lower=None, step=None))]
    if not isinstance(above, cst.Subscript) or not m.matches(above, m.Subscript(slice=columns)):
        raise Declined("the number of classes is read from a tensor")
    shown = cst.ensure_type(above.slice[1].slice, cst.Slice).upper
    is_most = isinstance(most, cst.Call) and called(context, most)[0] == "builtins.max"
    sides = [plain(context, arg.value) for arg in most.args] if isinstance(most, cst.Call) and is_most else []
    if shown is None or len(sides) != 2 or plain(context, shown) not in sides:
        raise Declined(f"`{plain(context, most)}` may be less than the number of columns that are used")
    for one in (labels, most):
        if (reason := why_not_pure(context, one)) is not None:
            raise Declined(reason)
    device = cst.Attribute(build.operand(labels), cst.Name("device"))
    numbers = build.call(context.imported("torch.arange"), shown, device=device)
    new_dimension = [cst.SubscriptElement(cst.Index(cst.Ellipsis())), cst.SubscriptElement(cst.Index(cst.Name("None")))]
    column = cst.Subscript(build.operand(labels), new_dimension)
    differences = [
        differs("labels that are negative or not int64 do not raise, nor do no labels", Effect.NO_LONGER_RAISES),
        differs("the result is contiguous", Effect.STRIDES),
    ]
    if not isinstance(shown, cst.Integer):
        differences.append(differs(f"if `{plain(context, shown)}` is negative, it raises", Effect.RAISES))
    return Edit({above: build.method(build.compared(column, cst.Equal(), numbers), "long")}, differences)


def _shown(context: RewriteContext, labels: cst.BaseExpression) -> cst.BaseExpression | None:
    """The number that all labels are below, from the way they are computed."""
    if isinstance(labels, cst.BinaryOperation) and isinstance(labels.operator, cst.Modulo):
        return _lasting(context, labels.right)
    if not isinstance(labels, cst.Call):
        return None
    function, method = called(context, labels)
    given = [arg.value for arg in labels.args if arg.keyword is None]
    if method in ("long", "int") and not given and isinstance(labels.func, cst.Attribute):
        receiver = defined(context, labels.func.value)
        return build.expression("2") if context.fact(receiver).dtype == "bool" else _shown(context, receiver)
    if function == "torch.randint" and given:
        return _lasting(context, given[1] if len(given) > 1 and not isinstance(given[1], cst.Tuple) else given[0])
    if method in _PLACES and isinstance(labels.func, cst.Attribute):
        given = [labels.func.value, *given]
    elif function not in {f"torch.{name}" for name in _PLACES}:
        return None
    return _size(context, labels, given)


def _size(context: RewriteContext, call: cst.Call, given: list[cst.BaseExpression]) -> cst.BaseExpression | None:
    """The size of the dimension that positions refer to."""
    dimension = next((arg.value for arg in call.args if m.matches(arg.keyword or call, m.Name("dim"))), None)
    dimension = dimension or (given[1] if len(given) > 1 else None)
    plain = m.Integer() | m.UnaryOperation(operator=m.Minus(), expression=m.Integer())
    if dimension is None or not m.matches(dimension, plain) or not isinstance(given[0], cst.Name):
        return None
    if not is_bound_once(context, given[0].value):
        return None
    return build.expression(f"{given[0].value}.shape[{context.code(dimension)}]")


def _lasting(context: RewriteContext, number: cst.BaseExpression) -> cst.BaseExpression | None:
    """A number that is the same where the labels are computed and where they are used."""
    if isinstance(number, cst.Integer) or m.matches(number, m.Attribute(value=m.Name("self"))):
        return number
    lasting = isinstance(number, cst.Name) and is_bound_once(context, number.value)
    return number if lasting and not context.fact(number).is_tensor else None


def _named(context: RewriteContext) -> cst.BaseExpression | None:
    """A parameter, or an attribute that the class sets, that is named ``num_classes`` or similarly."""
    parameters = written(context.function.params)
    for name in _NAMES:
        if name in parameters and is_bound_once(context, name):
            return cst.Name(name)
    holder = next((one for one in context.around() if isinstance(one, cst.ClassDef)), None)
    for name in _NAMES if holder is not None and "self" in parameters else ():
        target = m.AssignTarget(m.Attribute(m.Name("self"), m.Name(name)))
        if holder is not None and findall(holder, target):
            return build.expression(f"self.{name}")
    return None
