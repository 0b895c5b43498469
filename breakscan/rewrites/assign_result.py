"""``torch.compile(step)`` alone on a line → ``step = torch.compile(step)``.

For a module, the name then holds a wrapper: the keys of its state dict start with ``_orig_mod.``.
"""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.build import assignment
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.definitions import is_function
from breakscan.rewrite_support.difference import Effect, differs
from breakscan.rewrite_support.edit import Declined, Edit
from breakscan.rewrite_support.names import read, written
from breakscan.rewrite_support.walking import findall

_KEYS = differs("the keys of a module's state dict start with `_orig_mod.`", Effect.STATE)


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
    plain = is_function(context, target)
    return Edit({statement: made}, () if plain else [_KEYS])


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
