"""``self.steps = 0``, changed in ``forward`` → ``self.register_buffer("steps", torch.tensor(0), persistent=False)``.

A Python number on a module is a constant in compiled code, a buffer is an input: a step is then an operation in the
graph.  ``self.steps += 1`` becomes ``self.steps = self.steps + 1``: the compiled backward pass computes with the new
value of a buffer that is changed in place, and gradients are wrong (torch 2.13).  ``persistent=False`` keeps it out of
the state dict, as before.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import statements, with_leading_lines
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit, Replacement
from breakscan.fix.support.walking import findall

_COUNTS = m.AugAssign(operator=m.AddAssign() | m.SubtractAssign(), value=m.Integer())
_IS_TENSOR = differs("the attribute is a tensor, not a Python number", Effect.TYPES)
_NO_NUMBER = differs("assigning a number to the attribute in other files raises a TypeError", Effect.RAISES)


def rewrite(context: RewriteContext) -> Edit:
    """The number in ``__init__`` as a buffer."""
    counted = next((one for one in (context.node, *context.around()) if isinstance(one, cst.AugAssign)), None)
    if counted is None or not m.matches(counted.target, m.Attribute(value=m.Name())):
        raise Declined("the number is set from outside: pass it in as a tensor")
    target = cst.ensure_type(counted.target, cst.Attribute)
    name, own = target.attr.value, context.code(target.value)
    if not m.matches(counted, _COUNTS):
        raise Declined("the number is not changed by an integer")
    owner = next((one for one in context.around() if isinstance(one, cst.ClassDef)), None)
    if owner is None:
        raise Declined("the function is not a method")
    init = next((one for one in owner.body.body if m.matches(one, m.FunctionDef(name=m.Name("__init__")))), None)
    if not isinstance(init, cst.FunctionDef) or not isinstance(init.body, cst.IndentedBlock):
        raise Declined(f"`{owner.name.value}` has no `__init__`")
    line = _start(context, init, own, name)
    for one in findall(context.tree.module, m.SimpleString()):
        if cst.ensure_type(one, cst.SimpleString).evaluated_value == name:
            raise Declined(f"`{context.code(one)}` may name the number elsewhere")
    replace: dict[cst.CSTNode, Replacement] = {}
    for one in findall(context.tree.module, m.Attribute(attr=m.Name(name))):
        above = context.parent(one)
        if isinstance(above, cst.AugAssign) and m.matches(above, _COUNTS):
            replace[above] = _changed(above)
            continue
        if isinstance(above, cst.AssignTarget) and context.statement(one) is line:
            continue
        if isinstance(above, cst.BinaryOperation):
            other = above.right if above.left is one else above.left
            if context.fact(other).is_tensor:
                continue
        raise Declined(f"`{context.code(one)}` is used as a Python number elsewhere")
    value = cst.ensure_type(line.body[0], cst.Assign).value
    tensor = context.code(context.imported("torch.tensor"))
    (made,) = statements(f'{own}.register_buffer("{name}", {tensor}({context.code(value)}), persistent=False)')
    made = with_leading_lines(made, line).with_changes(trailing_whitespace=line.trailing_whitespace)
    return Edit({line: made, **replace}, [_IS_TENSOR, _NO_NUMBER])


def _changed(change: cst.AugAssign) -> cst.Assign:
    """``self.steps += 1`` as ``self.steps = self.steps + 1``."""
    operator = cst.Add() if isinstance(change.operator, cst.AddAssign) else cst.Subtract()
    value = cst.BinaryOperation(
        cst.ensure_type(change.target.deep_clone(), cst.Attribute), operator, change.value.deep_clone()
    )
    return cst.Assign([cst.AssignTarget(change.target.deep_clone())], value, semicolon=change.semicolon)


def _start(context: RewriteContext, init: cst.FunctionDef, own: str, name: str) -> cst.SimpleStatementLine:
    """The line of ``__init__`` that sets the number."""
    ready = False
    assigned = m.Assign([m.AssignTarget(m.Attribute(m.Name(own), m.Name(name)))], m.Integer())
    for line in init.body.body:
        ready = ready or "__init__" in context.code(line)
        if m.matches(line, m.SimpleStatementLine([assigned])):
            if not ready:
                raise Declined("the number is set before `super().__init__()`")
            return cst.ensure_type(line, cst.SimpleStatementLine)
    raise Declined(f"`__init__` does not set `{own}.{name}` to an integer")
