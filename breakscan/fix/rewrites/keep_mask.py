"""``if mask.all(): mask = None`` → ``if not torch.compiler.is_compiling() and mask.all(): mask = None``.

A mask that hides nothing is often replaced by None, to save work.  Compiled code keeps the mask: to ask for its values
breaks the graph.  This is right only if a mask of ones means the same as no mask, which the code does not say.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import and_list, operand, or_list
from breakscan.fix.support.compiling import and_not_compiling, compiling
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import assumes
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.if_sides import branch_of
from breakscan.fix.support.names import written
from breakscan.fix.support.operators import called
from breakscan.fix.support.purity import why_not_pure

_ONES = (m.Integer("1"), m.Float("1.0"), m.Name("True"))
_ZEROS = (m.Integer("0"), m.Float("0.0"), m.Name("False"))


class _Asks(Enum):
    """What a test of a mask asks."""

    HIDES_NOTHING = "all"
    HIDES_SOMETHING = "any"


@dataclass(frozen=True, slots=True)
class _MaskTest:
    """The part of a condition that asks for the values of a mask."""

    node: cst.BaseExpression
    mask: cst.Name
    asks: _Asks


def rewrite(context: RewriteContext) -> Edit:
    """The condition at the site, which compiled code decides without the values of the mask."""
    node = branch_of(context)
    if not isinstance(node, cst.If) or node.orelse is not None:
        raise OtherForm("this is not an `if` without `else`")
    tests = [one for part in or_list(node.test) for leaf in and_list(part) if (one := _mask_test(context, leaf))]
    if len(tests) != 1:
        raise OtherForm("the test does not ask whether a mask hides something")
    found = tests[0]
    if not _drops_mask(context, node, found):
        raise OtherForm("the mask is not replaced by None")
    if (reason := why_not_pure(context, found.node)) is not None:
        raise Declined(f"compiled code would skip the test, and {reason}")
    if found.asks is _Asks.HIDES_NOTHING:
        made: cst.BaseExpression = and_not_compiling(context, found.node)
        above = context.parent(found.node)
        if isinstance(above, cst.BooleanOperation) and isinstance(above.operator, cst.Or):
            made = operand(made)
    else:
        made = operand(cst.BooleanOperation(compiling(context), cst.Or(), operand(found.node)))
        made = made if context.parent(found.node) is not node else made.with_changes(lpar=(), rpar=())
    name = found.mask.value
    said = f"in compiled code, `{name}` is kept even if it hides nothing, and must then mean the same as None"
    return Edit({found.node: made}, [assumes(said)])


def _mask_test(context: RewriteContext, node: cst.BaseExpression) -> _MaskTest | None:
    if m.matches(node, m.Comparison(comparisons=[m.ComparisonTarget(operator=m.In())])):
        asked = cst.ensure_type(node, cst.Comparison)
        mask = asked.comparisons[0].comparator
        if isinstance(mask, cst.Name) and any(m.matches(asked.left, zero) for zero in _ZEROS):
            return _MaskTest(node, mask, _Asks.HIDES_SOMETHING)
        return None
    if not isinstance(node, cst.Call):
        return None
    function, method = called(context, node)
    if function in ("torch.all", "torch.any") and len(node.args) == 1:
        name, tested = function.removeprefix("torch."), node.args[0].value
    elif method in ("all", "any") and not node.args and isinstance(node.func, cst.Attribute):
        name, tested = method, node.func.value
    else:
        return None
    asks = _Asks(name)
    if asks is _Asks.HIDES_NOTHING and isinstance(tested, cst.Name):
        return _MaskTest(node, tested, asks)
    if not m.matches(tested, m.Comparison(comparisons=[m.ComparisonTarget(operator=m.Equal())])):
        return None
    equal = cst.ensure_type(tested, cst.Comparison)
    numbers = _ONES if asks is _Asks.HIDES_NOTHING else _ZEROS
    if isinstance(equal.left, cst.Name) and any(m.matches(equal.comparisons[0].comparator, one) for one in numbers):
        return _MaskTest(node, equal.left, asks)
    return None


def _drops_mask(context: RewriteContext, node: cst.If, test: _MaskTest) -> bool:
    """Whether the branch makes the difference between the mask and None."""
    body = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    inside = _small(body[0]) if len(body) == 1 else None
    if isinstance(inside, cst.Return):
        behind = next(iter(context.behind(node)), None)
        last = _small(behind) if behind is not None else None
        if not isinstance(last, cst.Return):
            return False
        dropped, kept = (inside, last) if test.asks is _Asks.HIDES_NOTHING else (last, inside)
        return _returns(kept, test.mask.value) and (dropped.value is None or _returns(dropped, "None"))
    if test.asks is _Asks.HIDES_SOMETHING or not isinstance(inside, cst.Assign) or len(inside.targets) != 1:
        return False
    target = inside.targets[0].target
    return (
        m.matches(inside.value, m.Name("None"))
        and isinstance(target, cst.Name)
        and _held(context, node, target.value, test.mask.value)
    )


def _small(statement: cst.BaseStatement) -> cst.BaseSmallStatement | None:
    """The only statement of a line."""
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None


def _returns(statement: cst.Return, name: str) -> bool:
    return isinstance(statement.value, cst.Name) and statement.value.value == name


def _held(context: RewriteContext, node: cst.If, name: str, mask: str) -> bool:
    """Whether a name holds the mask before a branch."""
    if name == mask:
        return True
    body, position = context.siblings(node)
    for statement in reversed(body[:position]):
        small = _small(statement)
        if isinstance(small, cst.Assign) and m.matches(small.value, m.Name(mask)) and written(statement) == [name]:
            return True
        if {name, mask} & set(written(statement)):
            return False
    return False
