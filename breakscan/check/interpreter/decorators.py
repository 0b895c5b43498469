"""What decorators of the project do to the functions and methods below them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscan.check.project.imports import Project
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Condition, ConditionKind
from breakscan.source.walking import own_nodes, walk


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A function that calls what a decorator was given.  ``wrapped`` is the name by which it calls it."""

    info: FunctionInfo
    wrapped: str


class Decorators:
    """The decorators of a project, each read once."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def wrapper(self, name: str, info: FunctionInfo) -> Wrapper | None:
        """What a decorator of the project returns in place of the function that it is given."""

        def find() -> tuple[Wrapper | None, str | None]:
            found = info.index.function_named(name)
            return (_wrapper_in(found), _choice(found)) if found is not None else (None, None)

        wrapper, flag = self._project.once(("wrapper", info.index, name), info.index, find)
        return wrapper if flag is None or flag not in _keywords_given(info) else None

    def replaced(self, info: FunctionInfo) -> list[Condition]:
        """The condition under which a method runs, where a decorator of its class replaces it."""
        for name in info.owner.decorators if info.owner is not None else ():
            if info.name in self._methods_set(name, info.index):
                return [Condition(ConditionKind.PASSED_ON, info.name, classes=(name.rpartition(".")[2],))]
        return []

    def _methods_set(self, name: str, index: ModuleIndex) -> frozenset[str]:
        """The attributes that a decorator sets."""

        def find() -> frozenset[str]:
            found = index.function_named(name)
            nodes = walk(found.node) if found is not None else ()
            return frozenset(n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))

        return self._project.once(("set by", index, name), index, find)


def _wrapper_in(decorator: FunctionInfo) -> Wrapper | None:
    """The inner function that calls what the decorator, or the decorator that it makes, is given."""
    given = {a.arg for a in (*decorator.node.args.posonlyargs, *decorator.node.args.args)}
    for node in decorator.own_nodes:
        if isinstance(node, ast.FunctionDef):
            made = decorator.index.all_functions[node]
            called = {n.func.id for n in own_nodes(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            wrapped = sorted(given & called)
            if wrapped:
                return Wrapper(made, wrapped[0])
            return _wrapper_in(_handed_on(made, {a.arg for a in node.args.args}) or made)
    handed = _handed_on(decorator, given)
    return _wrapper_in(handed) if handed is not None and handed is not decorator else None


def _handed_on(info: FunctionInfo, given: set[str]) -> FunctionInfo | None:
    """The decorator to whom a function hands what it is given, if it does nothing but return what that makes.

    Where a flag that is off by default asks for another one, the other is left out.
    """
    last = info.node.body[-1] if isinstance(info.node.body, list) else None
    if isinstance(last, ast.If) and _choice(info):
        last = last.orelse[-1]
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    values = (*call.args, *(keyword.value for keyword in call.keywords))
    handed = {value.id for value in values if isinstance(value, ast.Name)}
    return info.index.function_named(call.func.id) if given & handed else None


def _choice(info: FunctionInfo) -> str | None:
    """The flag, off by default, that decides between two things that a function returns at its end."""
    last = info.node.body[-1] if isinstance(info.node.body, list) else None
    if not isinstance(last, ast.If) or not last.orelse or not isinstance(last.test, ast.Name):
        return None
    default = info.defaults.get(last.test.id)
    return last.test.id if isinstance(default, ast.Constant) and default.value is False else None


def _keywords_given(info: FunctionInfo) -> set[str | None]:
    """The keywords that are given to the decorators of a function."""
    decorators = getattr(info.node, "decorator_list", [])
    return {keyword.arg for one in decorators if isinstance(one, ast.Call) for keyword in one.keywords}
