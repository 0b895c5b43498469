"""Expressions of rows that a mask selects, the same expressions for all rows, and tests for whether there are any."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.context import Declined, RewriteContext
from breakscan.fix.support.operators import called, is_elementwise, writes
from breakscan.fix.support.walking import findall, read
from breakscan.rulebook.torch_facts.not_measured import CONVERTS_WHERE_GIVEN
from breakscan.rulebook.torch_facts.operators import operator

_ALL = m.SubscriptElement(m.Slice(lower=None, upper=None, step=None))
_NONE = m.SubscriptElement(m.Index(m.Name("None")))
_MINUS_ONE = m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
_LAST = m.Arg(_MINUS_ONE | m.Integer("1"))
_TO_ROWS = m.Name("view") | m.Name("reshape")
_DIM = m.Arg(_MINUS_ONE) | m.Arg(_MINUS_ONE, keyword=m.Name("dim"))
_IN_ROW = m.Call(m.Attribute(attr=m.Name(m.MatchRegex("argmax|argmin|softmax|log_softmax|sum|mean|norm"))), [_DIM])
"""Methods that compute with the elements of a row."""
_ROWWISE = frozenset({"torch.nn.functional.linear"})


@dataclass(slots=True)
class Rows:
    """A selection of rows: with the index ``index``, as code, which is a mask if ``is_mask``; next to it, ``column``
    selects one weight in each row.

    ``hits`` is then the matrix of a row and a column for each selected weight.  ``packed`` are names that hold selected
    rows, ``called`` what computes with them besides operations of torch, ``aliases`` other names of the index and the
    column.  ``multiplies``: matrices are multiplied."""

    index: str
    column: str | None = None
    is_mask: bool = False
    multiplies: bool = False
    hits: cst.BaseExpression | None = None
    packed: set[str] = field(default_factory=set)
    called: dict[str, None] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def name_of(self, text: str) -> str:
        """Code, by its first name."""
        return self.aliases.get(text, text)

    def touches(self, context: RewriteContext, node: cst.CSTNode) -> bool:
        """True if code uses selected rows, or indices of rows."""
        names = {*self.packed, *self.aliases}
        names |= {self.index, self.column or self.index} if self.hits is not None else set()
        if not names.isdisjoint(read(node)):
            return True
        return any(self.selects(context, one) for one in findall(node, m.Subscript()))

    def selects(self, context: RewriteContext, node: cst.CSTNode) -> bool:
        parts = [one.slice for one in cst.ensure_type(node, cst.Subscript).slice]
        indices = [context.plain(one.value) for one in parts if isinstance(one, cst.Index)]
        return self.index in map(self.name_of, indices)


def of_all(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression for all rows.  Declines if it may need the selected rows themselves."""
    if not rows.touches(context, node) or (isinstance(node, cst.Name) and node.value in rows.packed):
        return build.copied(node)
    if isinstance(node, cst.Subscript):
        return _subscript(context, rows, node)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.BitInvert):
        return node.with_changes(expression=build.operand(of_all(context, rows, node.expression)))
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, cst.MatrixMultiply) and rows.touches(context, node.right):
            raise _refused(context, node)
        rows.multiplies |= isinstance(node.operator, cst.MatrixMultiply)
        sides = {"left": node.left, "right": node.right}
        made = {one: _side(context, rows, side) for one, side in sides.items()}
        return build.copied(node.with_changes(**made))
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        target = node.comparisons[0]
        right = target.with_changes(comparator=_side(context, rows, target.comparator))
        return build.copied(node.with_changes(left=_side(context, rows, node.left), comparisons=[right]))
    if isinstance(node, cst.Call):
        return _call(context, rows, node)
    raise _refused(context, node)


def _side(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> cst.BaseExpression:
    made = of_all(context, rows, node)
    return node.deep_clone() if context.code(made) == context.plain(node) else build.operand(made)


def _refused(context: RewriteContext, node: cst.CSTNode) -> Declined:
    return Declined(f"`{context.plain(node)}` needs the selected rows themselves, whose number depends on values")


def _subscript(context: RewriteContext, rows: Rows, node: cst.Subscript) -> cst.BaseExpression:
    first, *rest = node.slice
    if rows.touches(context, node.value):
        # `w[hit][:, None]`
        if not m.matches(first, _ALL) or any(rows.touches(context, one) for one in rest):
            raise _refused(context, node)
        return _with_dimensions(of_all(context, rows, node.value), rest)
    is_first = isinstance(first.slice, cst.Index) and rows.name_of(context.plain(first.slice.value)) == rows.index
    if not is_first or any(rows.name_of(context.plain(one)) == rows.index for one in rest):
        raise _refused(context, node)
    owner = build.copied(node.value)
    if rest and rows.column is not None and rows.name_of(context.plain(rest[0]).rstrip(", ")) == rows.column:
        if rows.hits is None or len(rest) > 2 or not all(m.matches(one, _NONE) for one in rest[1:]):
            raise _refused(context, node)
        chosen = build.call(context.imported("torch.where"), rows.hits, owner, build.expression("0"))
        keeps = [build.argument(build.expression("True"), "keepdim")] if len(rest) == 2 else []
        summed = build.method(chosen, "sum", build.expression("-1"))
        return summed.with_changes(args=[*summed.args, *keeps])
    if any(rows.touches(context, one) for one in rest):
        raise _refused(context, node)
    if all(m.matches(one, _ALL) for one in rest):
        return owner
    return _with_dimensions(owner, rest)


def _with_dimensions(owner: cst.BaseExpression, rest: Iterable[cst.SubscriptElement]) -> cst.BaseExpression:
    """``owner[..., rest]``."""
    dots = cst.SubscriptElement(cst.Index(cst.Ellipsis()))
    elements = [one.deep_clone().with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in rest]
    return cst.Subscript(build.operand(owner), [dots, *elements]) if elements else owner


def _call(context: RewriteContext, rows: Rows, node: cst.Call) -> cst.BaseExpression:
    args = [arg.value for arg in node.args]
    if any(arg.star for arg in node.args):
        raise _refused(context, node)
    if isinstance(node.func, cst.Attribute) and rows.touches(context, node.func.value):
        return _method(context, rows, node, node.func)
    is_module = context.fact(node.func).kind == "module"
    function = None if is_module else called(context, node)[0]
    if (function or "").startswith("torch."):
        if function in _ROWWISE and not any(rows.touches(context, one) for one in args[1:]):
            rows.multiplies = True
        elif not is_elementwise(context, node) or writes(context, node):
            raise _refused(context, node)
    elif (function or "").startswith("builtins.") or context.fact(node.func).kind == "function":
        raise _refused(context, node)
    else:
        rows.called[context.plain(node.func)] = None
    new = [arg.with_changes(value=of_all(context, rows, arg.value)) for arg in node.args]
    return node.with_changes(func=node.func.deep_clone(), args=new)


def _method(context: RewriteContext, rows: Rows, node: cst.Call, func: cst.Attribute) -> cst.BaseExpression:
    name = func.attr.value
    if m.matches(node, m.Call(m.Attribute(attr=_TO_ROWS), [m.Arg(_MINUS_ONE), m.Arg()])):
        value = func.value
        new_first = m.Subscript(slice=[_NONE, m.SubscriptElement()])
        if m.matches(value, new_first):
            # `h[None, rows].reshape(-1, n)`
            value = cst.ensure_type(value, cst.Subscript)
            value = value.with_changes(slice=[value.slice[1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
            if rows.name_of(context.plain(value.slice[0])) != rows.index:
                raise _refused(context, node)
            return build.copied(value.value)
        return of_all(context, rows, value)
    receiver = build.operand(of_all(context, rows, func.value))
    changed = func.with_changes(value=receiver)
    if name == "unsqueeze" and m.matches(node, m.Call(args=[_LAST])):
        return build.method(receiver, "unsqueeze", build.expression("-1"))
    known = operator(context.finding.torch, f"torch.Tensor.{name}")
    converts = name in CONVERTS_WHERE_GIVEN or (known is not None and known.keeps_values is True)
    if converts or (known is not None and known.elementwise is True) or m.matches(node, _IN_ROW):
        new = [arg.with_changes(value=of_all(context, rows, arg.value)) for arg in node.args]
        if known is None or not known.writes:
            return node.with_changes(func=changed, args=new)
    raise _refused(context, node)


_FIRST = m.SubscriptElement(m.Index(m.Integer("0")))
_SIZES = m.Call(m.Attribute(attr=m.Name("numel")), []) | m.Call(
    m.Attribute(attr=m.Name("size")), [m.Arg(m.Integer("0"))]
)
_SHAPE = m.Subscript(m.Attribute(attr=m.Name("shape")), [_FIRST])
_COMPARED = {
    (cst.Equal, 0): False,
    (cst.LessThan, 1): False,
    (cst.LessThanEqual, 0): False,
    (cst.GreaterThan, 0): True,
    (cst.NotEqual, 0): True,
    (cst.GreaterThanEqual, 1): True,
}
"""The meaning of a comparison of a number of rows with a number."""


def tells_rows(context: RewriteContext, rows: Rows, test: cst.BaseExpression) -> bool | None:
    """True if a test is for rows (True) or for their absence (False); None if it tests something else."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = tells_rows(context, rows, test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        side = test.comparisons[0]
        if not _is_count(context, rows, test.left) or not isinstance(side.comparator, cst.Integer):
            return None
        return _COMPARED.get((type(side.operator), side.comparator.evaluated_value))
    if isinstance(test, cst.Call) and called(context, test)[1] == "item" and isinstance(test.func, cst.Attribute):
        return tells_rows(context, rows, test.func.value)
    is_any = isinstance(test, cst.Call) and _reduces(context, rows, test, "any")
    return True if is_any or _is_count(context, rows, test) else None


def _reduces(context: RewriteContext, rows: Rows, call: cst.Call, name: str) -> bool:
    """True if a call is a reduction of the mask that selects the rows."""
    function, method = called(context, call)
    if method == name and isinstance(call.func, cst.Attribute) and not call.args:
        return rows.is_mask and context.plain(call.func.value) == rows.index
    is_function = function == f"torch.{name}" and len(call.args) == 1
    return is_function and rows.is_mask and context.plain(call.args[0].value) == rows.index


def _is_count(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> bool:
    node = defined(context, node)
    if isinstance(node, cst.Call):
        function, method = called(context, node)
        if method == "item" and isinstance(node.func, cst.Attribute):
            return _is_count(context, rows, node.func.value)
        if function in ("builtins.int", "builtins.len") and len(node.args) == 1:
            counts = _is_count if function == "builtins.int" else _is_index
            return counts(context, rows, node.args[0].value)
        if m.matches(node, _SIZES):
            return _is_index(context, rows, cst.ensure_type(node.func, cst.Attribute).value)
        return _reduces(context, rows, node, "sum") or _reduces(context, rows, node, "count_nonzero")
    if not m.matches(node, _SHAPE):
        return False
    shape = cst.ensure_type(cst.ensure_type(node, cst.Subscript).value, cst.Attribute)
    return _is_index(context, rows, shape.value)


def _is_index(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> bool:
    """True if an expression has as many elements as there are rows."""
    return not rows.is_mask and context.plain(node) in (rows.index, rows.column)
