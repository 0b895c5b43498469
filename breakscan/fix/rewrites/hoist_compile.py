"""``torch.compile(step)(x)`` in a loop → ``compiled = torch.compile(step)`` before the loop, and ``compiled(x)`` in it.

The wrapper is created once; it runs the same code.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import assignment
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.definitions import declared_global, heading
from breakscan.fix.support.difference import assumes
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.import_names import import_name, imported_names
from breakscan.fix.support.names import read, written
from breakscan.fix.support.walking import findall

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
    if unbound := [name for name in read(node) if not _is_bound(context, name, loop)]:
        raise Declined(f"`{unbound[0]}` may not be bound before the loop, or changes in it")
    parts = [arg.value for arg in node.args if isinstance(arg.value, cst.Attribute)]
    changing = [
        assumes(f"`{context.code(one)}` must be the same in each iteration, and must not run code when it is read")
        for one in parts
        if import_name(context.tree.module, one) is None
    ]
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
            changing,
            keeps_operations=True,
        )
    if NAME in written(context.tree.module):
        raise Declined(f"the name `{NAME}` is already used")
    inner = cst.ensure_type(rest.deep_replace(node, cst.Name(NAME)), type(loop))
    return Edit(
        {loop: [assignment(cst.Name(NAME), node.deep_clone()).with_changes(leading_lines=lines), inner]},
        changing,
        keeps_operations=True,
    )


def _is_bound(context: RewriteContext, name: str, loop: cst.For | cst.While) -> bool:
    """Whether a name certainly has a value before a loop, which no code that the loop calls can replace."""
    module = context.tree.module
    if name in declared_global(module):
        return False
    functions = [one for one in context.around(loop) if isinstance(one, cst.FunctionDef)]
    for function in functions:
        if name in written(function.params):
            return True
        if name in written(function.body):
            body, position = context.siblings(loop)
            plain = cst.SimpleStatementLine | cst.FunctionDef
            return function is functions[0] and any(
                isinstance(one, plain) and name in written(heading(one)) and not findall(one, m.Del())
                for one in body[:position]
            )
    if name in imported_names(module):
        return True
    body = module.body if functions else context.siblings(loop)[0]
    before = body if functions else body[: context.siblings(loop)[1]]
    plain_top = cst.SimpleStatementLine | cst.FunctionDef | cst.ClassDef
    return any(isinstance(one, plain_top) and name in written(heading(one)) for one in before) and not any(
        name in written(one) for one in findall(module, m.Del())
    )
