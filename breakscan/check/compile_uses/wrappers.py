"""Uses of the wrapper that ``torch.compile`` puts around a module: its keys and its methods."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from breakscan.check.compile_uses.parameters import parameter_of
from breakscan.check.compile_uses.uses import Compiled, Found, Hit, Survey
from breakscan.check.project.index import FunctionInfo
from breakscan.check.project.scopes import Scope, Step
from breakscan.rulebook.events import Argument, EventKind
from breakscan.rulebook.torch_facts.not_measured import RETURN_THE_MODULE
from breakscan.source.walking import is_name, walk

_SAVES = re.compile(r"(^|\.)save(_file|_model|_checkpoint)?$")
_WRAPPER = frozenset({"wrapper"})
_MODULE = frozenset({"module"})


def wrapper_uses(survey: Survey) -> Iterator[Found]:
    """Methods of a wrapper, and state dicts that it exchanges with a plain module."""
    for call, step in survey.calls:
        if isinstance(call.func, ast.Attribute):
            hit = survey.names.hit(call.func.value, step.scope, call.lineno)
            if call.func.attr == "state_dict" and hit is not None and not hit.compiled.in_place:
                is_saved = _is_saved(survey, call, step) and _keys_matter(survey, hit.compiled)
                yield _method(call, step, hit, _WRAPPER | {"wrapper:saved"} if is_saved else _WRAPPER)
            elif call.func.attr == "load_state_dict":
                yield from _load(survey, call, step)
            elif hit is not None and not hit.compiled.in_place:
                bypassed = _runs_itself(survey, hit.compiled, call.func.attr, step)
                yield _method(call, step, hit, _WRAPPER | {"wrapper:bypassed"} if bypassed else _WRAPPER)


def plain_calls(survey: Survey) -> Iterator[Found]:
    """Calls of functions that get the module that was compiled, or what it was made of, and call that: where nothing
    gives them the compiled one, it is not meant as a comparison."""
    for made in survey.steps:
        bound = {one for one in survey.names.scopes.made_by.get(made.statement, ()) if one in survey.names.compiled}
        plain = {name for one in bound for name in _plain_names(survey, survey.names.compiled[one], made)}
        for call, step in survey.calls if plain else ():
            called = survey.index.functions.get(survey.index.dotted(call.func) or "")
            if called is None or step.scope is not made.scope or call.lineno < made.statement.lineno:
                continue
            for argument in call.args:
                name = parameter_of(call, argument, called.node, False)
                calls = any(isinstance(n, ast.Call) and name and is_name(n.func, name) for n in called.own_nodes)
                if isinstance(argument, ast.Name) and argument.id in plain and calls and not _compares(survey, called):
                    yield Found(EventKind.WRAPPER, call, step, name=argument.id, callee="plain", operands=_MODULE)


def _plain_names(survey: Survey, compiled: Compiled, made: Step) -> set[str]:
    """The name of the module that is wrapped; where the wrapper takes its name, those of the modules in it."""
    source = compiled.source
    targets = made.statement.targets if isinstance(made.statement, ast.Assign) else []
    if compiled.in_place or not isinstance(source, ast.Name):
        return set()
    if not any(is_name(target, source.id) for target in targets):
        return {source.id}
    before = [b.value for b in survey.names.bindings_of(source.id, made.scope) if b.line < made.statement.lineno]
    parts = before[-1].args if before and isinstance(before[-1], ast.Call) else []
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _compares(survey: Survey, called: FunctionInfo) -> bool:
    """True if a function also gets something compiled."""
    calls = ((c, s) for c, s in survey.calls if survey.index.functions.get(survey.index.dotted(c.func) or "") is called)
    return any(survey.names.hit(a, s.scope, c.lineno) is not None for c, s in calls for a in c.args)


def _method(call: ast.Call, step: Step, hit: Hit, operands: frozenset[str]) -> Found:
    """A call of a method of the wrapper."""
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    return Found(EventKind.WRAPPER, call, step, name=name, condition=hit.condition, callee=name, operands=operands)


def _is_saved(survey: Survey, call: ast.Call, step: Step) -> bool:
    """True if a state dict is written to a file, directly or by way of a name."""
    names = {
        t.id
        for t in (step.statement.targets if isinstance(step.statement, ast.Assign) else [])
        if isinstance(t, ast.Name)
    }
    for other, place in survey.calls:
        if place.scope is step.scope and _SAVES.search(survey.index.dotted(other.func) or ""):
            inside = {n for argument in (*other.args, *(k.value for k in other.keywords)) for n in walk(argument)}
            if call in inside or any(isinstance(n, ast.Name) and n.id in names for n in inside):
                return True
    return False


def _keys_matter(survey: Survey, compiled: Compiled) -> bool:
    """True if the file neither removes the prefix nor loads such keys through the wrapper."""
    if "_orig_mod" in survey.text:
        return False
    for call, step in survey.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict":
            hit = survey.names.hit(call.func.value, step.scope, call.lineno)
            if hit is not None and hit.compiled is compiled:
                return False
    return True


def _load(survey: Survey, call: ast.Call, step: Step) -> Iterator[Found]:
    """``a.load_state_dict(b.state_dict())`` where one of the two is a wrapper and the other is not."""
    assert isinstance(call.func, ast.Attribute)
    given = call.args[0] if call.args else None
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute) or given.func.attr != "state_dict":
        return
    sides = [call.func.value, given.func.value]
    hits = [survey.names.hit(side, step.scope, call.lineno) for side in sides]
    wrapped = [hit is not None and not hit.compiled.in_place for hit in hits]
    if wrapped.count(True) != 1 or "_orig_mod" in survey.text:
        return
    plain, hit = sides[wrapped.index(False)], hits[wrapped.index(True)]
    if hit is not None and _is_plain_module(survey, plain, step):
        words = (_WRAPPER, _MODULE) if wrapped[0] else (_MODULE, _WRAPPER)
        yield Found(
            EventKind.WRAPPER,
            call,
            step,
            name=ast.unparse(sides[wrapped.index(True)]),
            condition=hit.condition,
            callee="load_state_dict",
            operands=words[0],
            arguments=tuple(Argument(index, None, word) for index, word in enumerate(words)),
        )


def _is_plain_module(survey: Survey, node: ast.expr, step: Step) -> bool:
    """True if the file shows that an expression is a module that was never compiled."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in survey.index.classes
    if not isinstance(node, ast.Name):
        return False
    bindings = survey.names.bindings_of(node.id, step.scope)
    if not bindings or any(b in survey.names.compiled for b in bindings):
        return False
    return all(_makes_module(survey, b.value, step.scope) for b in bindings)


def _makes_module(survey: Survey, value: ast.expr | None, scope: Scope) -> bool:
    while (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in RETURN_THE_MODULE
    ):
        value = value.func.value
    if not isinstance(value, ast.Call):
        return False
    name = survey.index.dotted(value.func)
    if name in ("copy.deepcopy", "copy.copy") and value.args:
        return survey.names.hit(value.args[0], scope, value.lineno) is None
    return name in survey.index.classes or (name or "").startswith("torch.nn.")


def _runs_itself(survey: Survey, compiled: Compiled, method: str, step: Step) -> bool:
    """True if a method calls its own module, which is not the compiled wrapper."""
    owner = compiled.target.owner if compiled.target and compiled.target.function is None else None
    if owner is not None:
        found = survey.names.project.method(owner, method)
        if found is None or method in ("forward", "__call__") or "compile" in ast.unparse(owner.node):
            return False
        return any(isinstance(n, ast.Call) and ast.unparse(n.func) in ("self", "self.forward") for n in found.own_nodes)
    return method == "generate" and _is_pretrained(survey, compiled, step)


def _is_pretrained(survey: Survey, compiled: Compiled, step: Step) -> bool:
    """True if what is compiled comes from ``from_pretrained`` of a class of transformers."""
    value = compiled.source
    if isinstance(value, ast.Name):
        line = compiled.node.lineno
        before = [b for b in survey.names.bindings_of(value.id, step.scope) if b.line < line]
        value = before[-1].value if before else None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == "from_pretrained":
            return (survey.index.dotted(value.func) or "").startswith("transformers.")
        value = value.func.value
    return False
