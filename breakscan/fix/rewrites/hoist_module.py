"""``nn.Linear(4, 4)(x)`` in ``forward`` → ``self.linear(x)``, with the module created in ``__init__``.

If it is created in ``forward``, its weights are random at each call, and no optimizer knows them; in ``__init__``, they
are drawn once and can be trained.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import copied, statements
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.walking import findall

ONCE = differs(
    "the weights are created once, in `__init__`, with its default dtype, and are parameters of the module",
    *(Effect.RANDOM, Effect.STATE, Effect.VALUES, Effect.DTYPES),
)


def rewrite(context: RewriteContext) -> Edit:
    """The construction at the end of ``__init__``, and an attribute that replaces it."""
    node = context.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute | cst.Name):
        raise Declined("the module is not created by a call of its class")
    owner = context.parent(context.function)
    owner = context.parent(owner) if owner is not None else None
    if not isinstance(owner, cst.ClassDef):
        raise Declined("the function is not a method: create the module outside and pass it in")
    init = next((one for one in owner.body.body if m.matches(one, m.FunctionDef(name=m.Name("__init__")))), None)
    if not isinstance(init, cst.FunctionDef) or not isinstance(init.body, cst.IndentedBlock):
        raise Declined(f"`{owner.name.value}` has no `__init__`")
    if init is context.function:
        raise Declined("the module is already created in `__init__`")
    own = _own_name(context.function)
    if own is None or own != _own_name(init):
        raise Declined("the method has no `self`")
    _known_early(context, node, init, own)
    if any(isinstance(one, cst.For | cst.While | cst.Lambda | cst.BaseComp) for one in context.around()):
        raise Declined("a loop creates several modules: create them in `__init__`, in an `nn.ModuleList`")
    if any(isinstance(one, cst.Return) for one in findall(init, m.Return())):
        raise Declined("`__init__` may return before its end")
    name = _attribute(context, node, owner)
    last = init.body.body[-1]
    (made,) = statements(f"{own}.{name} = 0\n")
    made = made.with_deep_changes(made.body[0], value=copied(node))  # type: ignore[attr-defined]
    attribute = cst.Attribute(cst.Name(own), cst.Name(name))
    return Edit({node: attribute, last: [last.deep_clone(), made]}, [ONCE])


def _own_name(function: cst.FunctionDef) -> str | None:
    return function.params.params[0].name.value if function.params.params else None


def _known_early(context: RewriteContext, node: cst.Call, init: cst.FunctionDef, own: str) -> None:
    """Declines if an argument is not known in ``__init__``."""
    set_there = {
        cst.ensure_type(one, cst.Attribute).attr.value
        for statement in init.body.body
        for target in findall(statement, m.AssignTarget(m.Attribute(value=m.Name(own))))
        for one in [cst.ensure_type(target, cst.AssignTarget).target]
        if isinstance(statement, cst.SimpleStatementLine)
    }

    def known(value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.BaseNumber | cst.SimpleString) or m.matches(
            value, m.Name("True") | m.Name("False") | m.Name("None")
        ):
            return True
        if isinstance(value, cst.UnaryOperation):
            return known(value.expression)
        if isinstance(value, cst.Tuple | cst.List):
            return all(known(element.value) for element in value.elements)
        if isinstance(value, cst.BinaryOperation):
            return known(value.left) and known(value.right)
        if isinstance(value, cst.Attribute):
            dotted = context.dotted(value) or ""
            mine = m.matches(value.value, m.Name(own)) and value.attr.value in set_there
            return mine or dotted.startswith("torch.")
        if isinstance(value, cst.Call):
            return (context.dotted(value.func) or "").startswith("torch.") and all(
                known(arg.value) and not arg.star for arg in value.args
            )
        return False

    for arg in node.args:
        if arg.star or not known(arg.value):
            raise Declined(f"`{context.code(arg.value)}` is not known in `__init__`")


def _attribute(context: RewriteContext, node: cst.Call, owner: cst.ClassDef) -> str:
    """A name for the attribute: the name that the module is assigned to, or that of its class."""
    statement = context.line().body[0]
    name = (context.dotted(node.func) or context.code(node.func)).rpartition(".")[2].lower()
    if isinstance(statement, cst.Assign) and statement.value is node and len(statement.targets) == 1:
        target = statement.targets[0].target
        if not isinstance(target, cst.Name):
            raise Declined("the module is assigned to an attribute in each call")
        name = target.value
    taken = {cst.ensure_type(one, cst.Attribute).attr.value for one in findall(owner, m.Attribute())}
    if name in taken or name in {one.name.value for one in owner.body.body if isinstance(one, cst.FunctionDef)}:
        raise Declined(f"the attribute `{name}` already exists")
    return name
