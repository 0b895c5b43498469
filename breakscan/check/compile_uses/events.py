"""Events for what a file compiles and how it uses it, in a region or out of it."""

import ast
import re
from collections.abc import Iterator

from breakscan.check.compile_uses import states
from breakscan.check.compile_uses.arguments import changing_arguments, literal_words, parameter_of
from breakscan.check.compile_uses.uses import Compiled, Found, Hit, Scope, Scopes, Step, Survey, own_parts
from breakscan.check.interpreter.program import Program
from breakscan.check.interpreter.values import Module
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.check.project.roots import COMPILE, is_compiler
from breakscan.model.findings import Place
from breakscan.rulebook.events import Argument, Event, EventKind
from breakscan.rulebook.torch_facts.not_measured import RETURN_THE_MODULE
from breakscan.source.spans import span, text_of
from breakscan.source.walking import is_name, stored_names, walk


def compile_calls(program: Program, scopes: Scopes, compiled: set[FunctionInfo]) -> Iterator[Found]:
    """The calls of ``torch.compile`` or ``Module.compile``.  ``compiled`` are the functions in a region."""
    index = program.index
    for step in (*(step for scope in scopes.scopes for step in scope.steps), *scopes.class_steps):
        node, form = step.statement, ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and index.all_functions[node].is_generator:
            form = "generator"
        elif isinstance(node, ast.ClassDef) and (owner := index.classes.get(node.name)) is not None:
            is_autograd = "torch.autograd.Function" in program.project.outside_bases(owner)
            form = "autograd-function" if is_autograd else ""
        for decorator in getattr(node, "decorator_list", ()) if form else ():
            if is_compiler(index, decorator):
                yield _compile_call(decorator, COMPILE, form, step, compiled)
        for part, place in own_parts(step):
            for call in walk(part):
                callee = _compiler(program, call, step.scope.info) if isinstance(call, ast.Call) else None
                if callee is not None and isinstance(call, ast.Call):
                    form = _form(index, place, call) if callee == COMPILE else "used"
                    yield _compile_call(call, callee, form, place, compiled)


def _compiler(program: Program, call: ast.Call, function: FunctionInfo | None) -> str | None:
    """``torch.compile``, or ``torch.nn.Sequential.compile`` for a module of torch's own; None for other calls."""
    if program.index.dotted(call.func) == COMPILE:
        return COMPILE
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile":
        return None
    owner = call.func.value
    value = None
    if isinstance(owner, ast.Name):
        value = program.names.look_up(owner.id, program.index)
    elif isinstance(owner, ast.Attribute) and is_name(owner.value, "self") and function and function.owner:
        value = program.attributes.stored(function.owner, owner.attr)
    is_of_torch = isinstance(value, Module) and value.name in program.api.modules
    return f"{value.name}.compile" if is_of_torch and isinstance(value, Module) else None


def _form(index: ModuleIndex, step: Step, call: ast.Call) -> str:
    statement = step.statement
    if isinstance(statement, ast.Expr) and statement.value is call:
        return "discarded"
    argument = call.args[0] if call.args else None
    if isinstance(statement, ast.Assign) and statement.value is call:
        targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
        if _is_lost_in_loop(step, targets):
            return "discarded"
        if targets == ["self"] and is_name(argument, "self"):
            return "rebound-self"
    named = index.functions.get(argument.id) if isinstance(argument, ast.Name) else None
    if named is not None and named.is_generator:
        return "generator"
    return "once" if _is_once(step) else "repeated" if _is_unchanged(step, call) else "used"


def _compile_call(call: ast.expr, callee: str, form: str, step: Step, compiled: set[FunctionInfo]) -> Found:
    arguments = []
    if isinstance(call, ast.Call):
        arguments += [Argument(i, None, literal_words(value)) for i, value in enumerate(call.args)]
        arguments += [Argument(None, k.arg, literal_words(k.value)) for k in call.keywords if k.arg]
    return Found(
        EventKind.COMPILE,
        call,
        step.scope.info,
        form,
        callee=callee,
        arguments=tuple(arguments),
        in_region=step.scope.info in compiled,
        place=Place.LOOP if step.loops else Place.PLAIN,
    )


def _is_once(step: Step) -> bool:
    """True under ``if compiled is None``, of what the block assigns anew, and in a loop under ``if i == 0``."""
    start = step.loops[-1].lineno if step.loops else 0
    for test in (arm for arm, _ in step.arms if arm.lineno > start):
        asked, stores = _names(test.test), [node for node in walk(test) if isinstance(node, ast.Assign)]
        pairs = [(one, node.value) for node in stores for one in node.targets]
        held = [(one.value if isinstance(one, ast.Subscript) else one, value) for one, value in pairs]
        is_kept = any(ast.unparse(one) in asked - _names(value) for one, value in held)
        equals = [n for n in walk(test.test) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq)]
        if is_kept or (start and any(type(getattr(n.comparators[0], "value", None)) is int for n in equals)):
            return True
    return False


def _names(node: ast.expr) -> set[str]:
    return {ast.unparse(one) for one in walk(node) if isinstance(one, ast.Name | ast.Attribute)}


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


# The wrapper that ``torch.compile`` puts around a module: its keys and its methods.


_SAVES = re.compile(r"(^|\.)save(_file|_model|_checkpoint)?$")
_WRAPPER = frozenset({"wrapper"})
_MODULE = frozenset({"module"})


def wrapper_uses(survey: Survey) -> Iterator[Found]:
    """Methods of a wrapper, and state dicts that it exchanges with a plain module."""
    for call, step in survey.calls:
        if isinstance(call.func, ast.Attribute):
            hit = survey.hit(call.func.value, step.scope, call.lineno)
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
    functions = survey.index.functions
    compared = {
        functions.get(survey.index.dotted(call.func) or "")
        for call, step in survey.calls
        if any(survey.hit(argument, step.scope, call.lineno) is not None for argument in call.args)
    }
    for made in survey.steps:
        bound = {one for one in survey.scopes.made_by.get(made.statement, ()) if one in survey.compiled}
        plain = {name for one in bound for name in _plain_names(survey, survey.compiled[one], made)}
        for call, step in survey.calls if plain else ():
            called = functions.get(survey.index.dotted(call.func) or "")
            if called is None or step.scope is not made.scope or call.lineno < made.statement.lineno:
                continue
            for argument in call.args:
                name = parameter_of(call, argument, called.node, False)
                calls = any(isinstance(n, ast.Call) and name and is_name(n.func, name) for n in called.own_nodes)
                if isinstance(argument, ast.Name) and argument.id in plain and calls and called not in compared:
                    function, name = step.scope.info, argument.id
                    yield Found(EventKind.WRAPPER, call, function, name=name, callee="plain", operands=_MODULE)


def _plain_names(survey: Survey, compiled: Compiled, made: Step) -> set[str]:
    """The name of the module that is wrapped; where the wrapper takes its name, those of the modules in it."""
    source = compiled.source
    targets = made.statement.targets if isinstance(made.statement, ast.Assign) else []
    if compiled.in_place or not isinstance(source, ast.Name):
        return set()
    if not any(is_name(target, source.id) for target in targets):
        return {source.id}
    before = [b.value for b in survey.bindings_of(source.id, made.scope) if b.line < made.statement.lineno]
    parts = before[-1].args if before and isinstance(before[-1], ast.Call) else []
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _method(call: ast.Call, step: Step, hit: Hit, operands: frozenset[str]) -> Found:
    assert isinstance(call.func, ast.Attribute)
    function, name = step.scope.info, call.func.attr
    return Found(EventKind.WRAPPER, call, function, "", name, hit.condition, name, operands)


def _is_saved(survey: Survey, call: ast.Call, step: Step) -> bool:
    """True if a state dict is written to a file, directly or by way of a name."""
    targets = step.statement.targets if isinstance(step.statement, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
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
            hit = survey.hit(call.func.value, step.scope, call.lineno)
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
    hits = [survey.hit(side, step.scope, call.lineno) for side in sides]
    wrapped = [hit is not None and not hit.compiled.in_place for hit in hits]
    if wrapped.count(True) != 1 or "_orig_mod" in survey.text:
        return
    plain, hit = sides[wrapped.index(False)], hits[wrapped.index(True)]
    if hit is not None and _is_plain_module(survey, plain, step):
        words = (_WRAPPER, _MODULE) if wrapped[0] else (_MODULE, _WRAPPER)
        yield Found(
            EventKind.WRAPPER,
            call,
            step.scope.info,
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
    bindings = survey.bindings_of(node.id, step.scope)
    if not bindings or any(b in survey.compiled for b in bindings):
        return False
    return all(_makes_module(survey, b.value, step.scope) for b in bindings)


def _makes_module(survey: Survey, value: ast.expr | None, scope: Scope) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr in RETURN_THE_MODULE:
        return _makes_module(survey, value.func.value, scope)
    name = survey.index.dotted(value.func)
    if name in ("copy.deepcopy", "copy.copy") and value.args:
        return survey.hit(value.args[0], scope, value.lineno) is None
    return name in survey.index.classes or (name or "").startswith("torch.nn.")


def _runs_itself(survey: Survey, compiled: Compiled, method: str, step: Step) -> bool:
    """True if a method calls its own module, which is not the compiled wrapper."""
    if isinstance(compiled.target, ClassInfo):
        found = survey.project.method(compiled.target, method)
        if found is None or method in ("forward", "__call__") or "compile" in ast.unparse(compiled.target.node):
            return False
        return any(isinstance(n, ast.Call) and ast.unparse(n.func) in ("self", "self.forward") for n in found.own_nodes)
    return method == "generate" and _is_pretrained(survey, compiled, step)


def _is_pretrained(survey: Survey, compiled: Compiled, step: Step) -> bool:
    """True if what is compiled comes from ``from_pretrained`` of a class of transformers."""
    value = compiled.source
    if isinstance(value, ast.Name):
        line = compiled.node.lineno
        before = [b for b in survey.bindings_of(value.id, step.scope) if b.line < line]
        value = before[-1].value if before else None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == "from_pretrained":
            return (survey.index.dotted(value.func) or "").startswith("transformers.")
        value = value.func.value
    return False


_MAY_COMPILE = re.compile(r"\.compile\b(?<!\bre\.compile)")
_OF_STATES = (states.changing_attributes, states.changing_keys, states.switched_state)
_FINDERS = (changing_arguments, *_OF_STATES, wrapper_uses, plain_calls)


def compile_events(program: Program, compiled: set[FunctionInfo]) -> Iterator[tuple[FunctionInfo | None, Event]]:
    """The events of what a file compiles and how it uses that, each with the function that holds it. ``compiled`` are
    the functions in a region."""
    for found in _found(program, compiled):
        event = Event(
            found.kind,
            *span(program.module, found.node),
            form=found.form,
            callee=found.callee,
            attribute=found.name,
            operands=found.operands,
            arguments=found.arguments,
            place=found.place,
            in_region=found.in_region,
            conditions=(found.condition,) if found.condition else (),
            text=text_of(program.module, found.node),
        )
        yield found.function, event


def _found(program: Program, compiled: set[FunctionInfo]) -> Iterator[Found]:
    index = program.index
    for finder in (states.growing_attributes, states.counted_entries, states.float_updates):
        yield from finder(index, compiled)
    if not _MAY_COMPILE.search(index.module.text) and COMPILE not in index.imports.values():
        return
    scopes = Scopes(index)
    yield from compile_calls(program, scopes, compiled)
    survey = Survey(program.project, scopes)
    dynamic = {one.node.lineno for one in survey.compiled.values() if one.option("dynamic") is True}
    yield from states.differing_instances(survey)
    yield from states.size_branches(index, program.states, dynamic)
    for find in _FINDERS if survey.compiled else ():
        yield from find(survey)
