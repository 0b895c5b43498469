"""Builds new code.  Nodes from the tree are always copied: a tree must not contain a node twice."""

from collections.abc import Sequence

import libcst as cst

OPPOSITE: dict[type[cst.BaseCompOp], cst.BaseCompOp] = {
    cst.Equal: cst.NotEqual(),
    cst.NotEqual: cst.Equal(),
    cst.Is: cst.IsNot(),
    cst.IsNot: cst.Is(),
    cst.In: cst.NotIn(),
    cst.NotIn: cst.In(),
}
"""The operator of a comparison that is true where another is false, also for NaN: the orderings have none."""
_ELEMENTWISE = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power, cst.BitAnd, cst.BitOr, cst.BitXor)
AUGMENTED: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    getattr(cst, f"{one.__name__}Assign"): one() for one in _ELEMENTWISE
}
"""The operator of an augmented assignment that works element by element."""
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber, cst.SimpleString, cst.List, cst.Dict)


def copied(node: cst.BaseExpression) -> cst.BaseExpression:
    """A copy of an expression, without the parentheses around it, unless they hold it together over several lines."""
    made = _bare(node)
    if not node.lpar or made.lpar or "\n" not in (code := cst.Module([]).code_for_node(made)):
        return made
    try:
        cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return node.deep_clone()
    return made


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """A copy of an expression without the parentheses around it, for a place between brackets."""
    made = node.deep_clone()
    return made.with_changes(lpar=(), rpar=()) if not isinstance(made, cst.Tuple | cst.GeneratorExp) else made


def operand(node: cst.BaseExpression) -> cst.BaseExpression:
    """A copy of an expression that can be an operand of any operator or of a dot: in parentheses if needed."""
    made = copied(node)
    if isinstance(made, _ATOMS) or (isinstance(made, cst.Tuple | cst.GeneratorExp) and made.lpar):
        return made
    return made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def argument(node: cst.BaseExpression, keyword: str | None = None) -> cst.Arg:
    """A copy of an expression as an argument of a call."""
    if keyword is None:
        return cst.Arg(_bare(node))
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(_bare(node), cst.Name(keyword), equal)


def call(function: cst.BaseExpression, *arguments: cst.BaseExpression, **named: cst.BaseExpression) -> cst.Call:
    given = [argument(one) for one in arguments]
    given += [argument(one, keyword) for keyword, one in named.items()]
    return cst.Call(operand(function), given)


def method(receiver: cst.BaseExpression, name: str, *arguments: cst.BaseExpression) -> cst.Call:
    """``receiver.name(arguments)``."""
    return call(cst.Attribute(operand(receiver), cst.Name(name)), *arguments)


def binary(left: cst.BaseExpression, operator: cst.BaseBinaryOp, right: cst.BaseExpression) -> cst.BinaryOperation:
    """``left operator right``, each in parentheses if needed."""
    return cst.BinaryOperation(operand(left), operator, operand(right))


def inverted(test: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite of a boolean tensor, elementwise: ``~t``, ``t`` for ``~t``, ``a != b`` for ``a == b``.

    ``<`` and the other orderings are not reversed, because both are False for NaN."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.BitInvert | cst.Not):
        return copied(test.expression)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        other = OPPOSITE.get(type(test.comparisons[0].operator))
        if other is not None:
            return compared(test.left, other, test.comparisons[0].comparator)
    return cst.UnaryOperation(cst.BitInvert(), operand(test))


def compared(left: cst.BaseExpression, operator: cst.BaseCompOp, right: cst.BaseExpression) -> cst.Comparison:
    return cst.Comparison(operand(left), [cst.ComparisonTarget(operator, operand(right))])


def is_inverted(node: cst.BaseExpression) -> bool:
    """True if an expression is ``~t``, which needs no parentheses next to ``&`` or ``|``."""
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert)


def assignment(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    """``target = value``."""
    made = cst.Assign([cst.AssignTarget(copied(target))], value)  # type: ignore[arg-type]
    return cst.SimpleStatementLine([made])


def expression(code: str) -> cst.BaseExpression:
    return cst.parse_expression(code)


def with_leading_lines(statement: cst.BaseStatement, like: cst.BaseStatement) -> cst.BaseStatement:
    """A statement with the blank lines and comments above another one."""
    lines = getattr(like, "leading_lines", ())
    return statement.with_changes(leading_lines=[line.deep_clone() for line in lines])


def joined_and(tests: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    """``a and b and c`` of copies."""
    made = copied(tests[0])
    for test in tests[1:]:
        left, right = (made if isinstance(made, cst.BooleanOperation) else operand_of_and(made)), operand_of_and(test)
        made = cst.BooleanOperation(left, cst.And(), right)
    return made


def operand_of_and(test: cst.BaseExpression) -> cst.BaseExpression:
    """A copy that can be an operand of ``and``: in parentheses only if it has a lower precedence."""
    if isinstance(test, cst.IfExp | cst.Lambda | cst.NamedExpr | cst.BooleanOperation):
        return operand(test)
    return copied(test)
