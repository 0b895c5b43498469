"""What decorators of the project do to the functions and methods below them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscan.analysis.interpreter.conditions import Condition, ConditionKind
from breakscan.analysis.project.index import FunctionInfo, ModuleIndex
from breakscan.source.walking import own_nodes, walk


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A function that calls what a decorator was given.  ``wrapped`` is the name by which it calls it."""

    info: FunctionInfo
    wrapped: str


class Decorators:
    """The decorators that one program meets, each read once."""

    def __init__(self) -> None:
        self._wrappers: dict[tuple[ModuleIndex, str], Wrapper | None] = {}
        self._methods_set: dict[tuple[ModuleIndex, str], frozenset[str]] = {}

    def wrapper(self, name: str, info: FunctionInfo) -> Wrapper | None:
        """What a decorator of the project returns in place of the function that it is given."""
        key = info.index, name
        if key not in self._wrappers:
            found = info.index.function_named(name)
            self._wrappers[key] = _wrapper_in(found) if found is not None else None
        return self._wrappers[key]

    def replaced(self, info: FunctionInfo) -> list[Condition]:
        """The condition under which a method runs, where a decorator of its class replaces it."""
        for name in info.owner.decorators if info.owner is not None else ():
            key = info.index, name
            if key not in self._methods_set:
                found = info.index.function_named(name)
                nodes = walk(found.node) if found is not None else ()
                self._methods_set[key] = frozenset(
                    n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                )
            if info.name in self._methods_set[key]:
                return [Condition(ConditionKind.PASSED_ON, info.name, classes=(name.rpartition(".")[2],))]
        return []


def _wrapper_in(decorator: FunctionInfo) -> Wrapper | None:
    """The inner function that calls what the decorator, or the decorator that it makes, is given."""
    given = {a.arg for a in (*decorator.node.args.posonlyargs, *decorator.node.args.args)}
    for node in decorator.own_nodes:
        if isinstance(node, ast.FunctionDef):
            made = decorator.index.all_functions[node]
            handed = _handed_on(made, {a.arg for a in node.args.args})
            if handed is not None:
                return _wrapper_in(handed)
            called = {n.func.id for n in own_nodes(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            wrapped = sorted(given & called)
            return Wrapper(made, wrapped[0]) if wrapped else _wrapper_in(made)
    return None


def _handed_on(info: FunctionInfo, given: set[str]) -> FunctionInfo | None:
    """The decorator to whom an inner function hands what it is given, if it does nothing but return what that makes."""
    last = info.node.body[-1] if isinstance(info.node.body, list) else None
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    handed = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    return info.index.function_named(call.func.id) if given & handed else None
