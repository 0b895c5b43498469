"""The calls of what a file compiled, with what encloses each."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from breakscan.check.compile_uses.compiled import Compiled
from breakscan.check.compile_uses.names import CompiledNames
from breakscan.check.project.index import ModuleIndex
from breakscan.check.project.scopes import Step, own_parts
from breakscan.model.findings import Condition
from breakscan.rulebook.events import Argument, EventKind


@dataclass(frozen=True, slots=True)
class Use:
    """A call of something compiled."""

    call: ast.Call
    compiled: Compiled
    step: Step


@dataclass(eq=False, slots=True)
class Survey:
    """All calls and statements of a file, and the calls of what it compiled."""

    names: CompiledNames
    calls: list[tuple[ast.Call, Step]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)

    @property
    def index(self) -> ModuleIndex:
        return self.names.index

    @property
    def text(self) -> str:
        return self.index.module.text

    def uses_of(self, compiled: Compiled) -> list[Use]:
        return [use for use in self.uses if use.compiled is compiled]


@dataclass(frozen=True, slots=True)
class Found:
    """An event to emit.  ``name`` is what it is about: a variable, an attribute, a method."""

    kind: EventKind
    node: ast.expr
    step: Step
    form: str = ""
    name: str | None = None
    condition: Condition | None = None
    callee: str | None = None
    operands: frozenset[str] = frozenset()
    arguments: tuple[Argument, ...] = ()


def survey(names: CompiledNames) -> Survey:
    """Reads a file once for its calls."""
    found = Survey(names)
    for scope in names.scopes.scopes:
        for step in scope.steps:
            found.steps.append(step)
            for part, place in own_parts(step):
                for call in _calls(part):
                    found.calls.append((call, place))
                    hit = names.hit(call.func, scope, call.lineno)
                    if hit is not None:
                        found.uses.append(Use(call, hit.compiled, place))
    return found


def _calls(node: ast.AST) -> list[ast.Call]:
    """The calls in an expression in source order, without those in a lambda, which run elsewhere."""
    found, stack = [], [node]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Call):
            found.append(current)
        if not isinstance(current, ast.Lambda):
            stack.extend(ast.iter_child_nodes(current))
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))
