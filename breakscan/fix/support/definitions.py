"""Functions that the file itself defines."""

from __future__ import annotations

import functools

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, differs
from breakscan.fix.support.names import written
from breakscan.fix.support.walking import findall

_OF_AN_ATTRIBUTE = Effect.VALUES, Effect.TYPES, Effect.RAISES


def is_function(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether an expression is a lambda, or the name of a plain function that is defined once at module level."""
    if isinstance(node, cst.Lambda):
        return True
    if not isinstance(node, cst.Name):
        return False
    binding = [one for one in context.tree.module.body if node.value in written(heading(one))]
    return len(binding) == 1 and m.matches(binding[0], m.FunctionDef(name=m.Name(node.value), decorators=[]))


def attributes_of_wrapper(context: RewriteContext, name: str) -> list[Difference]:
    """The difference if code reads an attribute of a function that a wrapper of it does not have, ``__defaults__``."""
    for one in findall(context.tree.module, m.Attribute(m.Name(name) | m.Attribute(attr=m.Name(name)))):
        attribute = cst.ensure_type(one, cst.Attribute).attr.value
        if attribute.startswith("__") and attribute not in functools.WRAPPER_ASSIGNMENTS:
            return [differs(f"`{context.code(one)}` is then that of the wrapper", *_OF_AN_ATTRIBUTE)]
    return []


def value_at_top(context: RewriteContext, name: str) -> cst.BaseExpression | None:
    """The value that the top level of the file assigns to a name, which nothing else there binds."""
    if name in declared_global(context.tree.module):
        return None
    binding = [one for one in context.tree.module.body if name in written(heading(one))]
    assigned = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name(name))])])
    if len(binding) != 1 or not m.matches(binding[0], assigned):
        return None
    return cst.ensure_type(cst.ensure_type(binding[0], cst.SimpleStatementLine).body[0], cst.Assign).value


def declared_global(module: cst.Module) -> frozenset[str]:
    """The names that functions of a file declare as ``global`` or ``nonlocal``, so that they may assign them."""
    found = findall(module, m.Global() | m.Nonlocal())
    return frozenset(item.name.value for one in found for item in one.names)  # type: ignore[attr-defined]


def heading(statement: cst.BaseStatement) -> cst.CSTNode:
    """A statement; for a function or class, only its name."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return cst.Assign([cst.AssignTarget(cst.Name(statement.name.value))], cst.Name("None"))
    return statement
