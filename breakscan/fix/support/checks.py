"""Checks: the statements that only one needs, and tests for ``is_compiling()``."""

from collections.abc import Callable, Iterable, Sequence

import libcst as cst

from breakscan.fix.result import Difference, Effect, differs
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_needed_outside
from breakscan.fix.support.build import copied, operand_of_and
from breakscan.fix.support.context import RewriteContext, Statement
from breakscan.fix.support.operators import reads_values
from breakscan.fix.support.purity import why_missed
from breakscan.fix.support.walking import findall, read, walk, written
from breakscan.rulebook.torch_facts.not_measured import TRUE_WHILE_TRACING

_COMPILING = m.Attribute(attr=m.Name("is_compiling"))


def is_caught(context: RewriteContext, node: cst.CSTNode) -> bool:
    """True if an exception at a node may be caught in the function."""
    child = node
    for above in context.around(node):
        if isinstance(above, cst.FunctionDef):
            return False
        if isinstance(above, cst.Try | cst.TryStar) and above.handlers and child is above.body:
            return True
        child = above
    return False


def block_of(context: RewriteContext, last: Statement) -> list[Statement]:
    """The statements that end with a check and that no other code needs: the check alone, or with its preparation.

    Preparation only binds names, has no other effect, and its names are not read after the check."""
    body, position = context.siblings(last)
    found = [last]
    wanted = set(read(last))
    for one in reversed(body[:position]):
        if not isinstance(one, cst.SimpleStatementLine | cst.If):
            break
        bound = set(written(one))
        if not bound or not bound <= wanted or not _only_binds(one) or why_missed(context, one) is not None:
            break
        if any(is_needed_outside(context, name, one, *found) for name in bound):
            break
        found.insert(0, one)
        wanted |= set(read(one))
    # The first statement must not rebind a name that it reads, or a parameter.
    while len(found) > 1 and _rebinds(context, found[0]):
        found.pop(0)
    return found


def breaking(context: RewriteContext, statements: Sequence[cst.CSTNode]) -> str | None:
    """The first call in statements that breaks the graph itself, even without the check."""
    eager = [one.orelse for two in statements for one in findall(two, m.IfExp(m.Call(_COMPILING)))]  # type: ignore[attr-defined]
    calls = (one for two in statements for one in walk(two) if isinstance(one, cst.Call) and one not in eager)
    return next((context.code(call.func) for call in calls if reads_values(context, call)), None)


def _only_binds(statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.SimpleStatementLine):
        targets = [getattr(one, "targets", [one]) for one in statement.body]
        return all(m.matches(one, m.AssignTarget(m.Name())) for these in targets for one in these)
    if isinstance(statement, cst.If):
        body = statement.body.body
        rest = statement.orelse
        other = rest.body.body if isinstance(rest, cst.Else) else [rest] if rest is not None else []
        return all(_only_binds(one) for one in (*body, *other))
    return False


def _rebinds(context: RewriteContext, statement: Statement) -> bool:
    """True if it reads a name that it binds, such as ``preds = preds > 0``: other code may still need the old value."""
    smalls = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    kept = {*read(one.value for one in smalls if isinstance(one, cst.Assign)), *written(context.function.params)}
    return not kept.isdisjoint(written(statement))


def compiling(context: RewriteContext) -> cst.BaseExpression:
    """``torch.compiler.is_compiling()``, or the equivalent function that the file imports."""
    lines = [one for one in context.tree.module.body if isinstance(one, cst.SimpleStatementLine)]
    for small in (one for line in lines for one in line.body):
        if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
            is_of_torch = small.module is not None and context.code(small.module).startswith("torch")
            for alias in small.names:
                name = alias.evaluated_name
                is_meant = name in TRUE_WHILE_TRACING and (is_of_torch or name != "is_compiling")
                if is_meant and alias.asname is None and not context.is_bound(name):
                    return cst.Call(cst.Name(name))
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
    return cst.BooleanOperation(made, cst.And(), kept)


# -- what compiled code does not print or log -------------------------------------------------------------------------


def reported(statement: cst.CSTNode) -> list[cst.BaseExpression]:
    """The expressions that are statements of their own in a line."""
    return [one.value for one in getattr(statement, "body", ()) if isinstance(one, cst.Expr)]


def reason_in(
    context: RewriteContext, line: cst.CSTNode, why: Callable[[RewriteContext, cst.CSTNode], str | None]
) -> str | None:
    """The first reason that ``why`` has for an argument of the calls in a line."""
    args = [arg for call in reported(line) if isinstance(call, cst.Call) for arg in call.args]
    return next(filter(None, (why(context, arg) for arg in args)), None)


def skipped(reasons: Iterable[str | None]) -> list[Difference]:
    """The difference that compiled code skips what has side effects for the first of the reasons, if there is one."""
    return [differs(f"{one}, and compiled code skips it", Effect.STATE) for one in reasons if one][:1]
