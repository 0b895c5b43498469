"""Events for what a file compiles and how it uses it, in a region or out of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from breakscan.check.compile_uses.arguments import changing_arguments
from breakscan.check.compile_uses.parameters import float_updates
from breakscan.check.compile_uses.states import (
    changing_attributes,
    changing_keys,
    counted_entries,
    differing_instances,
    global_counters,
    growing_attributes,
    size_branches,
    switched_state,
)
from breakscan.check.compile_uses.uses import CompiledNames, Found, survey
from breakscan.check.compile_uses.wrappers import plain_calls, wrapper_uses
from breakscan.check.interpreter.program import Program
from breakscan.check.interpreter.values import Module
from breakscan.check.project.index import FunctionInfo
from breakscan.check.project.roots import COMPILE, is_compiler
from breakscan.check.project.scopes import Scopes, Step, own_parts
from breakscan.model.findings import Place
from breakscan.rulebook.events import Argument, Event, EventKind
from breakscan.source.spans import span, text_of
from breakscan.source.walking import is_name, stored_names, walk

# The uses of ``torch.compile`` and ``Module.compile`` themselves: in a region or out of it.


def compile_calls(
    program: Program, scopes: Scopes, compiled: set[FunctionInfo]
) -> Iterator[tuple[FunctionInfo | None, Event]]:
    """An event for each call of ``torch.compile`` or ``Module.compile``, with the function that holds it.

    ``compiled`` are the functions in a region.
    """
    finder = _Finder(program, compiled)
    for scope in scopes.scopes:
        for step in scope.steps:
            yield from finder.step(step)
    for step in scopes.class_steps:
        yield from finder.step(step)


class _Finder:
    def __init__(self, program: Program, compiled: set[FunctionInfo]) -> None:
        self.program = program
        self.compiled = compiled

    def step(self, step: Step) -> Iterator[tuple[FunctionInfo | None, Event]]:
        function, node = step.scope.info, step.statement
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self.decorators(node, step)
        for part, place in own_parts(step):
            for call in walk(part):
                callee = self.compiler(call, function) if isinstance(call, ast.Call) else None
                if callee is not None and isinstance(call, ast.Call):
                    yield function, self.event(call, callee, self.form(place, call, callee), place)

    def decorators(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, step: Step
    ) -> Iterator[tuple[FunctionInfo | None, Event]]:
        for decorator in node.decorator_list:
            if is_compiler(self.program.index, decorator) and self.program.index.all_functions[node].is_generator:
                yield step.scope.info, self.event(decorator, COMPILE, "generator", step)

    def compiler(self, call: ast.Call, function: FunctionInfo | None) -> str | None:
        """``torch.compile``, or ``torch.nn.Sequential.compile`` for a module of torch's own; None for other calls."""
        if self.program.index.dotted(call.func) == COMPILE:
            return COMPILE
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile":
            return None
        owner = call.func.value
        value = None
        if isinstance(owner, ast.Name):
            value = self.program.names.look_up(owner.id, self.program.index)
        elif isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == "self" and function and function.owner:
            value = self.program.attributes.stored(function.owner, owner.attr)
        if value is None or not isinstance(value, Module) or value.name not in self.program.api.modules:
            return None
        return f"{value.name}.compile"

    def form(self, step: Step, call: ast.Call, callee: str) -> str:
        statement = step.statement
        if callee != COMPILE:
            return "used"
        if isinstance(statement, ast.Expr) and statement.value is call:
            return "discarded"
        argument = call.args[0] if call.args else None
        if isinstance(statement, ast.Assign) and statement.value is call:
            targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
            if _is_lost_in_loop(step, targets):
                return "discarded"
            if targets == ["self"] and isinstance(argument, ast.Name) and argument.id == "self":
                return "rebound-self"
        named = self.program.index.functions.get(argument.id) if isinstance(argument, ast.Name) else None
        if named is not None and named.is_generator:
            return "generator"
        return "repeated" if _is_unchanged(step, call) else "used"

    def event(self, call: ast.expr, callee: str, form: str, step: Step) -> Event:
        arguments = []
        if isinstance(call, ast.Call):
            arguments += [Argument(i, None, _literal(value)) for i, value in enumerate(call.args)]
            arguments += [Argument(None, k.arg, _literal(k.value)) for k in call.keywords if k.arg]
        return Event(
            EventKind.COMPILE,
            *span(self.program.module, call),
            form=form,
            callee=callee,
            arguments=tuple(arguments),
            place=Place.LOOP if step.loops else Place.PLAIN,
            in_region=step.scope.info in self.compiled,
            text=text_of(self.program.module, call),
        )


def _is_unchanged(step: Step, call: ast.Call) -> bool:
    """True if the call is in a loop that binds none of the names of what is compiled."""
    if not step.loops or not call.args:
        return False
    names = {node.id for node in walk(call.args[0]) if isinstance(node, ast.Name)}
    makes = any(isinstance(node, ast.Lambda | ast.Call) for node in walk(call.args[0]))
    return not makes and names.isdisjoint(stored_names(step.loops[-1]))


def _is_lost_in_loop(step: Step, targets: list[str]) -> bool:
    """True if the statement assigns a loop's variable, which nothing reads before the next round binds it again."""
    loop = step.loops[-1] if step.loops else None
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or targets != [loop.target.id]:
        return False
    if step.block is not loop.body:
        return False
    later = step.block[step.block.index(step.statement) + 1 :]
    return not any(is_name(node, loop.target.id) for statement in later for node in walk(statement))


def _literal(node: ast.expr) -> frozenset[str]:
    """The operand word of a literal: what is passed under a name may be None."""
    if isinstance(node, ast.Constant):
        return frozenset({"none" if node.value is None else "constant"})
    return frozenset({"container" if isinstance(node, ast.Dict | ast.List | ast.Tuple) else "unknown"})


_MAY_COMPILE = re.compile(r"\.compile\b(?<!\bre\.compile)")
_FINDERS = (
    changing_arguments,
    changing_attributes,
    changing_keys,
    switched_state,
    wrapper_uses,
    plain_calls,
)


def compile_events(program: Program, compiled: set[FunctionInfo]) -> Iterator[tuple[FunctionInfo | None, Event]]:
    """The events of what a file compiles and how it uses that, each with the function that holds it.

    ``compiled`` are the functions in a region.
    """
    index, text = program.index, program.module.text
    for info, statement, name in global_counters(index, text, compiled):
        yield info, _stored(program, "global-counter", statement, name)
    for info, call, name in growing_attributes(index, text, compiled):
        if info.owner is not None and isinstance(program.attributes.instance(info.owner), Module):
            yield info, _stored(program, "growing-attribute", call, name)
    for info, entry in counted_entries(index, compiled):
        yield info, _stored(program, "counted-entry", entry, ast.unparse(entry))
    for info, statement, place in float_updates(index, compiled):
        yield info, _stored(program, "float-update", statement, ast.unparse(place))
    if not _MAY_COMPILE.search(text) and COMPILE not in index.imports.values():
        return
    scopes = Scopes(index)
    yield from compile_calls(program, scopes, compiled)
    names = CompiledNames(program.project, scopes)
    seen = survey(names)
    for found in differing_instances(seen):
        yield found.step.scope.info, _event(program, found)
    dynamic = {one.node.lineno for one in names.compiled.values() if one.option("dynamic") is True}
    for info, test in size_branches(index, program.states, dynamic):
        yield info, _stored(program, "size-branch", test, ast.unparse(test))
    for finder in _FINDERS if names.compiled else ():
        for found in finder(seen):
            yield found.step.scope.info, _event(program, found)


def _stored(program: Program, form: str, node: ast.AST, name: str) -> Event:
    where = span(program.module, node)
    return Event(EventKind.STORE, *where, form=form, attribute=name, text=text_of(program.module, node))


def _event(program: Program, found: Found) -> Event:
    return Event(
        found.kind,
        *span(program.module, found.node),
        form=found.form,
        callee=found.callee,
        attribute=found.name,
        operands=found.operands,
        arguments=found.arguments,
        in_region=False,
        conditions=(found.condition,) if found.condition else (),
        text=text_of(program.module, found.node),
    )
