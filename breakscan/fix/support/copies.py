"""Whether it matters that a copy replaces a tensor: its other aliases, and how the copy is used."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import Fate, fate
from breakscan.fix.support.assignments import is_outer, is_read
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.names import read
from breakscan.fix.support.walking import findall, nodes_named
from breakscan.model.facts import TensorFacts


def is_shared(context: RewriteContext, facts: TensorFacts, site: cst.CSTNode, rebound: str | None) -> bool:
    """Whether anything other than the value at a site may share its storage: the caller, an object, another name.

    ``rebound`` is the name that the site binds.
    """
    if not facts.storage or not all(symbol.new for symbol in facts.storage):
        return True
    start = context.tree.span(_start(context, site))[:2]
    in_loop = _start(context, site) is not site
    for name in holders(context, facts):
        if any(above is site for above in context.around(name)):
            # What the test passes to other code, that code may keep.
            if isinstance(context.parent(name), cst.Arg) and fate(context, name) >= Fate.HANDED_ON:
                return True
            continue
        before = context.tree.span(name)[:2] < start or in_loop
        if not before and name.value == rebound:
            continue
        returned = before and isinstance(context.parent(name), cst.Return)
        if not returned and fate(context, name) >= Fate.HELD:
            return True
    return False


def holders(context: RewriteContext, facts: TensorFacts) -> Iterator[cst.Name]:
    """The reads of names, in the function around the site, that may give a tensor with the same storage."""
    for name in findall(context.function, m.Name()):
        if isinstance(name, cst.Name) and context.tree.holds(name) and is_read(context, name):
            other = context.fact(name).tensor
            if other is not None and not other.storage.isdisjoint(facts.storage):
                yield name


def names_of(context: RewriteContext, node: cst.BaseExpression) -> set[str]:
    """The names in an expression, and those that may hold a tensor with the storage of its value."""
    facts = context.fact(node).tensor
    held = (name.value for name in holders(context, facts)) if facts is not None else ()
    return {*read(node), *held}


def fate_of_name(context: RewriteContext, name: str, statement: cst.CSTNode) -> Fate:
    """The highest fate of the value of a name after a statement; in a loop, anywhere in the loop.

    Other functions may do anything with a name of theirs.
    """
    if is_outer(context, name):
        return Fate.CHANGED
    around = _start(context, statement)
    after = context.tree.span(around)[:2] if around is not statement else context.tree.span(statement)[2:]
    worst = Fate.HELD
    for found in nodes_named(context.function, name):
        if not context.tree.holds(found) or not is_read(context, found):
            continue
        inside = any(above is statement for above in context.around(found))
        if not inside and context.tree.span(found)[:2] >= after:
            worst = max(worst, fate(context, found))
    return worst


def _start(context: RewriteContext, node: cst.CSTNode) -> cst.CSTNode:
    """The outermost loop around a node within its function, or the node itself."""
    found = node
    for one in context.around(node):
        if isinstance(one, cst.FunctionDef | cst.Lambda):
            break
        if isinstance(one, cst.For | cst.While):
            found = one
    return found
