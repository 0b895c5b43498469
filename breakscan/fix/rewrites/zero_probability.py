"""``if torch.rand([]) < p`` → ``if p > 0 and torch.rand([]) < p``.

``torch.rand`` and ``random.uniform(0, 1)`` return numbers of at least 0, so none is less than a probability of 0: the
test has the same result.  If the probability is 0, as by default for layer drop and similar options, Dynamo knows the
result and need not read the number.  The number is still drawn, so the random state is also the same.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.result import Effect, assumes, differs
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_outer, is_read
from breakscan.fix.support.build import and_list, joined_and, operand, operand_of_and
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.walking import findall, nodes_named

_UNIT = [m.Arg(one, keyword=None) for one in (m.Integer("0") | m.Float("0.0"), m.Integer("1") | m.Float("1.0"))]
_NO_PROBABILITY = ("tensor", "number", "container", "none", "module", "function", "class", "instance")


def rewrite(context: RewriteContext) -> Edit:
    """The comparison after a test of only the probability."""
    test = _comparison(context)
    number, probability = _sides(test)
    drawn = defined(context, number)
    if not isinstance(drawn, cst.Call) or not _is_drawn(context, drawn):
        raise OtherForm("the compared number is not drawn by `torch.rand` or `random.uniform(0, 1)`")
    if drawn is number:
        raise Declined("the number would not be drawn if the probability is 0: draw it before the test")
    if context.dotted(drawn.func) == "torch.rand" and not _draws_one(drawn):
        raise Declined(f"`{context.code(drawn)}` may draw several numbers, which have no truth value")
    if not isinstance(probability, cst.Attribute | cst.Name) or context.fact(probability).kind in _NO_PROBABILITY:
        raise Declined(f"`{context.code(probability)}` is not a plain Python number")
    asked = cst.Comparison(operand(probability), [cst.ComparisonTarget(cst.GreaterThan(), cst.Integer("0"))])
    code = cst.Module([]).code_for_node(asked)
    whole = _whole_test(context, test)
    tests = and_list(whole)
    if any(_is_above_zero(context, one, probability) for one in (*tests, *_tests_around(context, whole))):
        raise Declined(f"it already breaks only if `{code}`")
    if whole is test:
        made: cst.BaseExpression = cst.BooleanOperation(asked, cst.And(), operand_of_and(test))
        in_parentheses = bool(test.lpar) or isinstance(context.parent(test), cst.BooleanOperation | cst.UnaryOperation)
    else:
        before = tests[: tests.index(test)]
        made = cst.BooleanOperation(joined_and([*before, asked]), cst.And(), test.deep_clone())
        for one in tests[len(before) + 1 :]:
            made = cst.BooleanOperation(made, cst.And(), one.deep_clone())
        in_parentheses = bool(whole.lpar)
    if in_parentheses:
        made = made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    text = context.code(probability)
    said = f"`{text}` must be a plain number, and `{context.code(number)}` must not have changed since it was drawn"
    differences = [assumes(said)]
    if isinstance(context.parent(whole), cst.Assign | cst.Return | cst.Arg):
        differences.append(differs(f"the value is False, not a tensor, if `{text}` is 0", Effect.TYPES))
    return Edit({whole: made}, differences, remains=code)


def _is_drawn(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression draws numbers between 0 and 1."""
    if not isinstance(node, cst.Call):
        return False
    name = context.dotted(node.func)
    return name == "torch.rand" or (name == "random.uniform" and m.matches(node, m.Call(args=_UNIT)))


def _draws_one(drawn: cst.Call) -> bool:
    """True if a call of ``torch.rand`` draws a single number: ``torch.rand([])``, ``torch.rand(1)``."""
    sizes: list[cst.BaseExpression] = []
    for arg in drawn.args:
        if arg.star or (arg.keyword is not None and arg.keyword.value == "size"):
            return False
        if arg.keyword is None:
            given = arg.value
            sizes += [one.value for one in given.elements] if isinstance(given, cst.List | cst.Tuple) else [given]
    return all(m.matches(one, m.Integer("1")) for one in sizes)


def _comparison(context: RewriteContext) -> cst.Comparison:
    """The comparison in a test, or in the value of a tested name: ``self.training and drawn < p``."""
    test = context.node
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test = test.expression
    if isinstance(test, cst.Name):
        test = _value_of(context, test)
    found = [one for one in findall(test, m.Comparison()) if isinstance(one, cst.Comparison)]
    drawn = [one for one in found if context.fact(one).kind == "tensor" or _compares_drawn(context, one)]
    if len(drawn) != 1 or len(drawn[0].comparisons) != 1:
        raise OtherForm("the test is not a comparison of one random number with a probability")
    return drawn[0]


def _compares_drawn(context: RewriteContext, test: cst.Comparison) -> bool:
    sides = test.left, test.comparisons[0].comparator
    return any(_is_drawn(context, defined(context, one)) for one in sides)


def _value_of(context: RewriteContext, name: cst.Name) -> cst.BaseExpression:
    """The value assigned to a name, or its only other value where it is ``False`` otherwise."""
    value = defined(context, name)
    if value is not name or is_outer(context, name.value):
        return value
    values: list[cst.BaseExpression] = []
    for one in nodes_named(context.function, name.value):
        if is_read(context, one):
            continue
        above = context.parent(one)
        small = context.parent(above) if isinstance(above, cst.AssignTarget) else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return name
        values.append(small.value)
    others = [one for one in values if not m.matches(one, m.Name("False"))]
    return others[0] if len(others) == 1 else name


def _tests_around(context: RewriteContext, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The conditions under which a test is made in its function."""
    found: list[cst.BaseExpression] = []
    below: cst.CSTNode = node
    for above in context.around(node):
        if isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.If) and below is above.body:
            found += and_list(above.test)
        below = above
    return found


def _is_above_zero(context: RewriteContext, test: cst.BaseExpression, probability: cst.BaseExpression) -> bool:
    zero = m.Integer("0") | m.Float(m.MatchIfTrue(lambda text: float(text) == 0))
    above_zero = m.Comparison(comparisons=[m.ComparisonTarget(m.GreaterThan(), zero)])
    return m.matches(test, above_zero) and context.code(cst.ensure_type(test, cst.Comparison).left) == context.code(
        probability
    )


def _sides(test: cst.Comparison) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """The drawn number, and the probability that it must be less than."""
    target = test.comparisons[0]
    if isinstance(target.operator, cst.LessThan):
        return test.left, target.comparator
    if isinstance(target.operator, cst.GreaterThan):
        return target.comparator, test.left
    raise OtherForm("only `<` is always False if the probability is 0")


def _whole_test(context: RewriteContext, test: cst.BaseExpression) -> cst.BaseExpression:
    """The largest ``and`` that the comparison is an operand of."""
    whole = test
    while isinstance(above := context.parent(whole), cst.BooleanOperation) and isinstance(above.operator, cst.And):
        if whole.lpar and whole is not test:
            break
        whole = above
    return whole
