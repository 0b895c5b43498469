"""The values of names: the last assignment before a place, and later reads."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Declined, RewriteContext
from breakscan.fix.support.walking import findall, nodes_named, nodes_of, read, written

_INNER = (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_LOOPS = (cst.For, cst.While)
_BINDING = cst.AssignTarget | cst.FunctionDef | cst.ClassDef | cst.NameItem | cst.AsName | cst.ImportAlias
MOST_FUNCTIONS_KEPT = 256
"""The number of functions whose declarations are cached: rewrites ask for every name that they read."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Two reads of a name with the same ``anchor`` read the same object.

    The anchor is the statement that last assigned the name before the read, a loop or ``try`` that contains the read
    and assigns the name anywhere, the function if the name is a parameter, or None if it is not a local name.
    ``value`` is the assigned expression if the anchor is a plain assignment."""

    name: str
    anchor: cst.CSTNode | None
    value: cst.BaseExpression | None = None


def origin(context: RewriteContext, name: cst.Name) -> Assignment:
    """The origin of the value of a name, at the place of this read."""
    text = name.value
    fresh = Assignment(text, name)
    if is_outer(context, text):
        return fresh
    node: cst.CSTNode = name
    while (above := context.parent(node)) is not None:
        if isinstance(above, _INNER) and text in written(above):
            return Assignment(text, above)
        if isinstance(above, cst.SimpleStatementLine):
            place = next(number for number, one in enumerate(above.body) if one is node)
            if text in written(above.body[:place]):
                return fresh
        if isinstance(above, cst.SimpleStatementLine | cst.If | cst.While):
            head = above if isinstance(above, cst.SimpleStatementLine) else above.test
            if findall(head, m.NamedExpr(target=m.Name(text))):
                return fresh
        if isinstance(above, cst.IndentedBlock | cst.Module):
            place = next(place for place, one in enumerate(above.body) if one is node)
            last = next((one for one in reversed(above.body[:place]) if text in written(one)), None)
            if last is not None:
                return Assignment(text, last, plain_value(last, text))
        elif isinstance(above, cst.FunctionDef | cst.ClassDef):
            local = isinstance(above, cst.FunctionDef) and text in written(above)
            return Assignment(text, above if local else None)
        elif _writes_elsewhere(above, node, text):
            return Assignment(text, above)
        node = above
    return Assignment(text, None)


def defined(context: RewriteContext, node: cst.BaseExpression, most: int = 8) -> cst.BaseExpression:
    """The expression that a name was assigned, followed through plain assignments; the node itself if there is none."""
    while most and isinstance(node, cst.Name):
        value = origin(context, node).value
        if value is None:
            break
        node, most = value, most - 1
    return node


def is_bound_once(context: RewriteContext, name: str) -> bool:
    """True if a name has one value throughout the function around the site."""
    if is_outer(context, name):
        return False
    binds = m.AssignTarget() | m.AnnAssign() | m.AugAssign() | m.NamedExpr() | m.For() | m.CompFor() | m.AsName()
    nodes = findall(context.function, binds | m.Param() | m.Del())
    heads = [one.target if isinstance(one, cst.For | cst.CompFor | cst.NamedExpr) else one for one in nodes]
    return sum(name in _bound_by(one) for one in heads) == 1


def _bound_by(node: cst.CSTNode) -> list[str]:
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, cst.Tuple | cst.List):
        return [name for element in node.elements for name in _bound_by(element.value)]
    return written(node)


def is_read(context: RewriteContext, name: cst.Name) -> bool:
    """True if a name node reads a variable: it is not a target, an attribute or a keyword.

    The names of a tuple that is assigned and the name of ``del`` count as read."""
    above = context.parent(name)
    if isinstance(above, cst.Attribute | cst.Arg):
        return above.value is name
    if isinstance(above, cst.Param):
        return above.default is name
    if isinstance(above, cst.For | cst.CompFor | cst.AnnAssign | cst.NamedExpr):
        return above.target is not name
    return not isinstance(above, _BINDING)


def reads_of(context: RewriteContext, target: cst.Name, line: cst.SimpleStatementLine) -> list[cst.Name]:
    """All reads of a name that a line assigns.  Declines if one may read a different value, or if there is none."""
    found = []
    for one in nodes_named(context.function, target.value):
        if one is target or not is_read(context, one):
            continue
        anchor = origin(context, one).anchor
        if anchor is line:
            found.append(one)
        elif not _is_earlier(context, one, line):
            raise Declined(f"`{target.value}` may have a different value where it is used: give it another name")
    if not found:
        raise Declined(f"`{target.value}` is not used")
    return found


def _is_earlier(context: RewriteContext, name: cst.Name, line: cst.SimpleStatementLine) -> bool:
    """True if a read comes before a line that runs only once, so it cannot read what the line assigns."""
    around = next((one for one in context.around(line) if isinstance(one, (cst.FunctionDef, *_LOOPS))), None)
    return not isinstance(around, _LOOPS) and context.tree.span(name)[:2] < context.tree.span(line)[2:]


def is_changed_in_place(node: cst.CSTNode, name: str) -> bool:
    this = m.Name(name)
    stored = m.AssignTarget(m.Subscript(value=this)) | m.AugAssign(m.Subscript(value=this) | this)
    in_place = m.Call(func=m.Attribute(value=this, attr=m.Name(m.MatchRegex(r".*[^_]_$"))))
    return bool(findall(node, stored | in_place))


def plain_value(statement: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """The value of ``name = value``, alone or the only statement of its line that assigns the name."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return None
    found = [small for small in statement.body if name in written(small)]
    small = found[0] if len(found) == 1 else None
    if isinstance(small, cst.AnnAssign):
        return small.value if m.matches(small.target, m.Name(name)) else None
    if isinstance(small, cst.Assign) and len(small.targets) == 1 and m.matches(small.targets[0].target, m.Name(name)):
        return small.value
    return None


def _writes_elsewhere(above: cst.CSTNode, node: cst.CSTNode, name: str) -> bool:
    """True if a statement around a node assigns a name where no block shows it: in its header, or in an earlier
    iteration."""
    if isinstance(above, _LOOPS):
        return name in written(above)
    if isinstance(above, cst.With):
        return node not in above.items and any(name in written(item) for item in above.items)
    if isinstance(above, cst.Match):
        return node is not above.subject and any(nodes_named(case.pattern, name) for case in above.cases)
    return isinstance(above, cst.Try | cst.TryStar) and node is not above.body and name in written(above)


def is_outer(context: RewriteContext, name: str) -> bool:
    """True if a name is declared ``global`` or ``nonlocal``, so that any call may change it."""
    return any(name in _declared(one) for one in context.around() if isinstance(one, cst.FunctionDef))


@lru_cache(maxsize=MOST_FUNCTIONS_KEPT)
def _declared(function: cst.FunctionDef) -> frozenset[str]:
    """The names that a function, or one in it, declares ``global`` or ``nonlocal``."""
    declared = nodes_of(function, cst.Global, cst.Nonlocal)
    return frozenset(item.name.value for one in declared for item in one.names)  # type: ignore[attr-defined]


def is_read_outside(context: RewriteContext, name: str, statement: cst.CSTNode) -> bool:
    reads = _Places(name, [statement])
    context.function.body.visit(reads)
    return reads.runs_later or bool(reads.found)


def is_needed_outside(context: RewriteContext, name: str, *statements: cst.CSTNode) -> bool:
    """True if code outside some statements may read the value that the first of them gives to a name.

    It may not if each reader assigns the name before it reads it: a temporary that several statements use."""
    reads = _Places(name, statements)
    context.function.body.visit(reads)
    return reads.runs_later or any(not _is_assigned_first(context, name, one, statements[0]) for one in reads.found)


def _is_assigned_first(context: RewriteContext, name: str, read_at: cst.CSTNode, statement: cst.CSTNode) -> bool:
    """True if each way to a read passes an assignment to its name, with no way from it through the statement."""
    own = {id(statement), *(id(one) for one in context.around(statement))}
    assigned = m.AssignTarget(m.Name(name))
    inner, above = read_at, context.parent(read_at)
    while inner is not context.function and above is not None:
        if isinstance(above, cst.IndentedBlock):
            if id(inner) in own:
                return False
            place = next(place for place, one in enumerate(above.body) if one is inner)
            for one in reversed(above.body[:place]):
                if id(one) in own:
                    return False
                small = one.body if isinstance(one, cst.SimpleStatementLine) else ()
                if any(m.matches(target, assigned) for each in small for target in getattr(each, "targets", ())):
                    return True
        inner, above = above, context.parent(above)
    return False


class _Places(cst.CSTVisitor):
    """Finds reads of a name outside some statements, by code that runs later."""

    def __init__(self, name: str, but: Collection[cst.CSTNode]) -> None:
        self.name = name
        self.but = but
        self.found: list[cst.CSTNode] = []
        self.runs_later = False
        self._in_line = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.but:
            return False
        if isinstance(node, cst.Global | cst.Nonlocal):
            self.runs_later |= any(item.name.value == self.name for item in node.names)
        elif isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.GeneratorExp):
            self.runs_later |= self.name in read(node)
        elif not self._in_line and isinstance(node, cst.SimpleStatementLine | cst.BaseExpression):
            # A line, or an expression of the head of a compound statement.
            self.found += [node] if self.name in read(node) else []
        self._in_line |= isinstance(node, cst.SimpleStatementLine)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.SimpleStatementLine):
            self._in_line = False
