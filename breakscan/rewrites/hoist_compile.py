"""``torch.compile(step)(x)`` in a loop → ``compiled = torch.compile(step)`` before the loop, and ``compiled(x)`` in it.

The wrapper is created once; it runs the same code.
"""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.build import assignment
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.edit import Declined, Edit
from breakscan.rewrite_support.names import read, written

NAME = "compiled"


def rewrite(context: RewriteContext) -> Edit:
    """The wrapper, created before the outermost loop that does not change it."""
    node = context.node
    if not isinstance(node, cst.Call) or not context.code(node.func).endswith("compile") or not node.args:
        raise Declined("torch.compile is not called with a function or module")
    if any(isinstance(one, cst.Lambda | cst.BaseComp) for one in context.around()):
        raise Declined("the call is in a lambda or comprehension")
    compiled = node.args[0].value
    loop: cst.For | cst.While | None = None
    for one in context.around():
        if isinstance(one, cst.FunctionDef | cst.ClassDef):
            break
        if isinstance(one, cst.For | cst.While):
            if changed := [name for name in read(node) if name in written(one)]:
                if loop is None:
                    raise Declined(f"the loop changes `{changed[0]}`")
                break
            loop = one
    if loop is None:
        if isinstance(compiled, cst.Attribute):
            raise Declined(f"compile it once, in `__init__`: `{context.code(compiled)}.compile()`")
        raise Declined("compile it once, where the model is built, and pass the result in")
    if any(
        not isinstance(arg.value, cst.Name | cst.Attribute | cst.BaseNumber | cst.SimpleString) for arg in node.args
    ):
        raise Declined("an argument of torch.compile is created in each iteration")
    lines = [one.deep_clone() for one in loop.leading_lines]
    rest = loop.with_changes(leading_lines=())
    statement = context.line().body[0]
    if isinstance(statement, cst.Assign) and statement.value is node and len(statement.targets) == 1:
        target = statement.targets[0].target
        if (
            not isinstance(target, cst.Name)
            or written(loop).count(target.value) > 1
            or len(context.siblings(context.line())[0]) < 2
        ):
            raise Declined("the result is not assigned to a name that the loop sets once")
        inner = cst.ensure_type(rest.deep_remove(context.line()), type(loop))
        return Edit(
            {loop: [assignment(target, node.deep_clone()).with_changes(leading_lines=lines), inner]},
            keeps_operations=True,
        )
    if NAME in written(context.tree.module):
        raise Declined(f"the name `{NAME}` is already used")
    inner = cst.ensure_type(rest.deep_replace(node, cst.Name(NAME)), type(loop))
    return Edit(
        {loop: [assignment(cst.Name(NAME), node.deep_clone()).with_changes(leading_lines=lines), inner]},
        keeps_operations=True,
    )
