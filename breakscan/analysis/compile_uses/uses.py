"""Where a file calls what it compiled, and in which surroundings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from breakscan.analysis.compile_uses.names import Names
from breakscan.analysis.compile_uses.scopes import Compiled, Scope
from breakscan.analysis.project.index import ModuleIndex
from breakscan.source.walking import Loop


@dataclass(frozen=True, slots=True)
class UseSite:
    """What stands around a node in its scope: loops and ``with`` items, the outermost first, and its statement."""

    scope: Scope
    statement: ast.stmt
    block: list[ast.stmt]
    loops: tuple[Loop, ...] = ()
    contexts: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Use:
    """A call of something compiled."""

    call: ast.Call
    compiled: Compiled
    spot: UseSite


@dataclass(eq=False, slots=True)
class Survey:
    """All calls of a file where they stand, and among them those of what it compiled."""

    index: ModuleIndex
    text: str
    names: Names
    calls: list[tuple[ast.Call, UseSite]] = field(default_factory=list)
    statements: list[UseSite] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)

    def uses_of(self, compiled: Compiled) -> list[Use]:
        return [use for use in self.uses if use.compiled is compiled]


@dataclass(frozen=True, slots=True)
class Found:
    """A use of compiled code worth a word.  ``name`` is what it is about: a variable, an attribute, a method."""

    form: str
    node: ast.expr
    spot: UseSite
    name: str | None = None
    condition: str | None = None


def survey(index: ModuleIndex, text: str) -> Survey:
    """Reads a file through once."""
    names = Names(index)
    found = Survey(index, text, names)
    for scope in names.scopes:
        for spot, node in _walk(scope, scope.node.body, (), ()):
            if isinstance(node, ast.stmt):
                found.statements.append(spot)
                continue
            found.calls.append((node, spot))
            hit = names.hit(node.func, scope, node.lineno)
            if hit is not None:
                found.uses.append(Use(node, hit.compiled, spot))
    return found


def _walk(
    scope: Scope, body: list[ast.stmt], loops: tuple[Loop, ...], contexts: tuple[ast.expr, ...]
) -> Iterator[tuple[UseSite, ast.stmt | ast.Call]]:
    """Each statement of a scope, then the calls in its own line, before the statements within it."""
    for statement in body:
        spot = UseSite(scope, statement, body, loops, contexts)
        yield spot, statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner_loops = (*loops, statement) if isinstance(statement, Loop) else loops
        inner_contexts = contexts
        if isinstance(statement, ast.With | ast.AsyncWith):
            inner_contexts = (*contexts, *(item.context_expr for item in statement.items))
        for name, part in ast.iter_fields(statement):
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) or not isinstance(child, ast.AST):
                    continue
                # The test of a ``while`` runs in each round, what a ``for`` goes over does not.
                around = inner_loops if name == "test" else loops
                for call in _calls(child):
                    yield UseSite(scope, statement, body, around, contexts), call
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                deeper = inner_loops if name == "body" else loops
                yield from _walk(scope, inner, deeper, inner_contexts if name == "body" else contexts)
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _walk(scope, part.body, loops, contexts)


def _calls(node: ast.AST) -> list[ast.Call]:
    """The calls in an expression in the order of the text; not those in a lambda, which run elsewhere."""
    found, stack = [], [node]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Call):
            found.append(current)
        if not isinstance(current, ast.Lambda):
            stack.extend(ast.iter_child_nodes(current))
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))
