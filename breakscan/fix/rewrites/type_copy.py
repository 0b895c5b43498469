"""``copy.copy(v)`` of a list, dict or set → ``v.copy()``.

``copy.copy`` calls the same method of the type.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import method
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.walking import nodes_named

BUILTIN = frozenset({"list", "dict", "set", "List", "Dict", "Set"})
_MAKING = frozenset(f"builtins.{name}" for name in ("list", "dict", "set", "sorted"))
_MADE = (cst.List, cst.ListComp, cst.Dict, cst.DictComp, cst.Set, cst.SetComp)


def rewrite(context: RewriteContext) -> Edit:
    """The copy with the method of the type, which compiles."""
    node = context.node
    if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].keyword is not None or node.args[0].star:
        raise Declined("the call does not have exactly one argument")
    copied = node.args[0].value
    kind = context.fact(copied).kind
    if kind == "tensor":
        raise Declined(f"`{context.code(copied)}` is a tensor: use `view_as` to share its memory, or `clone`")
    if kind == "module":
        raise Declined("a module is copied: copy it once, before the compiled call")
    if not _is_builtin(context, copied):
        raise Declined(f"`{context.code(copied)}` is not known to be a list, dict or set")
    differences = []
    if isinstance(copied, cst.Name) and _annotations(context.function, copied.value):
        said = (
            f"if `{copied.value}` is of a subclass, the copy is a plain one, or what the `copy` of the subclass returns"
        )
        differences.append(differs(said, Effect.TYPES, Effect.STATE))
    return Edit({node: method(copied, "copy")}, differences, keeps_operations=True)


def _is_builtin(context: RewriteContext, node: cst.BaseExpression) -> bool:
    if isinstance(node, _MADE):
        return True
    if isinstance(node, cst.Call):
        return called(context, node)[0] in _MAKING
    return isinstance(node, cst.Name) and _is_builtin_name(context, node.value)


def _is_builtin_name(context: RewriteContext, name: str) -> bool:
    """Whether every assignment to a name in the function assigns a list, dict or set."""
    function = context.function
    params = function.params
    if isinstance(params.star_kwarg, cst.Param) and params.star_kwarg.name.value == name:
        return True
    annotations = _annotations(function, name)
    bound = nodes_named(function.body, name)
    values: list[cst.BaseExpression] = []
    for one in bound:
        above = context.parent(one)
        if isinstance(above, cst.AssignTarget) and isinstance(assign := context.parent(above), cst.Assign):
            values.append(assign.value)
        elif isinstance(above, cst.AnnAssign) and above.target is one and above.value is not None:
            values.append(above.value)
        elif not isinstance(above, cst.Arg | cst.Attribute | cst.Subscript | cst.Return | cst.Index | cst.Comparison):
            return False
    told = all(annotation is not None and _names_builtin(annotation) for annotation in annotations)
    return bool(annotations or values) and told and all(isinstance(value, _MADE) for value in values)


def _annotations(function: cst.FunctionDef, name: str) -> list[cst.BaseExpression | None]:
    """The annotation of the parameter with a name; empty if it is no parameter."""
    params = function.params
    return [
        one.annotation.annotation if one.annotation is not None else None
        for one in (*params.posonly_params, *params.params, *params.kwonly_params)
        if one.name.value == name
    ]


def _names_builtin(annotation: cst.BaseExpression) -> bool:
    if isinstance(annotation, cst.Subscript):
        annotation = annotation.value
    if isinstance(annotation, cst.Attribute):
        annotation = annotation.attr
    return isinstance(annotation, cst.Name) and annotation.value in BUILTIN
