"""Which names a statement needs from the code before it, and which it gives to the code after it, in its function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Flow:
    """``needs`` are the local names that a statement reads before it binds them, ``gives`` those that it binds and
    that are read after it, each in the order of the code.  ``unbound`` are those of them that may have no value at
    that point, ``bound_behind`` those that the function binds again after the statement."""

    needs: tuple[str, ...]
    gives: tuple[str, ...]
    unbound: tuple[str, ...]
    bound_behind: frozenset[str]


@dataclass
class _Walk:
    """A walk through statements from top to bottom.  ``bound`` is None in unreachable code."""

    bound: set[str] | None
    exposed: dict[str, None] = field(default_factory=dict)
    """Names that are read at places where they may not have been bound since the walk began."""

    def read(self, node: ast.AST) -> None:
        for name in loaded(node):
            if self.bound is not None and name not in self.bound:
                self.exposed[name] = None

    def bind(self, names: Iterable[str]) -> None:
        if self.bound is not None:
            self.bound |= set(names)

    def branch(self, body: Sequence[ast.stmt], bound: set[str] | None) -> set[str] | None:
        inner = _Walk(None if bound is None else set(bound), self.exposed)
        inner.run(body)
        return inner.bound

    def run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.one(statement)

    def one(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For | ast.AsyncFor):
            self.read(node.iter)
            inner = None if self.bound is None else {*self.bound, *stored(node.target)}
            self.read(node.target)
            self.branch(node.body, inner)
            self.branch(node.orelse, self.bound)
        elif isinstance(node, ast.While):
            self.read(node.test)
            self.branch(node.body, self.bound)
            self.branch(node.orelse, self.bound)
        elif isinstance(node, ast.If):
            self.read(node.test)
            self.bound = _both(self.branch(node.body, self.bound), self.branch(node.orelse, self.bound))
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self.read(item)
                self.bind(stored(item))
            behind = self.branch(node.body, self.bound)
            # A context manager may suppress an exception, so that part of the body is skipped: `contextlib.suppress`.
            if not any("suppress" in ast.unparse(item.context_expr) for item in node.items):
                self.bound = behind
        elif isinstance(node, ast.Try):
            entered = self.bound
            behind = self.branch(node.body, entered)
            behind = self.branch(node.orelse, behind)
            for handler in node.handlers:
                if handler.type is not None:
                    self.read(handler.type)
                caught = None if entered is None else {*entered, *([handler.name] if handler.name else ())}
                caught = self.branch(handler.body, caught)
                # Python unbinds the name of the exception at the end of its handler.
                behind = _both(behind, None if caught is None else caught - {handler.name or ""})
            final = _Walk(None if entered is None else set(entered), self.exposed)
            final.run(node.finalbody)
            self.bound = None if behind is None or final.bound is None else behind | final.bound
        elif isinstance(node, ast.Match):
            self.read(node.subject)
            for case in node.cases:
                inner = None if self.bound is None else {*self.bound, *stored(case.pattern)}
                if case.guard is not None:
                    self.read(case.guard)
                self.branch(case.body, inner)
        else:
            self.read(node)
            if isinstance(node, ast.Delete):
                self.bound = None if self.bound is None else self.bound - stored(node)
            elif isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
                self.bound = None
            else:
                self.bind(_certainly_stored(node))


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    return other if one is None else one if other is None else one & other


class _Scope(ast.NodeVisitor):
    """The names that code reads and binds in its scope."""

    def __init__(self) -> None:
        self.loads: dict[str, None] = {}
        self.stores: set[str] = set()

    def _within(self, *nodes: ast.AST, hides: Iterable[str] = ()) -> None:
        """An inner scope: the names that it reads and does not bind itself."""
        inner = _Scope()
        for node in nodes:
            inner.visit(node)
        hidden = {*hides, *inner.stores}
        self.loads.update(dict.fromkeys(name for name in inner.loads if name not in hidden))

    def _all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loads[node.id] = None
        else:
            self.stores.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.loads[node.target.id] = None
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.stores.add(node.asname or node.name.split(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._bind_name(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._bind_name(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._bind_name(node)

    def _bind_name(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.stores.add(node.name)
        self.generic_visit(node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.stores.add(node.rest)
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._all([*node.args.defaults, *node.args.kw_defaults])
        self._within(node.body, hides=parameters(node.args))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.stores.add(node.name)
        self._all([*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, node.returns])
        self._all(one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg))
        self._within(*node.body, hides=parameters(node.args))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.stores.add(node.name)
        self._all([*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)])
        inner = _Scope()
        inner._all(node.body)
        # The body of a class reads a name from outside until it binds it.
        self.loads.update(inner.loads)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        walruses = {
            one.target.id
            for one in ast.walk(node)
            if isinstance(one, ast.NamedExpr) and isinstance(one.target, ast.Name)
        }
        self._within(first.target, *first.ifs, *others, *elements)
        self.stores |= walruses

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension


def parameters(arguments: ast.arguments) -> list[str]:
    """The names of all the parameters of a function."""
    return [node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)]


def loaded(node: ast.AST) -> list[str]:
    """The names that code reads from its function or from the file; not those of inner scopes."""
    scope = _Scope()
    scope.visit(node)
    return list(scope.loads)


def stored(node: ast.AST) -> set[str]:
    """The names that code binds or deletes in its function; not those of inner scopes."""
    scope = _Scope()
    scope.visit(node)
    return scope.stores


def _certainly_stored(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Expr | ast.Assert | ast.AugAssign):
        return set()
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return set()
    conditional = {
        name.target.id
        for name in ast.walk(node)
        if isinstance(name, ast.NamedExpr) and isinstance(name.target, ast.Name)
    }
    return stored(node) - conditional


def flow(function: ast.FunctionDef, parents: Sequence[tuple[Sequence[ast.stmt], int]]) -> Flow:
    """What a statement needs and gives.

    ``parents`` is its place: each block on the way to it, from that of the function down to its own, with the position
    in it.
    """
    local = set(parameters(function.args))
    before = _Walk(set(local))
    behind: list[ast.stmt] = []
    for depth, (block, position) in enumerate(parents):
        before.run(block[:position])
        behind = [*block[position + 1 :], *behind]
        if depth + 1 < len(parents) and isinstance(parent := block[position], ast.With):
            for item in parent.items:
                before.bind(stored(item))
    for statement in function.body:
        local |= stored(statement)
    block, position = parents[-1]
    part = block[position]
    inside = _Walk(set())
    inside.one(part)
    outside = _Walk(set())
    outside.run(behind)
    binds = stored(part)
    needs = [name for name in inside.exposed if name in local]
    gives = [name for name in outside.exposed if name in binds]
    # A name that the statement may leave unchanged is passed in, so that it can be returned.
    needs += [name for name in gives if name not in needs and name not in (inside.bound or set())]
    unbound = [name for name in needs if before.bound is not None and name not in before.bound]
    inner = set(ast.walk(part))
    apart = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one not in inner]
    kept = {*gives, *parameters(function.args), *(one.id for one in apart if not isinstance(one.ctx, ast.Load))}
    # A name that the function would no longer bind, but still reads, would refer to something else.
    unbound += [one.id for one in apart if one.id in binds and one.id not in kept]
    return Flow(
        tuple(_in_order(function, needs)),
        tuple(_in_order(function, gives)),
        tuple(unbound),
        frozenset(name for statement in behind for name in stored(statement)),
    )


def _in_order(function: ast.FunctionDef, names: Iterable[str]) -> Iterator[str]:
    """Names in the order in which they first appear in the function, its parameters first."""
    wanted = set(names)
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg) and node.arg in wanted:
            wanted.discard(node.arg)
            yield node.arg
    spoken = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    for node in sorted(spoken, key=lambda one: (one.lineno, one.col_offset)):
        if node.id in wanted:
            wanted.discard(node.id)
            yield node.id
    yield from sorted(wanted)
