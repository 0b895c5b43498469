"""``torch.compile(model)`` whose result is not used → ``model.compile()``.

This method of ``nn.Module`` compiles in place.  It has no effect on classes of ``torch.nn``.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.attribute_access import definer, may_define
from breakscan.fix.support.build import operand
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.definitions import is_function, value_at_top
from breakscan.fix.support.difference import assumes
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.walking import findall

UNKNOWN = assumes("it must be a module, and not of a torch.nn class, which would not be compiled in place")
_COMPILE = m.Name("compile")


def rewrite(context: RewriteContext) -> Edit:
    """The statement as a call of the module's method."""
    statement = context.line().body[0]
    call, name = _compiled(context, statement)
    model, *options = call.args
    if model.keyword is not None or model.star or any(arg.keyword is None for arg in options):
        raise Declined("the module is not the first argument")
    if name is not None and not m.matches(model.value, m.Name(name)):
        raise Declined("the result is assigned to a different name")
    known = context.fact(model.value)
    own = name == "self" or known.kind == "module"
    if known.kind == "function" or is_function(context, model.value):
        raise Declined("a function is compiled, but only modules can be compiled in place")
    if known.name is not None and known.name.startswith("torch.nn."):
        raise Declined("a module of a torch.nn class cannot be compiled in place")
    owner = _class_of(context, model.value)
    if owner is not None and (other := definer(context, owner, _COMPILE)):
        raise Declined(f"`{other.name.value}` defines `compile` itself")
    is_set = bool(findall(context.tree.module, m.AssignTarget(m.Attribute(attr=_COMPILE))))
    if own and (is_set or owner is None or may_define(context, owner, _COMPILE)):
        differences = [assumes(f"the class of `{context.code(model.value)}` must not define `compile`")]
    else:
        differences = [] if own else [UNKNOWN]
    made = cst.Call(cst.Attribute(operand(model.value), cst.Name("compile")), [arg.deep_clone() for arg in options])
    return Edit({statement: cst.Expr(made)}, differences, keeps_operations=True)


def _class_of(context: RewriteContext, model: cst.BaseExpression) -> cst.ClassDef | None:
    """The class of the file that a module is made from."""
    if m.matches(model, m.Name("self")):
        return next((one for one in context.around() if isinstance(one, cst.ClassDef)), None)
    made = defined(context, model)
    if isinstance(made, cst.Name):
        made = value_at_top(context, made.value) or made
    if not isinstance(made, cst.Call) or not isinstance(made.func, cst.Name):
        return None
    found = findall(context.tree.module, m.ClassDef(m.Name(made.func.value)))
    return cst.ensure_type(found[0], cst.ClassDef) if len(found) == 1 else None


def _compiled(context: RewriteContext, statement: cst.BaseSmallStatement) -> tuple[cst.Call, str | None]:
    """The call of ``torch.compile``, and the name that its result is assigned to."""
    value: cst.BaseExpression | None = None
    name: str | None = None
    if isinstance(statement, cst.Expr):
        value = statement.value
    elif m.matches(statement, m.Assign([m.AssignTarget(m.Name())])):
        assign = cst.ensure_type(statement, cst.Assign)
        value, name = assign.value, cst.ensure_type(assign.targets[0].target, cst.Name).value
    if not isinstance(value, cst.Call) or not context.code(value.func).endswith("compile") or not value.args:
        raise Declined("the statement does more than compile a module")
    return value, name
