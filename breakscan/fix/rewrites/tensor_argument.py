"""``compiled(x, step / 10)`` → ``compiled(x, torch.tensor(step / 10))``.

A Python number is compiled in, a tensor is an input.  If the compiled function only combines it with tensors, the
results have the same dtype; a float is first rounded to torch's default dtype.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import call
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import written
from breakscan.fix.support.walking import findall, nodes_named

DIFFERENCE = differs(
    "the argument is a tensor, and a float is first rounded to the default dtype", Effect.TYPES, Effect.VALUES
)


def rewrite(context: RewriteContext) -> Edit:
    """The number as a tensor without dimensions."""
    value = context.node
    arg = context.parent(value)
    above = context.parent(arg) if arg is not None else None
    if not isinstance(value, cst.BaseExpression) or not isinstance(arg, cst.Arg) or not isinstance(above, cst.Call):
        raise Declined("the number is not an argument of a call")
    if arg.star:
        raise Declined("the number is not an argument of a call")
    function = _compiled(context, above.func)
    names = [one.name.value for one in (*function.params.posonly_params, *function.params.params)]
    if arg.keyword is not None:
        name = arg.keyword.value
    elif len(names) > above.args.index(arg):
        name = names[above.args.index(arg)]
    else:
        raise Declined("the function takes a variable number of arguments")
    if name in written(function.body):
        raise Declined(f"`{name}` is reassigned in the compiled function")
    for one in nodes_named(function.body, name):
        inside = context.parent(one)
        operator = isinstance(inside, cst.BinaryOperation) and isinstance(
            inside.operator, cst.Add | cst.Subtract | cst.Multiply | cst.Divide
        )
        if not operator or not isinstance(inside, cst.BinaryOperation):
            raise Declined(f"the compiled function needs `{name}` as a Python number")
        other = inside.right if inside.left is one else inside.left
        if not context.fact(other).is_tensor:
            raise Declined(f"the compiled function combines `{name}` with a value that may not be a tensor")
    return Edit({value: call(context.imported("torch.tensor"), value)}, [DIFFERENCE])


def _compiled(context: RewriteContext, func: cst.BaseExpression) -> cst.FunctionDef:
    """The function of this file that a name was compiled from."""
    if isinstance(func, cst.Name):
        for one in findall(context.tree.module, m.Assign([m.AssignTarget(m.Name(func.value))], m.Call())):
            made = cst.ensure_type(cst.ensure_type(one, cst.Assign).value, cst.Call)
            if context.code(made.func).endswith("compile") and made.args:
                named = made.args[0].value
                for found in findall(context.tree.module, m.FunctionDef()):
                    if (
                        isinstance(named, cst.Name)
                        and cst.ensure_type(found, cst.FunctionDef).name.value == named.value
                    ):
                        return cst.ensure_type(found, cst.FunctionDef)
    raise Declined("the compiled function is not found in this file")
