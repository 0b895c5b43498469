"""``if not mask.any(): break`` → ``if not torch.compiler.is_compiling() and not mask.any(): break``.

Applies to tests that only save work: an exit from a loop or a function, or a test around updates of what a mask
selects, ``if mask.any():``, which becomes ``if torch.compiler.is_compiling() or mask.any():``.  Compiled code does the
work that changes nothing."""

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.result import assumes
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_needed_outside
from breakscan.fix.support.build import operand_of_and
from breakscan.fix.support.checks import and_not_compiling, compiling
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import called
from breakscan.fix.support.purity import refuse_breaks_in
from breakscan.fix.support.tensor_test import asks_tensor, operands
from breakscan.fix.support.walking import findall, read, walk, written

_HITS = frozenset({"any", "all", "sum", "max", "count_nonzero"})
"""Reductions of a mask by which a test asks if it selects anything."""
_READS = frozenset({"item", "bool", "int", "cpu"})


def rewrite(context: RewriteContext) -> Edit:
    """The same ``if``, whose test compiled code does not make."""
    branch = context.tested_by(cst.If)
    if branch is None:
        raise OtherForm("this is not the test of an `if`")
    if branch.orelse is not None or isinstance(context.parent(branch), cst.If):
        raise OtherForm("the `if` has another branch")
    text = context.plain(branch.test)
    left = _left(branch)
    if left is None:
        masks = [mask for one in operands(branch.test) if (mask := _mask(context, one)) is not None]
        if not masks or not all(_only_there(context, one, masks, [branch]) for one in branch.body.body):
            raise OtherForm("the `if` does more than leave out work for a mask that selects nothing")
        refuse_breaks_in(context, branch.body)
        made: cst.BaseExpression = cst.BooleanOperation(compiling(context), cst.Or(), operand_of_and(branch.test))
        return Edit({branch.test: made}, [assumes(f"its body must change nothing where `{text}` is false")])
    mask = next((mask for one in operands(branch.test) if (mask := _unhit(context, one)) is not None), None)
    if isinstance(left, cst.Break):
        _refuse_endless(context, branch, is_fixed_point=mask is None)
    elif mask is None:
        raise OtherForm("the exit is not for a mask that selects nothing")
    elif isinstance(left, cst.Return):
        _refuse_other_result(context, branch, left, mask)
    else:
        _refuse_other_work(context, branch, mask)
    return Edit(
        {branch.test: _if_not_compiling(context, branch.test)},
        [assumes(f"what follows must change nothing where `{text}` is true")],
    )


def _left(branch: cst.If) -> cst.Break | cst.Continue | cst.Return | None:
    """The exit that is the whole body of an ``if``."""
    body = branch.body.body
    small = body[0].body[0] if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else None
    return small if isinstance(small, cst.Break | cst.Continue | cst.Return) else None


def _if_not_compiling(context: RewriteContext, test: cst.BaseExpression) -> cst.BaseExpression:
    """The test without its tensors in compiled code; Python conditions of an ``or`` are still tested."""
    is_one = not isinstance(test, cst.BooleanOperation) or not isinstance(test.operator, cst.Or)
    if is_one or all(asks_tensor(context, one) for one in operands(test)):
        return and_not_compiling(context, test)
    assert isinstance(test, cst.BooleanOperation)
    sides = {}
    for name, side in (("left", test.left), ("right", test.right)):
        made = _if_not_compiling(context, side) if asks_tensor(context, side) else side.deep_clone()
        is_and = isinstance(made, cst.BooleanOperation) and isinstance(made.operator, cst.And) and not made.lpar
        sides[name] = made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]) if is_and else made
    return test.deep_clone().with_changes(**sides)


def _mask(context: RewriteContext, test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The mask of which a test asks whether it selects anything, or all."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not | cst.BitInvert):
        return _mask(context, test.expression)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _mask(context, test.left) if isinstance(test.comparisons[0].comparator, cst.Integer) else None
    name, owner = _called_with(context, test)
    if owner is None or name not in _HITS | _READS:
        return None
    return owner if name in _HITS else _mask(context, owner)


def _called_with(context: RewriteContext, test: cst.BaseExpression) -> tuple[str, cst.BaseExpression | None]:
    """The name of the function or method that a test calls, and the tensor that it gets."""
    value = defined(context, test)
    if not isinstance(value, cst.Call):
        return "", None
    function, method = called(context, value)
    owner = value.func.value if method and isinstance(value.func, cst.Attribute) else None
    owner = value.args[0].value if owner is None and value.args else owner
    return method or (function or "").rpartition(".")[2], owner


def _unhit(context: RewriteContext, test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The mask that selects nothing, or all, where a test is true; None for other tests."""
    value = defined(context, test)
    if m.matches(value, m.UnaryOperation(m.Not() | m.BitInvert())):
        reduction = cst.ensure_type(value, cst.UnaryOperation).expression
        return None if _called_with(context, reduction)[0] == "all" else _mask(context, reduction)
    if m.matches(value, _IS_ZERO):
        return _mask(context, value)
    return _mask(context, value) if _called_with(context, value)[0] == "all" else None


_ZERO = m.ComparisonTarget(m.Equal(), m.Integer("0")) | m.ComparisonTarget(m.LessThan(), m.Integer("1"))
_IS_ZERO = m.Comparison(comparisons=[_ZERO])


# -- what the exit leaves out ---------------------------------------------------------------------------------------


def _refuse_endless(context: RewriteContext, branch: cst.If, is_fixed_point: bool) -> None:
    """Declines unless the loop ends without the exit, and computes what it has again in each round."""
    loop = next((one for one in context.around(branch) if isinstance(one, cst.For | cst.While)), None)
    if loop is None or loop.orelse is not None:
        raise OtherForm("this leaves no loop")
    others = [one for one in operands(branch.test) if not asks_tensor(context, one)]
    ends = isinstance(branch.test, cst.BooleanOperation) and isinstance(branch.test.operator, cst.Or) and others
    if isinstance(loop, cst.While) and (asks_tensor(context, loop.test) or m.matches(loop.test, _ALWAYS)) and not ends:
        raise Declined("the loop would not end: compile what it calls, and not the loop")
    if findall(loop.body, _GROWS):
        raise Declined("each round makes something longer: compile what the loop calls, and not the loop")
    bound = (one for one in walk(loop.body) if isinstance(one, cst.Assign | cst.AugAssign))
    if is_fixed_point and not any(isinstance(one, cst.AugAssign) or {*written(one)} & {*read(one)} for one in bound):
        raise OtherForm("a further round would compute something else")


_ALWAYS = m.Name("True") | m.Integer("1")
_GROWS = m.Call(m.Attribute(attr=m.Name(m.MatchRegex("append|extend|cat|concat|stack|[hvd]stack"))))


def _refuse_other_work(context: RewriteContext, branch: cst.If, mask: cst.BaseExpression) -> None:
    """Declines unless what follows in the block changes only what the mask selects."""
    body, position = context.siblings(branch)
    rest = [one for one in body[position + 1 :] if not m.matches(one, _RETURN)]
    if any(_called_with(context, one)[0] == "all" for one in operands(branch.test)):
        rest = [one for one in rest if not _keeps_all(context, one, mask)]
    if not all(_only_there(context, one, [mask], rest) for one in rest):
        raise OtherForm("what follows may change something where the mask selects nothing")


_RETURN = m.SimpleStatementLine([m.Return()])


def _refuse_other_result(context: RewriteContext, branch: cst.If, left: cst.Return, mask: cst.BaseExpression) -> None:
    """Declines unless the end of the function returns the same for what the test is about."""
    last = context.function.body.body[-1]
    end = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    same = end.value if isinstance(end, cst.Return) else None
    sides = same.args if isinstance(same, cst.Call) and called(context, same)[0] == "torch.where" else ()
    texts = [context.plain(one) for one in (same, *(arg.value for arg in sides)) if one is not None]
    if left.value is None or (context.plain(left.value) not in texts and not _is_same(context, left.value, same, mask)):
        raise OtherForm("what follows may return something else")
    if not sides:
        _refuse_other_work(context, branch, mask)


def _is_same(context: RewriteContext, one: cst.BaseExpression, other: object, mask: cst.BaseExpression) -> bool:
    """True if two tuples hold the same, but for None in place of the mask."""
    if not isinstance(one, cst.Tuple) or not isinstance(other, cst.Tuple) or len(one.elements) != len(other.elements):
        return False
    sides = zip(*([context.plain(part.value) for part in side.elements] for side in (one, other)), strict=True)
    return all(left == right or (left, right) == ("None", context.plain(mask)) for left, right in sides)


def _keeps_all(context: RewriteContext, statement: cst.BaseStatement, mask: cst.BaseExpression) -> bool:
    """True for ``x = x.where(mask, ...)``, with which nothing changes where the mask selects all."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Assign) or not isinstance(value := small.value, cst.Call) or not value.args:
        return False
    name = context.plain(small.targets[0].target)
    return context.plain(value.func) == f"{name}.where" and context.plain(value.args[0].value) == context.plain(mask)


def _only_there(
    context: RewriteContext, statement: cst.CSTNode, masks: Sequence[cst.BaseExpression], where: Sequence[cst.CSTNode]
) -> bool:
    """True if a statement changes only what one of the masks selects, or a name that only the statements ``where``
    need."""
    if isinstance(statement, cst.If) and statement.orelse is None:
        return all(_only_there(context, one, masks, where) for one in statement.body.body)
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target: cst.BaseExpression = small.targets[0].target
    elif isinstance(small, cst.AugAssign):
        target = small.target
    else:
        return False
    texts = {context.plain(one) for one in masks}
    if isinstance(target, cst.Subscript):
        return any(context.plain(one) in texts for part in target.slice for one in walk(part))
    if not isinstance(target, cst.Name):
        return False
    if isinstance(small.value, cst.Call) and called(context, small.value)[0] == "torch.where":
        sides = [context.plain(arg.value) for arg in small.value.args]
        return sides[0] in texts and sides[-1] == target.value
    return not is_needed_outside(context, target.value, *where)
