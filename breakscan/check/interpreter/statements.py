"""Runs the statements of a function over abstract values."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter.assignment import assign, assign_annotated, assign_augmented, bind, delete
from breakscan.check.interpreter.boolean_tests import branch
from breakscan.check.interpreter.call_event import emit_iteration, enter
from breakscan.check.interpreter.expressions import evaluate, function_value
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.signatures import join_outcomes
from breakscan.check.interpreter.values import (
    CONSTANT,
    NONE,
    UNKNOWN,
    Constant,
    Container,
    Instance,
    Size,
    Tensor,
    Unknown,
    Value,
    has_outcome,
    item_of,
    iterated,
    join,
    join_all,
    literal_of,
)
from breakscan.model.findings import Condition, ConditionKind, Place
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import walk

# Calls in code that sets an object up: which of them show what the object holds.


def sets_up(frame: Frame, node: ast.expr) -> bool:
    """True if a call in code that sets an object up grows a container, or is a method that its own file defines."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute):
        return False
    if isinstance(func.value, ast.Name) and frame.function is not None and frame.function.owner is not None:
        method = frame.program.project.method(frame.function.owner, func.attr)
        return method is None or method.index is frame.index
    return isinstance(func.value, ast.Name | ast.Attribute)


def store_keywords(frame: Frame, call: ast.Call) -> None:
    """``self.register(part=part)``, where the method does ``setattr(self, name, value)`` with what it is given."""
    func = call.func
    owner = frame.function.owner if frame.function is not None else None
    if (
        owner is None
        or not call.keywords
        or not isinstance(func, ast.Attribute)
        or not isinstance(func.value, ast.Name)
    ):
        return
    method = frame.program.project.method(owner, func.attr)
    if method is None or method.node.args.kwarg is None:
        return
    called = {n.func.id for n in method.own_nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    if "setattr" in called:
        for keyword in call.keywords:
            if keyword.arg is not None:
                frame.program.attributes.store(owner, keyword.arg, frame.evaluate(keyword.value))


def run_body(frame: Frame, body: list[ast.stmt]) -> bool:
    """Runs statements in order.  Returns whether control can reach the end."""
    kept = len(frame.conditions)
    try:
        goes_on = True
        for statement in body:
            goes_on = run_statement(frame, statement)
            if not goes_on:
                break
        return goes_on
    finally:
        del frame.conditions[kept:]


def run_statement(frame: Frame, node: ast.stmt) -> bool:
    """Runs one statement.  Returns whether control can go on after it."""
    if frame.notes is not None and not frame.silent:
        frame.notes.statement(node, frame.names)
    handler = _HANDLERS.get(type(node))
    return handler is None or handler(frame, node) is not False


def _expression(frame: Frame, node: ast.Expr) -> None:
    if not frame.silent or sets_up(frame, node.value):
        evaluate(frame, node.value)
    elif isinstance(node.value, ast.Call):
        store_keywords(frame, node.value)


def _return(frame: Frame, node: ast.Return) -> bool:
    frame.returned.append(evaluate(frame, node.value))
    return False


def _raise(frame: Frame, node: ast.Raise) -> bool:
    with frame.muted():
        evaluate(frame, node.exc)
    return False


def _define_function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for decorator in node.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        dotted = frame.index.dotted(named)
        if dotted in _CACHES:
            frame.emit(EventKind.CALL, decorator, callee=dotted)
    frame.names[node.name] = function_value(frame, frame.index.all_functions[node])


_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
"""Decorators that Dynamo cannot put around a function while it traces."""


def _define_class(frame: Frame, node: ast.ClassDef) -> None:
    frame.emit(EventKind.DEFINE, node, form="class")
    # The function that makes a class of tensors is called where tensors are.
    names = (frame.index.dotted(one) or "" for one in walk(node) if isinstance(one, ast.Name))
    frame.saw_tensor = frame.saw_tensor or any(name.split(".")[0] == "torch" for name in names)
    frame.names[node.name] = UNKNOWN


def _if(frame: Frame, node: ast.If) -> bool:
    known = narrowing.known_truth(frame, node.test)
    if known is not None:
        narrowing.narrow(frame, node.test, known)
        return run_body(frame, node.body if known else node.orelse)
    late = branch(frame, node.test, "guard" if is_guard(node) else "if", node)
    before, known_before = dict(frame.names), frame.outcomes
    frame.learn_outcomes(node.test, True, late)
    when_true = narrowing.narrow(frame, node.test, True)
    with frame.muted(isinstance(node.body[-1], ast.Raise)):
        body_goes_on = _run_arm(frame, node, True, when_true)
    after_body, known_after_body = dict(frame.names), frame.outcomes
    _reset(frame, before)
    frame.outcomes = known_before
    frame.learn_outcomes(node.test, False, late)
    when_false = narrowing.narrow(frame, node.test, False)
    else_goes_on = _run_arm(frame, node, False, when_false) if node.orelse else True
    if body_goes_on and else_goes_on:
        merged = join_names(after_body, frame.names)
        differing = [name for name in merged if after_body.get(name) is not frame.names.get(name)]
        _mark_conditional(merged, differing, after_body, frame.names, when_true, (node.test, True))
        _mark_conditional(merged, differing, frame.names, after_body, when_false, (node.test, False))
        _reset(frame, merged)
        frame.outcomes = join_outcomes(frame.outcomes, known_after_body)
    elif body_goes_on:
        _reset(frame, after_body)
        frame.outcomes = known_after_body
        _rest_stands_under(frame, when_true)
    elif else_goes_on:
        _rest_stands_under(frame, when_false)
    return body_goes_on or else_goes_on


def _run_arm(frame: Frame, node: ast.If, outcome: bool, conditions: list[Condition]) -> bool:
    frame.tests.append((node.test, outcome))
    with frame.under(*conditions):
        goes_on = run_body(frame, node.body if outcome else node.orelse)
    frame.tests.pop()
    return goes_on


def _mark_conditional(
    merged: dict[str, Value],
    differing: Sequence[str],
    side: dict[str, Value],
    other: dict[str, Value],
    conditions: list[Condition],
    test: tuple[ast.expr, bool],
) -> None:
    """Attaches a side's condition to values that are tensors on that side only."""
    for name in differing:
        value = merged[name]
        if not isinstance(value, Tensor) or value.optional or not isinstance(side.get(name), Tensor):
            continue
        if conditions and isinstance(other.get(name), Constant | Unknown | Container | Size):
            merged[name] = replace(value, optional=conditions[0])
        elif literal_of(other.get(name, UNKNOWN)) is not None:
            merged[name] = replace(value, optional=has_outcome(*test))


def _rest_stands_under(frame: Frame, conditions: list[Condition]) -> None:
    """Adds the conditions, which are the other outcome of an early exit, to the rest of the block."""
    frame.conditions += [c for c in conditions if c not in frame.conditions]


def is_guard(node: ast.If) -> bool:
    """True if an ``if`` does nothing but raise."""
    return not node.orelse and isinstance(node.body[-1], ast.Raise) and len(node.body) <= 2


def _reset(frame: Frame, names: dict[str, Value]) -> None:
    if names is not frame.names:
        frame.names.clear()
        frame.names.update(names)


def join_names(a: dict[str, Value], b: dict[str, Value]) -> dict[str, Value]:
    """The values where two paths meet."""
    joined = dict(a)
    for name, value in b.items():
        known = joined.setdefault(name, value)
        if known is not value:
            joined[name] = join(known, value)
    return joined


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    iterable = evaluate(frame, node.iter)
    if isinstance(iterable, Tensor):
        frame.emit(EventKind.ITERATE, node.iter, operand=iterable)
    elif isinstance(iterable, Instance):
        emit_iteration(frame, node.iter, iterable)

    def once() -> None:
        bind(frame, node.target, iterated(iterable))
        with frame.within(Place.LOOP, node):
            run_body(frame, node.body)

    _run_rounds(frame, once)
    run_body(frame, node.orelse)


def _run_rounds(frame: Frame, once: Callable[[], None]) -> None:
    """Runs a loop's body, and again where a second round starts with other values than the first."""
    before = dict(frame.names)
    frame.outcomes = {}
    once()
    carried = join_names(before, frame.names)
    _reset(frame, carried)
    if frame.loops < MOST_LOOPS_REPEATED and any(carried[name] != value for name, value in before.items()):
        frame.loops += 1
        once()
        frame.loops -= 1
        _reset(frame, join_names(carried, frame.names))
    frame.outcomes = {}


MOST_LOOPS_REPEATED = 3
"""Loops inside one another whose second round is looked at: each doubles the work."""


def _while(frame: Frame, node: ast.While) -> None:
    if narrowing.known_truth(frame, node.test) is False:
        run_body(frame, node.orelse)
        return

    def once() -> None:
        if narrowing.known_truth(frame, node.test) is None:
            branch(frame, node.test, "while", node)
        narrowing.narrow(frame, node.test, True)
        with frame.within(Place.LOOP, node):
            run_body(frame, node.body)

    _run_rounds(frame, once)
    run_body(frame, node.orelse)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    resumable = True
    for item in node.items:
        entered, restored = enter(frame, item)
        resumable = restored and resumable
        if item.optional_vars is not None:
            bind(frame, item.optional_vars, entered)
    with frame.within(Place.PLAIN if resumable else Place.WITH):
        return run_body(frame, node.body)


def _try(frame: Frame, node: ast.Try) -> bool:
    before = dict(frame.names)
    with frame.within(Place.TRY):
        goes_on = run_body(frame, node.body)
    after = [dict(frame.names)] if goes_on else []
    # A handler may start from any point of the body.
    at_handler = join_names(before, frame.names)
    if goes_on:
        goes_on = run_body(frame, node.orelse)
        after = [dict(frame.names)] if goes_on else []
    for handler in node.handlers:
        _reset(frame, at_handler)
        frame.outcomes = {}
        if handler.name:
            frame.names[handler.name] = UNKNOWN
        caught = Condition(ConditionKind.RAISED, ast.unparse(handler.type) if handler.type else "")
        with frame.within(Place.TRY), frame.under(caught):
            if run_body(frame, handler.body):
                goes_on = True
                after.append(dict(frame.names))
    if after:
        _reset(frame, reduce(join_names, after))
    return run_body(frame, node.finalbody) and goes_on


def _assert(frame: Frame, node: ast.Assert) -> None:
    constant = node.msg is None or (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str))
    if narrowing.known_truth(frame, node.test) is None:
        branch(frame, node.test, "assert" if constant else "assert-message", node, compound_only=constant)
    narrowing.narrow(frame, node.test, True)


def _match(frame: Frame, node: ast.Match) -> bool:
    subject = evaluate(frame, node.subject)
    before = dict(frame.names)
    results = [before]
    frame.outcomes = {}
    for case in node.cases:
        _reset(frame, dict(before))
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                frame.names[name] = subject if pattern is case.pattern else item_of(subject)
        if case.guard is not None and narrowing.known_truth(frame, case.guard) is None:
            branch(frame, case.guard, "if")
        if run_body(frame, case.body):
            results.append(dict(frame.names))
    _reset(frame, reduce(join_names, results))
    return True


def returned_value(frame: Frame, reaches_end: bool) -> Value:
    """The value that the function returns, over all paths."""
    values = [*frame.returned, *([NONE] if reaches_end else [])]
    result = join_all(values) if values else CONSTANT
    if isinstance(result, Tensor) and not result.optional and any(literal_of(value) is not None for value in values):
        name = frame.function.name if frame.function is not None else ""
        return replace(result, optional=Condition(ConditionKind.RETURNS_TENSOR, name))
    return result


_HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], bool | None]] = {
    ast.Expr: _expression,
    ast.Assign: assign,
    ast.AnnAssign: assign_annotated,
    ast.AugAssign: assign_augmented,
    ast.Delete: delete,
    ast.Return: _return,
    ast.Raise: _raise,
    **dict.fromkeys((ast.Break, ast.Continue), lambda frame, node: False),
    ast.If: _if,
    **dict.fromkeys((ast.For, ast.AsyncFor), _for),
    ast.While: _while,
    **dict.fromkeys((ast.With, ast.AsyncWith), _with),
    ast.Try: _try,
    ast.Assert: _assert,
    ast.Match: _match,
    ast.FunctionDef: _define_function,
    ast.AsyncFunctionDef: _define_function,
    ast.ClassDef: _define_class,
}
"""The handler of each kind of statement.  One that returns False means that control cannot go on after it."""
if sys.version_info >= (3, 11):
    _HANDLERS[ast.TryStar] = _try
