"""The scopes of a file: their statements in order with what encloses each, and what binds a name or an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.source.walking import FunctionNode, Loop, is_name, stored_names, walk

ScopeNode = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
Arm = tuple[ast.If, bool]
"""An ``if`` statement, and whether its body holds a statement rather than its ``else``."""


@dataclass(frozen=True, slots=True)
class Step:
    """A statement with its block, and the arms, loops and ``with`` items around it in its scope, outermost first."""

    scope: Scope
    statement: ast.stmt
    block: list[ast.stmt]
    arms: tuple[Arm, ...] = ()
    loops: tuple[Loop, ...] = ()
    contexts: tuple[ast.expr, ...] = ()

    def in_loop(self, loop: Loop) -> Step:
        """The same statement as the test of its own loop sees it, which runs in every iteration."""
        return replace(self, loops=(*self.loops, loop))


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a name or an attribute.  ``value`` is the assigned expression, if it is bound as a whole."""

    line: int
    statement: ast.AST
    value: ast.expr | None
    arms: tuple[Arm, ...] = ()


@dataclass(eq=False, slots=True)
class Scope:
    """The top level of the file, or a function.  ``owner`` is the class of which it is a method."""

    node: ScopeNode
    parent: Scope | None
    info: FunctionInfo | None
    owner: ClassInfo | None
    steps: list[Step] = field(default_factory=list)
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer_names: set[str] = field(default_factory=set)
    """The names that it declares ``global`` or ``nonlocal``."""
    inner: dict[str, FunctionNode] = field(default_factory=dict)
    """The functions that it defines, by name."""

    def statements_in(self, loop: Loop) -> Iterator[ast.stmt]:
        """The statements of a loop's body, with those of the blocks in it."""
        return (step.statement for step in self.steps if loop in step.loops)


class Scopes:
    """All scopes of a file, an enclosing one before those in it."""

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index
        self.scopes: list[Scope] = []
        self.class_steps: list[Step] = []
        """The statements of class bodies.  Their scope is that in which the class is defined."""
        self.attributes: dict[tuple[ClassInfo, str], list[Binding]] = {}
        """The values that the methods of a class assign to attributes of ``self``."""
        self.of_function: dict[ast.AST, Scope] = {}
        self.made_by: dict[ast.stmt, list[Binding]] = {}
        """The bindings that each statement makes."""
        self._define(index.tree, None, None)

    @property
    def top(self) -> Scope:
        """The top level of the file."""
        return self.scopes[0]

    def attribute_bindings(self, owner: ClassInfo, name: str) -> list[Binding]:
        """All bindings of an attribute of ``self`` in the methods of a class."""
        return self.attributes.get((owner, name), [])

    def _define(self, node: ScopeNode, parent: Scope | None, owner: ClassInfo | None) -> None:
        info = None if isinstance(node, ast.Module) else self.index.all_functions.get(node)
        scope = Scope(node, parent, info, owner)
        self.scopes.append(scope)
        self.of_function[node] = scope
        if not isinstance(node, ast.Module):
            for argument in walk(node.args):
                if isinstance(argument, ast.arg):
                    scope.bindings[argument.arg] = [Binding(node.lineno, argument, None)]
        scope.steps = list(_steps(scope, node.body))
        for step in scope.steps:
            self._bind(step)
        for step in scope.steps:
            if isinstance(step.statement, ast.ClassDef):
                self._define_class(step.statement, scope)
            elif isinstance(step.statement, ast.FunctionDef | ast.AsyncFunctionDef):
                scope.inner[step.statement.name] = step.statement
                self._define(step.statement, scope, None)

    def _define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        known = self.index.classes.get(node.name)
        owner = known if known is not None and known.node is node else None
        for step in _steps(scope, node.body):
            self.class_steps.append(step)
            if isinstance(step.statement, ast.ClassDef):
                self._define_class(step.statement, scope)
            elif isinstance(step.statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self._define(step.statement, scope, owner)

    def _bind(self, step: Step) -> None:
        scope, statement = step.scope, step.statement
        if isinstance(statement, ast.Global | ast.Nonlocal):
            scope.outer_names.update(statement.names)
        for target, value in _bound_by(statement):
            binding = Binding(statement.lineno, statement, value, step.arms)
            self.made_by.setdefault(statement, []).append(binding)
            if isinstance(target, str):
                scope.bindings.setdefault(target, []).append(binding)
            elif scope.owner is not None:
                self.attributes.setdefault((scope.owner, target.attr), []).append(binding)


def own_parts(step: Step) -> Iterator[tuple[ast.AST, Step]]:
    """The parts of a statement outside the blocks in it, each with what encloses it.  Those of a definition, which run
    in the scope around it, are left out."""
    if isinstance(step.statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name, part in ast.iter_fields(step.statement):
        for child in part if isinstance(part, list) else [part]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                again = name == "test" and isinstance(step.statement, ast.While)
                yield child, step.in_loop(step.statement) if again else step  # type: ignore[arg-type]


def _steps(
    scope: Scope,
    block: list[ast.stmt],
    arms: tuple[Arm, ...] = (),
    loops: tuple[Loop, ...] = (),
    contexts: tuple[ast.expr, ...] = (),
) -> Iterator[Step]:
    """The statements of a block and of the blocks in it, in source order."""
    for statement in block:
        yield Step(scope, statement, block, arms, loops, contexts)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.If):
            yield from _steps(scope, statement.body, (*arms, (statement, True)), loops, contexts)
            yield from _steps(scope, statement.orelse, (*arms, (statement, False)), loops, contexts)
            continue
        inner_loops = (*loops, statement) if isinstance(statement, Loop) else loops
        entered = statement.items if isinstance(statement, ast.With | ast.AsyncWith) else []
        inner_contexts = (*contexts, *(item.context_expr for item in entered))
        yield from _steps(scope, getattr(statement, "body", []), arms, inner_loops, inner_contexts)
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _steps(scope, part.body, arms, loops, contexts)
        for name in ("orelse", "finalbody"):
            yield from _steps(scope, getattr(statement, name, []), arms, loops, contexts)


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str | ast.Attribute, ast.expr | None]]:
    """The names, and the attributes of ``self``, that a statement binds in its own line, with the value if known."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name, None
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if isinstance(target, ast.Name) and statement.value is not None:
                yield target.id, statement.value
            elif isinstance(target, ast.Attribute) and statement.value is not None:
                if is_name(target.value, "self"):
                    yield target, statement.value
            else:
                yield from ((name, None) for name in stored_names(target))
    elif isinstance(statement, ast.For | ast.AsyncFor | ast.AugAssign):
        yield from ((name, None) for name in stored_names(statement.target))
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from ((name, None) for name in stored_names(item.optional_vars))
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name.split(".")[0], None) for alias in statement.names)
