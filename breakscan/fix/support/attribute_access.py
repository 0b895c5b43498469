"""Whether a class runs code of its own where an attribute is read or set: ``__getattr__``, an unknown base."""

from __future__ import annotations

import builtins

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.import_names import import_name
from breakscan.fix.support.walking import findall

_HOOKS = m.Name("__getattr__") | m.Name("__getattribute__") | m.Name("__setattr__")
_PLAIN_BASES = ("abc.", "collections.abc.", "enum.", "torch.nn.", "typing.", "typing_extensions.")


def access_that_runs_code(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of the first attribute in a node whose class may run code for it; None if there is none."""
    for one in findall(node, m.Attribute()):
        if not isinstance(one, cst.Attribute) or not context.tree.holds(one):
            continue
        kind = context.fact(one.value).kind
        owner = _class_of_self(context, one.value)
        if owner is not None:
            hooked = may_define(context, owner, _HOOKS)
        else:
            hooked = kind in ("module", "instance") and bool(findall(context.tree.module, m.FunctionDef(_HOOKS)))
        if hooked:
            return context.code(one)
    return None


def _class_of_self(context: RewriteContext, node: cst.BaseExpression) -> cst.ClassDef | None:
    """The class around a method whose first parameter an expression is."""
    if not isinstance(node, cst.Name):
        return None
    below: cst.CSTNode = node
    for one in context.around(node):
        if isinstance(one, cst.ClassDef) and isinstance(below, cst.FunctionDef):
            given = [*below.params.posonly_params, *below.params.params]
            return one if given and given[0].name.value == node.value else None
        if isinstance(one, cst.FunctionDef):
            below = one
    return None


def definer(
    context: RewriteContext, owner: cst.ClassDef, names: m.BaseMatcherNode, seen: frozenset[str] = frozenset()
) -> cst.ClassDef | None:
    """The first of a class of the file and its bases there that has a member with one of some names."""
    if _defines(owner, names):
        return owner
    seen |= {owner.name.value}
    for base in owner.bases:
        made = _without_arguments(base.value)
        if isinstance(made, cst.Name) and made.value not in seen:
            defined = _classes_named(context, made.value)
            if len(defined) == 1 and (found := definer(context, defined[0], names, seen)):
                return found
    return None


def may_define(
    context: RewriteContext, owner: cst.ClassDef, names: m.BaseMatcherNode, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a class of the file, or a base of it, may have a member with one of some names."""
    if _defines(owner, names) or owner.keywords:
        return True
    seen |= {owner.name.value}
    for base in owner.bases:
        made = _without_arguments(base.value)
        name = import_name(context.tree.module, made)
        if name is not None and name.startswith(_PLAIN_BASES):
            continue
        if not isinstance(made, cst.Name):
            return True
        defined = _classes_named(context, made.value)
        if len(defined) == 1:
            if made.value not in seen and may_define(context, defined[0], names, seen):
                return True
        elif defined or name is not None or not hasattr(builtins, made.value):
            return True
    return False


def _defines(owner: cst.ClassDef, names: m.BaseMatcherNode) -> bool:
    return bool(findall(owner, m.FunctionDef(names) | m.AssignTarget(names)))


def _without_arguments(base: cst.BaseExpression) -> cst.BaseExpression:
    """``Base`` of ``Base[T]``."""
    return base.value if isinstance(base, cst.Subscript) else base


def _classes_named(context: RewriteContext, name: str) -> list[cst.ClassDef]:
    return [one for one in findall(context.tree.module, m.ClassDef(m.Name(name))) if isinstance(one, cst.ClassDef)]
