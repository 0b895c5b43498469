"""``torch.compile(step)`` alone on a line → ``step = torch.compile(step)``.

For a module, the name then holds a wrapper: the keys of its state dict start with ``_orig_mod.``.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import assignment
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.definitions import attributes_of_wrapper, is_function
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import read, written
from breakscan.fix.support.walking import findall, nodes_named

_KEYS = differs("the keys of a module's state dict start with `_orig_mod.`", Effect.STATE, Effect.TYPES)
_HELD = differs("code that holds the object from before still has the one that is not compiled", *Effect)


def rewrite(context: RewriteContext) -> Edit:
    """The result, assigned to the name of the compiled object."""
    line = context.line()
    statement = line.body[0]
    if not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.Call) or not statement.value.args:
        raise Declined("the result is assigned to a name that is not used")
    target = statement.value.args[0].value
    if not isinstance(target, cst.Name | cst.Attribute):
        raise Declined(f"`{context.code(target)}` cannot be assigned to")
    if isinstance(target, cst.Name):
        _bound_here(context, target.value)
        if any(isinstance(one, cst.For | cst.While) for one in context.around()):
            raise Declined("in a loop, each iteration would assign the name again")
    made = assignment(target, statement.value.deep_clone()).body[0]
    differences = [] if is_function(context, target) else [_KEYS]
    if isinstance(target, cst.Name) and _is_held(context, target):
        differences.append(_HELD)
    if isinstance(target, cst.Name):
        differences += attributes_of_wrapper(context, target.value)
    return Edit({statement: made}, differences, keeps_operations=True)


def _is_held(context: RewriteContext, target: cst.Name) -> bool:
    """Whether the compiled object is used for more than calling it, so that other code may hold it."""
    for one in nodes_named(context.tree.module, target.value):
        above = context.parent(one)
        called = isinstance(above, cst.Call) and above.func is one
        if one is not target and not called and not isinstance(above, cst.FunctionDef | cst.Attribute | cst.NameItem):
            return True
    return False


def _bound_here(context: RewriteContext, name: str) -> None:
    """Declines if the name belongs to another scope, or is not used after the line."""
    for one in context.around():
        if isinstance(one, cst.FunctionDef):
            if name not in written(one):
                raise Declined(f"`{name}` is not a local variable of this function")
            if name not in read(context.behind(context.statement())) or findall(one, m.Global() | m.Nonlocal()):
                raise Declined(f"`{name}` is not used after this line in the function")
            return
        if isinstance(one, cst.ClassDef):
            raise Declined("the line is in a class body")
