"""A finding in the concrete syntax tree of its file, as a rewrite gets it, and the edit that a rewrite returns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TypeVar

import libcst as cst

from breakscan.fix.result import Difference
from breakscan.fix.support.build import copied
from breakscan.fix.support.walking import Node, code_children, nodes_of, spans_in, written
from breakscan.model.facts import UNKNOWN, Fact, FileFacts, Span
from breakscan.model.findings import Finding, Site

Tested = TypeVar("Tested", bound=cst.If | cst.IfExp)
Function = cst.FunctionDef | cst.Lambda
Statement = cst.BaseCompoundStatement | cst.SimpleStatementLine
Replacement = cst.CSTNode | Sequence[cst.BaseStatement] | None
"""The replacement of a node: another node, several statements for one, or nothing."""


class Declined(Exception):
    """A rewrite does not apply here; the text says why, without a period at the end.  It speaks against the advice of
    the rule as well."""


class NotKnown(Declined):
    """Too little is known of the code to edit it; the advice of the rule may be right."""


class OtherForm(Declined):
    """The code has a different form from what the rewrite handles; reported only if no rewrite is closer."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file.

    ``replace`` maps nodes of the tree to their replacements.  ``differences`` are what the edit changes besides speed;
    none for a safe edit, with which the same tensor operations run in the same order."""

    replace: Mapping[cst.CSTNode, Replacement]
    differences: Sequence[Difference] = ()

    @property
    def is_safe(self) -> bool:
        return not self.differences


class FileTree:
    """The tree of one file.  Raises ValueError if libcst cannot parse it."""

    def __init__(self, text: str, facts: FileFacts) -> None:
        try:
            module = cst.parse_module(text)
        except (cst.ParserSyntaxError, RecursionError) as error:
            raise ValueError("libcst cannot parse this file") from error
        self.text = text
        self.facts = facts
        self.module = module
        self.parents: Mapping[cst.CSTNode, cst.CSTNode] = _parents(module)

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, Span]:
        return spans_in(self.module)

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, from the inside out."""
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)

    def span(self, node: cst.CSTNode) -> Span:
        """The position of a node, counted as in :class:`Site`."""
        return self._spans[node]

    def at(self, site: Site) -> cst.CSTNode | None:
        """The node at a site: the one with the same span, or the innermost one that contains it."""
        span = site.line, site.column, site.end_line, site.end_column
        exact = self._by_span.get(span)
        if exact is not None:
            return exact
        around = [at for at in self._by_span if at[:2] <= span[:2] and at[2:] >= span[2:]]
        # Of two spans that contain the site, the inner one starts later or ends earlier.
        return self._by_span[max(around, key=lambda at: (at[:2], (-at[2], -at[3])))] if around else None

    @cached_property
    def _by_span(self) -> dict[Span, cst.CSTNode]:
        """The expression with each span, or the statement: a call on its own line is both."""
        found: dict[Span, cst.CSTNode] = {}
        for node, span in self._spans.items():
            if _is_a(type(node), cst.BaseExpression):
                found[span] = node
            elif _is_a(type(node), cst.BaseSmallStatement, cst.BaseCompoundStatement):
                found.setdefault(span, node)
        return found


@cache
def _is_a(kind: type[cst.CSTNode], *kinds: type[cst.CSTNode]) -> bool:
    """Like ``issubclass``, which is slow for libcst's nodes: they are abstract classes."""
    return issubclass(kind, kinds)


def _parents(module: cst.Module) -> dict[cst.CSTNode, cst.CSTNode]:
    """The parent of every node below a module that holds code.

    Like ``ParentNodeProvider`` of libcst, which also copies the whole tree and takes twenty times as long."""
    found: dict[cst.CSTNode, cst.CSTNode] = {}
    pending: list[cst.CSTNode] = [module]
    while pending:
        node = pending.pop()
        below = code_children(node)
        found.update(dict.fromkeys(below, node))
        pending += below
    return found


@dataclass(eq=False)
class RewriteContext:
    """A finding in the tree of its file.  ``node`` is the code at its site, ``others`` are all findings of the same
    function, this one among them, ``imports`` the modules that the new code needs, as dotted names."""

    tree: FileTree
    finding: Finding
    node: cst.CSTNode
    others: Sequence[Finding] = ()
    imports: set[str] = field(default_factory=set)

    # -- where --------------------------------------------------------------------------------------------------

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.tree.parents.get(node)

    def around(self, node: cst.CSTNode | None = None) -> Iterator[cst.CSTNode]:
        """The nodes around a node (by default that of the site), from the inside out."""
        return self.tree.around(node or self.node)

    def outside(self, node: cst.CSTNode | None, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost node around a node, or that node, that is of none of some types."""
        while isinstance(node, kinds):
            node = self.parent(node)
        return node

    def enclosing(self, kind: type[Node], node: cst.CSTNode | None = None) -> Node | None:
        """The innermost node of a type that contains a node, or is that node, within the same function."""
        start = node or self.node
        for one in (start, *self.around(start)):
            if isinstance(one, kind):
                return one
            if isinstance(one, cst.FunctionDef | cst.Lambda | cst.ClassDef) and one is not start:
                return None
        return None

    def tested_by(self, *kinds: type[Tested]) -> Tested | None:
        """The ``if`` or conditional expression whose test the site is in."""
        child = self.node
        for above in self.around():
            if isinstance(above, kinds) and above.test is child:
                return above
            if isinstance(above, cst.BaseSmallStatement | cst.BaseStatement | cst.Lambda):
                break
            child = above
        return None

    @property
    def function(self) -> cst.FunctionDef:
        """The function around the site.  Declines if there is none."""
        for one in self.around():
            if isinstance(one, cst.FunctionDef):
                return one
        raise Declined("the code is not inside a function")

    def statement(self, node: cst.CSTNode | None = None) -> Statement:
        """The innermost whole statement that contains a node: a line of simple statements or a compound statement."""
        start = node or self.node
        for one in (start, *self.around(start)):
            if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement):
                return one
        raise Declined("the code is not inside a statement")

    def line(self, node: cst.CSTNode | None = None) -> cst.SimpleStatementLine:
        """The statement line around a node.  Declines for compound statements and shared lines."""
        statement = self.statement(node)
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Declined("the code is in the header of a compound statement")
        if len(statement.body) != 1:
            raise Declined("several statements share the line")
        return statement

    def siblings(self, statement: Statement) -> tuple[Sequence[cst.BaseStatement], int]:
        """The statements of the block that contains a statement, and its position among them."""
        block = self.tree.parents[statement]
        body = block.body if isinstance(block, cst.IndentedBlock | cst.Module) else ()
        for position, one in enumerate(body):
            if one is statement:
                return body, position
        raise Declined("the statement is on the same line as its header")

    def behind(self, statement: Statement) -> Sequence[cst.BaseStatement]:
        """The statements that follow in the same block."""
        body, position = self.siblings(statement)
        return body[position + 1 :]

    # -- what is known ------------------------------------------------------------------------------------------

    def fact(self, node: cst.CSTNode) -> Fact:
        """The known facts about an expression of the file or the target of an assignment."""
        span = self.tree.span(node)
        known = self.tree.facts.value(span)
        if known is None and isinstance(node, cst.BaseNumber | cst.SimpleString | cst.ConcatenatedString):
            return Fact("constant", True)
        return known or UNKNOWN

    def require_tensor(self, node: cst.CSTNode) -> None:
        """Declines if an expression is not known to be a tensor."""
        if not self.fact(node).is_tensor:
            raise NotKnown(f"`{self.plain(node)}` is not known to be a tensor")

    def dotted(self, node: cst.CSTNode) -> str | None:
        """The dotted name that an expression refers to, through imports and aliases: ``torch.isinf``."""
        return self.fact(node).name

    def method(self, node: cst.CSTNode) -> str | None:
        """The name of the tensor method that a call calls."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        return node.func.attr.value if self.fact(node.func.value).kind == "tensor" else None

    def code(self, node: cst.CSTNode) -> str:
        return self.tree.module.code_for_node(node)

    def plain(self, node: cst.CSTNode) -> str:
        """The text of a node on one line, without parentheses around it: equal texts mean the same."""
        return " ".join(self.code(copied(node) if isinstance(node, cst.BaseExpression) else node).split())

    # -- what is built ------------------------------------------------------------------------------------------

    def imported(self, dotted: str) -> cst.BaseExpression:
        """An expression for an importable object: ``torch.where``, ``math.inf``.  Adds the import if needed."""
        package = dotted.split(".")[0]
        alias = self._aliases.get(package, package)
        if self.is_bound(alias) or (package not in self._aliases and package in self._imported_names):
            raise Declined(f"`{alias}` is not the module there")
        if package not in self._aliases:
            if not self.imports_torch:
                raise Declined("this file does not import torch")
            self.imports.add(package)
        return cst.parse_expression(alias + dotted[len(package) :])

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """The names under which the file's top level imports modules."""
        found: dict[str, str] = {}
        for small in self.file_imports:
            for name in small.names if isinstance(small, cst.Import) else ():
                if name.asname is None:
                    package = name.evaluated_name.split(".")[0]
                    found[package] = package
                elif name.evaluated_alias is not None:
                    found.setdefault(name.evaluated_name, name.evaluated_alias)
        return found

    def is_bound(self, name: str) -> bool:
        """True if the file may bind a name by more than imports, or a function around the site has such a variable."""
        return name in self._bound_names

    @cached_property
    def _bound_names(self) -> frozenset[str]:
        found = {name for one in self.around() if isinstance(one, cst.FunctionDef) for name in written(one)}
        found |= {item.name.value for one in nodes_of(self.tree.module, cst.Global) for item in one.names}
        for line in self.tree.module.body:
            if isinstance(line, cst.FunctionDef | cst.ClassDef):
                found.add(line.name.value)
            elif not _may_import(line):
                found |= {*written(line)}
        return frozenset(found)

    @cached_property
    def _imported_names(self) -> frozenset[str]:
        """The names that statements of the top level with imports bind."""
        lines = (one for one in self.tree.module.body if _may_import(one) and not self._is_for_types(one))
        return frozenset(name for line in lines for name in written(line))

    @cached_property
    def imports_torch(self) -> bool:
        for small in self.file_imports:
            if isinstance(small, cst.Import):
                named = [name.evaluated_name for name in small.names]
            else:
                named = [] if small.relative or small.module is None else [self.code(small.module)]
            if any(name.split(".")[0] == "torch" for name in named):
                return True
        return False

    @cached_property
    def file_imports(self) -> list[cst.Import | cst.ImportFrom]:
        """The imports of the file's top level that are made when it runs."""
        found: list[cst.Import | cst.ImportFrom] = []
        lines: list[cst.BaseStatement] = list(self.tree.module.body)
        for line in lines:
            if self._is_for_types(line):
                continue
            if isinstance(line, cst.If | cst.Try) and isinstance(line.body, cst.IndentedBlock):
                lines += line.body.body  # `if is_torch_available(): import torch`
            if isinstance(line, cst.SimpleStatementLine):
                found += [small for small in line.body if isinstance(small, cst.Import | cst.ImportFrom)]
        return found

    def _is_for_types(self, line: cst.BaseStatement) -> bool:
        """True if a statement of the top level does nothing when the file runs."""
        return isinstance(line, cst.If) and "TYPE_CHECKING" in self.code(line.test)


def _may_import(line: cst.BaseStatement) -> bool:
    """True for imports, and for an ``if`` or ``try`` that may have some."""
    if isinstance(line, cst.SimpleStatementLine):
        return any(isinstance(one, cst.Import | cst.ImportFrom) for one in line.body)
    return isinstance(line, cst.If | cst.Try)


Rewrite = Callable[[RewriteContext], Edit]
"""Raises :class:`Declined` if it does not apply."""
