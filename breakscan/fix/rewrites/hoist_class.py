"""``class`` inside a function → the same class at module level, above it.

If the body uses no variable of the function, each call would define the same class.  Safe for methods and immutable
attributes, if no other code gets an instance: only the identity and the qualified name of the class differ.
"""

from __future__ import annotations

import builtins

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_read
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import read, written
from breakscan.fix.support.walking import findall, nodes_named

ONCE = differs("the class and its attributes are created once, not at each call", Effect.STATE, Effect.TYPES)
RUNS = differs("the class exists even if its statement does not run", Effect.NO_LONGER_RAISES)
_BASES = frozenset(
    {
        *("object", "Exception", "ValueError", "RuntimeError", "TypeError", "NamedTuple", "typing.NamedTuple"),
        *("torch.nn.Module", "Protocol", "typing.Protocol"),
    }
)
_DECORATORS = frozenset({"dataclass", "dataclasses.dataclass"})
_LOOKS_AT_CLASSES = frozenset(
    {
        *("type", "vars", "globals", "locals", "setattr", "delattr", "repr", "pickle"),
        *("__class__", "__dict__", "__format__", "__module__", "__mro__", "__name__", "__qualname__", "__reduce__"),
        *("__reduce_ex__", "__repr__", "__str__", "__subclasses__", "mro"),
    }
)
_CONSTANT = m.Integer() | m.Float() | m.SimpleString() | m.Name("True") | m.Name("False") | m.Name("None")
_FIXED = m.SimpleStatementLine(
    [
        m.Pass()
        | m.Expr(m.SimpleString() | m.Ellipsis())
        | m.Assign(value=_CONSTANT)
        | m.AnnAssign(value=_CONSTANT)
        | m.AnnAssign(value=None)
    ]
)


def rewrite(context: RewriteContext) -> Edit:
    """The class in front of the function."""
    node = context.node
    if not isinstance(node, cst.ClassDef):
        raise Declined("the class is not defined by a `class` statement")
    name = node.name.value
    if name.startswith("__") and not name.endswith("__"):
        raise Declined(f"`{name}` has another name inside a class")
    functions = [one for one in context.around() if isinstance(one, cst.FunctionDef)]
    local = {bound for one in functions for bound in _bound(one, node)} - {name}
    used = [one for one in read(node) if one in local]
    if used:
        raise Declined(f"the class body uses `{used[0]}`, a variable of the function")
    inside = set(context.around())
    if any(name in written(one) for one in context.tree.module.body if one not in inside) or name in _bound(
        functions[0], node
    ):
        raise Declined(f"the name `{name}` is also bound elsewhere")
    outside = [one for one in nodes_named(context.tree.module, name) if is_read(context, one)]
    if any(functions[-1] not in [*context.around(one)] for one in outside):
        raise Declined(f"code outside of the function reads `{name}`")
    _defined_above(context, node)
    body, _ = context.siblings(node)
    leading = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    leading += [line.deep_clone() for line in node.leading_lines if line.comment is not None]
    moved = node.deep_clone().with_changes(leading_lines=leading)
    replace: dict[cst.CSTNode, cst.CSTNode | None] = {node: None if len(body) > 1 else _pass()}
    same = (
        _fixed(context, node)
        and not _is_handed_on(context, functions[-1], name)
        and not _shows_its_class(context, functions[-1], name)
    )
    differences = [] if same else [ONCE]
    if context.parent(node) is not functions[0].body:
        differences.append(RUNS)
    return Edit(replace, differences, above=[moved], keeps_operations=True)


def _pass() -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Pass()])


def _bound(function: cst.FunctionDef, without: cst.ClassDef) -> list[str]:
    """The names that a function binds, without those inside the class."""
    emptied = function.deep_replace(without, _pass())
    return written(emptied if isinstance(emptied, cst.CSTNode) else function)


def _defined_above(context: RewriteContext, node: cst.ClassDef) -> None:
    """Declines if the class, when it is created, uses a name that the file binds only after it."""
    above: set[str] = set(dir(builtins))
    for one in context.tree.module.body:
        if one in list(context.around(node)):
            break
        above |= set(written(one))
    heads = [*node.decorators, *node.bases, *node.keywords]
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            heads += [*statement.decorators, statement.params, *([statement.returns] if statement.returns else [])]
        else:
            heads.append(statement)
    own = set(written(node))
    for name in read(heads):
        if name not in above and name not in own:
            raise Declined(f"`{name}` is not defined above the function")


def _is_handed_on(context: RewriteContext, function: cst.FunctionDef, name: str) -> bool:
    """Whether a class may be changed: it is used for more than creating, raising and catching instances."""
    for one in nodes_named(function, name):
        above = context.parent(one)
        if isinstance(above, cst.Call):
            held = above.func is not one
        elif isinstance(above, cst.Attribute):
            held = isinstance(context.parent(above), cst.AssignTarget | cst.AugAssign | cst.Del)
        elif isinstance(above, cst.Arg):
            call = context.parent(above)
            held = not (isinstance(call, cst.Call) and m.matches(call.func, m.Name("isinstance")))
        else:
            held = not isinstance(above, cst.ExceptHandler | cst.Raise | cst.Annotation | cst.ClassDef)
        if held:
            return True
    stored = m.AssignTarget(target=m.Attribute(value=~m.Name("self"))) | m.AugAssign(target=m.Attribute())
    changes = m.Call(func=m.Name("setattr") | m.Name("delattr") | m.Attribute(attr=m.Name("__dict__")))
    inside = findall(context.node, stored | changes | m.Name("__class__") | m.Name("cls"))
    return bool(inside)


def _shows_its_class(context: RewriteContext, function: cst.FunctionDef, name: str) -> bool:
    """Whether other code may see where the class was defined: it gets an instance, or code looks at classes."""
    if findall(function, m.Name(m.MatchIfTrue(_LOOKS_AT_CLASSES.__contains__))):
        return True
    for one in nodes_named(function, name):
        made = context.parent(one)
        if not isinstance(made, cst.Call):
            continue
        above = context.parent(made)
        if isinstance(above, cst.Assign) and m.matches(above, m.Assign([m.AssignTarget(m.Name())])):
            held = cst.ensure_type(above.targets[0].target, cst.Name)
            others = [read for read in nodes_named(function, held.value) if read is not held]
            if all(isinstance(context.parent(read), cst.Attribute) for read in others):
                continue
        if not isinstance(above, cst.Attribute | cst.Raise | cst.Expr):
            return True
    return False


def _fixed(context: RewriteContext, node: cst.ClassDef) -> bool:
    """Whether the class is the same at each call and contains nothing mutable."""
    if node.keywords or any(_name(context, base.value) not in _BASES for base in node.bases):
        return False
    if any(_name(context, one.decorator) not in _DECORATORS for one in node.decorators):
        return False
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            params = [one for one in findall(statement.params, m.Param()) if isinstance(one, cst.Param)]
            if statement.decorators or any(one.default is not None for one in params):
                return False
        elif not m.matches(statement, _FIXED):
            return False
    return True


def _name(context: RewriteContext, node: cst.BaseExpression) -> str:
    return context.dotted(node) or context.code(node.func if isinstance(node, cst.Call) else node)
