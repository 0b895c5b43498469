"""Reads the sides of an ``if``: the values that each assigns to names, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support.build import AUGMENTED, binary
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined, OtherForm
from breakscan.fix.support.purity import is_reporting

_OPERATORS: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {**AUGMENTED, cst.MatrixMultiplyAssign: cst.MatrixMultiply()}
_BLOCKS = {
    cst.If: "another `if`",
    cst.For: "a loop",
    cst.While: "a loop",
    cst.With: "a `with`",
    cst.Try: "a `try`",
    cst.FunctionDef: "a function",
}


@dataclass(frozen=True, slots=True)
class Assigned:
    """``name = value``, in the statement ``line``.  ``operator`` is the operator of ``name += value``."""

    name: str
    value: cst.BaseExpression
    line: cst.SimpleStatementLine
    operator: cst.BaseBinaryOp | None = None

    @property
    def made(self) -> cst.BaseExpression:
        """New code for the value."""
        if self.operator is None:
            return self.value
        return binary(cst.Name(self.name), self.operator.deep_clone(), self.value)


@dataclass(frozen=True, slots=True)
class Side:
    """The statements of one side.

    ``returned`` is the returned value, if any; ``messages`` are the calls that only report something.
    """

    assigned: tuple[Assigned, ...] = ()
    returned: cst.BaseExpression | None = None
    messages: tuple[cst.SimpleStatementLine, ...] = ()

    def value(self, name: str) -> Assigned | None:
        for one in self.assigned:
            if one.name == name:
                return one
        return None


def branch_of(context: RewriteContext) -> cst.If | cst.IfExp:
    """The ``if`` or conditional expression whose test is at the site.  Declines if there is none."""
    child = context.node
    if isinstance(child, cst.If | cst.IfExp):
        # No node spans a test with its parentheses.
        return child
    for above in context.around():
        if isinstance(above, cst.If | cst.IfExp) and above.test is child:
            return above
        if isinstance(above, cst.BaseStatement | cst.BaseSmallStatement):
            break
        child = above
    raise OtherForm("this is not the test of an `if` or a conditional expression")


def read_side(body: Sequence[cst.BaseStatement], context: RewriteContext, where: str = "one side") -> Side:
    """The side that a block is.  Declines if it contains more than assignments to names and the return of a value."""
    assigned: dict[str, Assigned] = {}
    messages: list[cst.SimpleStatementLine] = []
    returned: cst.BaseExpression | None = None
    for statement in body:
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Declined(f"{where} contains {_BLOCKS.get(type(statement), 'a compound statement')}")
        if len(statement.body) != 1:
            raise Declined("several statements share a line")
        small = statement.body[0]
        if isinstance(small, cst.Pass):
            continue
        if isinstance(small, cst.Expr) and tells(context, small.value):
            messages.append(statement)
            continue
        if isinstance(small, cst.Return):
            returned = _returned(small, where)
            break
        one = _assignment(context, small, statement, where)
        if one.name in assigned:
            raise Declined(f"`{one.name}` is assigned twice on one side")
        assigned[one.name] = one
    return Side(tuple(assigned.values()), returned, tuple(messages))


def tells(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is a call that reports something to the user, judged by its function or its name."""
    if is_reporting(context, node):
        return True
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name | cst.Attribute):
        return False
    name = node.func.value if isinstance(node.func, cst.Name) else node.func.attr.value
    return name.lstrip("_").endswith(("_warn", "_warning", "_info", "_debug", "_print", "_log", "_once"))


def _returned(small: cst.Return, where: str) -> cst.BaseExpression:
    if small.value is None:
        raise Declined(f"{where} returns None")
    if isinstance(small.value, cst.Tuple | cst.List | cst.Dict):
        raise Declined(f"{where} returns several values")
    return small.value


def _assignment(
    context: RewriteContext, small: cst.BaseSmallStatement, line: cst.SimpleStatementLine, where: str
) -> Assigned:
    operator = None
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
    elif isinstance(small, cst.AnnAssign) and small.value is not None:
        target, value = small.target, small.value
    elif isinstance(small, cst.AugAssign):
        target, value = small.target, small.value
        operator = _OPERATORS.get(type(small.operator))
        if operator is None:
            raise Declined(f"the operator of `{context.code(small)}` is not supported")
    else:
        raise Declined(_why_no_assignment(context, small, where))
    if isinstance(target, cst.Name):
        return Assigned(target.value, value, line, operator)
    if isinstance(target, cst.Subscript):
        raise Declined(f"`{context.code(target)}` is changed in place")
    if isinstance(target, cst.Attribute):
        raise Declined(f"the attribute `{context.code(target)}` is set on one side")
    raise Declined(f"`{context.code(target)}` assigns several names at once")


def _why_no_assignment(context: RewriteContext, small: cst.BaseSmallStatement, where: str) -> str:
    if isinstance(small, cst.Raise | cst.Assert):
        return f"{where} raises"
    if isinstance(small, cst.Continue | cst.Break):
        return f"{where} contains `continue` or `break`"
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        return f"`{context.code(small.value.func)}(...)` is not an assignment to a name"
    text = context.code(small)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}` is not an assignment to a name"
