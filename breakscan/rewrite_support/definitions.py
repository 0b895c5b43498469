"""Functions that the file itself defines."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.names import written


def is_function(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether an expression is a lambda, or the name of a plain function that is defined once at module level."""
    if isinstance(node, cst.Lambda):
        return True
    if not isinstance(node, cst.Name):
        return False
    binding = [one for one in context.tree.module.body if node.value in written(_header(one))]
    return len(binding) == 1 and m.matches(binding[0], m.FunctionDef(name=m.Name(node.value), decorators=[]))


def _header(statement: cst.BaseStatement) -> cst.CSTNode:
    """A statement; for a function or class, only its name."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return cst.Assign([cst.AssignTarget(cst.Name(statement.name.value))], cst.Name("None"))
    return statement
