"""``not torch.compiler.is_compiling()`` around statements and in front of tests."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.support.build import copied, operand_of_and
from breakscan.fix.support.context import RewriteContext, Statement
from breakscan.rulebook.torch_facts.not_measured import TRUE_WHILE_TRACING


def compiling(context: RewriteContext) -> cst.BaseExpression:
    """``torch.compiler.is_compiling()``, or the equivalent function that the file imports."""
    for line in context.tree.module.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
                for alias in small.names:
                    if alias.evaluated_name in TRUE_WHILE_TRACING and alias.asname is None:
                        return cst.Call(cst.Name(alias.evaluated_name))
    return cst.Call(context.imported("torch.compiler.is_compiling"))


def not_compiling(context: RewriteContext) -> cst.BaseExpression:
    return cst.UnaryOperation(cst.Not(), compiling(context))


def and_not_compiling(context: RewriteContext, test: cst.BaseExpression, first: bool = True) -> cst.BaseExpression:
    """``not torch.compiler.is_compiling() and test``, or the other way round; the whitespace of the test is kept."""
    kept: cst.BaseExpression = test.deep_clone()
    if not isinstance(kept, cst.BooleanOperation) or not isinstance(kept.operator, cst.And):
        kept = kept if kept.lpar else operand_of_and(kept)
    elif not kept.lpar or "\n" not in context.code(test):
        kept = copied(kept)
    made = not_compiling(context)
    if not first:
        return cst.BooleanOperation(kept, cst.And(), made)
    # `a and (b and c)` needs no parentheses if `a` becomes the innermost left operand.
    if isinstance(kept, cst.BooleanOperation) and isinstance(kept.operator, cst.And) and not kept.lpar:
        return _in_front(kept, made)
    return cst.BooleanOperation(made, cst.And(), kept)


def _in_front(test: cst.BooleanOperation, made: cst.BaseExpression) -> cst.BaseExpression:
    left = test.left
    if isinstance(left, cst.BooleanOperation) and isinstance(left.operator, cst.And) and not left.lpar:
        return test.with_changes(left=_in_front(left, made))
    return test.with_changes(left=cst.BooleanOperation(made, cst.And(), left))


def guarded(context: RewriteContext, statements: Sequence[Statement]) -> cst.If:
    """``if not torch.compiler.is_compiling():`` around copies of statements; what is above them stays above it."""
    first, *others = (one.deep_clone() for one in statements)
    block = cst.IndentedBlock([first.with_changes(leading_lines=()), *others])
    return cst.If(not_compiling(context), block, leading_lines=first.leading_lines)
