"""Runs the statements of a function over abstract values."""

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, cast

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.boolean_tests import branch, operate
from breakscan.check.interpreter.call_event import SKIPPED, emit_call, enter
from breakscan.check.interpreter.expressions import bind, evaluate, function_value, store_attribute, subscript
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.parameters import annotated_value, may_be_tensor, used_as_tensor
from breakscan.check.interpreter.signatures import join_outcomes
from breakscan.model.findings import Condition, ConditionKind, Place
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import form_of_test, is_name, walk


def sets_up(frame: Frame, node: ast.expr) -> bool:
    """True if a call in code that sets an object up grows a container, or is a method that its own file defines."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute):
        return False
    if isinstance(func.value, ast.Name) and frame.function is not None and frame.function.owner is not None:
        method = frame.program.project.method(frame.function.owner, func.attr)
        return method is None or method.index is frame.index
    return isinstance(func.value, ast.Name | ast.Attribute)


def run_body(frame: Frame, body: list[ast.stmt]) -> bool:
    """Runs statements in order.  Returns whether control can reach the end."""
    kept, nones = len(frame.conditions), frame.nones
    try:
        goes_on = True
        for statement in body:
            goes_on = run_statement(frame, statement)
            if not goes_on:
                break
        return goes_on
    finally:
        del frame.conditions[kept:]
        frame.nones = nones


def run_statement(frame: Frame, node: ast.stmt) -> bool:
    """Runs one statement.  Returns whether control can go on after it."""
    if frame.notes is not None and not frame.silent:
        frame.notes.statement(node, frame.names)
    handler = _HANDLERS.get(type(node))
    return handler is None or handler(frame, node) is not False


def _expression(frame: Frame, node: ast.Expr) -> None:
    if not frame.silent or sets_up(frame, node.value):
        evaluate(frame, node.value)


def _return(frame: Frame, node: ast.Return) -> bool:
    known = narrowing.known_truth(frame, node.value) if frame.asked and node.value is not None else None
    value = evaluate(frame, node.value)
    frame.returned.append(value if known is None else replace(av.CONSTANT, truth=known))
    return False


def _raise(frame: Frame, node: ast.Raise) -> bool:
    with frame.under(muted=True):
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
    frame.names[node.name] = av.UNKNOWN


_TESTS = (ast.Call, ast.BoolOp, ast.UnaryOp, ast.Compare)


def _assign(frame: Frame, node: ast.Assign) -> None:
    known = narrowing.known_truth(frame, node.value) if isinstance(node.value, _TESTS) else None
    value = frame.evaluate(node.value)
    if known is not None:
        value = replace(av.CONSTANT, truth=known)
    made = node.value.value if isinstance(node.value, ast.Subscript) else node.value
    is_plain = isinstance(value, av.Constant | av.Size)
    sides = (node.value.left, node.value.right) if isinstance(node.value, ast.BinOp) else ()
    for target in node.targets:
        if isinstance(value, av.Unknown) and isinstance(made, ast.Call):
            _bind_result_of_unknown(frame, target, made)
        elif is_plain and isinstance(target, ast.Attribute) and ast.unparse(target) in map(ast.unparse, sides):
            # ``self.steps = self.steps + 1``
            store_attribute(frame, target, value, _form_of_update(frame.evaluate(target), cast(ast.BinOp, node.value)))
        else:
            bind(frame, target, value)


def _bind_result_of_unknown(frame: Frame, target: ast.expr, call: ast.Call) -> None:
    """``x, y = prepare(x, y)``, or an element of the result: what comes back under the name of a tensor that went in is
    very likely a tensor, and so is what the function only uses as one."""
    # What the functions of torch give is known if it is a tensor, and what is noted for rewrites needs more than that.
    is_of_torch = (frame.index.dotted(call.func) or "").startswith("torch.")
    function = frame.function if frame.notes is None and not is_of_torch else None
    given = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    for part in target.elts if isinstance(target, ast.Tuple) else [target]:
        if isinstance(part, ast.Name) and part.id in given and isinstance(frame.look_up(part.id), av.Tensor):
            sure = min(frame.look_up(part.id).sure, av.Sure.LIKELY)
            bind(frame, part, av.tensor(sure))
        elif isinstance(part, ast.Name) and function is not None and used_as_tensor(frame.api, function, part.id):
            bind(frame, part, av.tensor(av.Sure.LIKELY))
        else:
            bind(frame, part, av.UNKNOWN)


def _form_of_update(old: av.Value, update: ast.BinOp | ast.AugAssign) -> str:
    """An attribute that becomes a float is assigned, for Dynamo does not compile it for each value."""
    parts = (update.left, update.right) if isinstance(update, ast.BinOp) else (update.value,)
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    if isinstance(old, av.Constant):
        numbers.append(old.literal)
    is_float = isinstance(update.op, ast.Div) or any(isinstance(number, float) for number in numbers)
    return "assign" if is_float else "augment"


def _assign_annotated(frame: Frame, node: ast.AnnAssign) -> None:
    promised = annotated_value(frame.index, node.annotation)
    value = frame.evaluate(node.value) if node.value is not None else promised
    if isinstance(value, av.Unknown | av.Namespace) and not isinstance(promised, av.Unknown):
        value = promised
    if node.value is not None or not isinstance(node.target, ast.Name):
        bind(frame, node.target, value)


def _assign_augmented(frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    value = frame.evaluate(node.value)
    if isinstance(target, ast.Name):
        old = frame.look_up(target.id)
        new = operate(frame, node, old, node.op, value)
        if isinstance(old, av.Tensor) and isinstance(new, av.Tensor) and not old.optional:
            new = replace(new, intermediate=old.intermediate)  # it is changed in place
        elif isinstance(old, av.Constant) and old.truth and isinstance(node.op, ast.BitOr):
            new = old
        frame.names[target.id] = new
    elif isinstance(target, ast.Subscript):
        subscript(frame, target, frame.evaluate(target.value), "augment")
        frame.forget_outcomes(target)
    else:
        old = frame.evaluate(target)
        store_attribute(frame, target, operate(frame, node, old, node.op, value), _form_of_update(old, node))


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)
        else:
            frame.forget_outcomes(target)


def _if(frame: Frame, node: ast.If) -> bool:
    known = narrowing.known_truth(frame, node.test)
    if known is not None:
        narrowing.narrow(frame, node.test, known)
        return run_body(frame, node.body if known else node.orelse)
    late = branch(frame, node.test, form_of_test(node), node)
    before, known_before = dict(frame.names), frame.outcomes
    frame.learn_outcomes(node.test, True, late)
    when_true = narrowing.narrow(frame, node.test, True)
    body_goes_on = _run_arm(frame, node, True, when_true)
    after_body, known_after_body = dict(frame.names), frame.outcomes
    frame.restore(before)
    frame.outcomes = known_before
    frame.learn_outcomes(node.test, False, late)
    when_false = narrowing.narrow(frame, node.test, False)
    else_goes_on = _run_arm(frame, node, False, when_false) if node.orelse else True
    if body_goes_on and else_goes_on:
        merged = join_names(after_body, frame.names)
        differing = [name for name in merged if after_body.get(name) is not frame.names.get(name)]
        _mark_conditional(merged, differing, after_body, frame.names, when_true, (node.test, True))
        _mark_conditional(merged, differing, frame.names, after_body, when_false, (node.test, False))
        frame.restore(merged)
        frame.outcomes = join_outcomes(frame.outcomes, known_after_body)
    elif body_goes_on:
        frame.nones = narrowing.calls_with(frame, node.test, True)
        frame.restore(after_body)
        frame.outcomes = known_after_body
        frame.conditions += [c for c in when_true if c not in frame.conditions]  # the rest of the block is under them
    elif else_goes_on:
        frame.nones = narrowing.calls_with(frame, node.test, False)
        frame.conditions += [c for c in when_false if c not in frame.conditions]
    return body_goes_on or else_goes_on


def _run_arm(frame: Frame, node: ast.If, outcome: bool, conditions: list[Condition]) -> bool:
    frame.tests.append((node.test, outcome))
    frame.nones, before = narrowing.calls_with(frame, node.test, outcome), frame.nones
    with frame.under(*conditions, muted=outcome and isinstance(node.body[-1], ast.Raise)):
        goes_on = run_body(frame, node.body if outcome else node.orelse)
    frame.tests.pop()
    frame.nones = before
    return goes_on


def _mark_conditional(
    merged: dict[str, av.Value],
    differing: Sequence[str],
    side: dict[str, av.Value],
    other: dict[str, av.Value],
    conditions: list[Condition],
    test: tuple[ast.expr, bool],
) -> None:
    """Attaches a side's condition to values that are tensors on that side only."""
    for name in differing:
        value = merged[name]
        if not isinstance(value, av.Tensor) or value.optional or not isinstance(side.get(name), av.Tensor):
            continue
        if conditions and isinstance(other.get(name), av.Constant | av.Unknown | av.Container | av.Size):
            merged[name] = replace(value, optional=conditions[0])
        elif av.literal_of(other.get(name, av.UNKNOWN)) is not None:
            merged[name] = replace(value, optional=av.has_outcome(*test))


def join_names(a: dict[str, av.Value], b: dict[str, av.Value]) -> dict[str, av.Value]:
    """The values where two paths meet."""
    joined = dict(a)
    for name, value in b.items():
        known = joined.setdefault(name, value)
        if known is not value:
            joined[name] = av.join(known, value)
    return joined


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    iterable = evaluate(frame, node.iter)
    if isinstance(iterable, av.Tensor):
        frame.emit(EventKind.ITERATE, node.iter, operand=iterable)
    elif isinstance(iterable, av.Instance) and iterable.info is None and not isinstance(node.iter, ast.Call):
        name = f"{iterable.name}.__iter__"
        if frame.api.skipped.by_rule(name):  # Dynamo does not trace such objects
            frame.emit(EventKind.CALL, node.iter, form=SKIPPED, callee=name, operand=iterable, sure=iterable.sure)
    sort, pair = node.iter, getattr(node.target, "elts", [])
    is_sort = isinstance(sort, ast.Call) and is_name(sort.func, "sorted") and not sort.keywords and len(pair) == 2
    if is_sort and frame.function is not None and may_be_tensor(frame.api, frame.function, ast.unparse(pair[1])):
        given = av.Arguments([av.container_of(av.tensor())], {})  # pairs are compared as a whole
        emit_call(frame, cast(ast.Call, sort), "sorted", given, av.Sure.LIKELY)

    def once() -> None:
        bind(frame, node.target, av.iterated(iterable))
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
    frame.restore(carried)
    if frame.loops < MOST_LOOPS_REPEATED and any(carried[name] != value for name, value in before.items()):
        frame.loops += 1
        once()
        frame.loops -= 1
        frame.restore(join_names(carried, frame.names))
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
    for handler in () if frame.asked else node.handlers:
        frame.restore(at_handler)
        frame.outcomes = {}
        if handler.name:
            frame.names[handler.name] = av.UNKNOWN
        caught = Condition(ConditionKind.RAISED, ast.unparse(handler.type) if handler.type else "")
        with frame.within(Place.TRY), frame.under(caught):
            if run_body(frame, handler.body):
                goes_on = True
                after.append(dict(frame.names))
    if after:
        frame.restore(reduce(join_names, after))
    return run_body(frame, node.finalbody) and goes_on


def _assert(frame: Frame, node: ast.Assert) -> None:
    if narrowing.known_truth(frame, node.test) is None:
        form = form_of_test(node)
        branch(frame, node.test, form, node, compound_only=form == "assert")
    narrowing.narrow(frame, node.test, True)


def _match(frame: Frame, node: ast.Match) -> bool:
    subject = evaluate(frame, node.subject)
    before = dict(frame.names)
    results = [before]
    frame.outcomes = {}
    for case in node.cases:
        frame.restore(dict(before))
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                frame.names[name] = subject if pattern is case.pattern else av.item_of(subject)
        if case.guard is not None and narrowing.known_truth(frame, case.guard) is None:
            branch(frame, case.guard, "if")
        if run_body(frame, case.body):
            results.append(dict(frame.names))
    frame.restore(reduce(join_names, results))
    return True


def returned_value(frame: Frame, reaches_end: bool) -> av.Value:
    """The value that the function returns, over all paths."""
    values = [*frame.returned, *([av.NONE] if reaches_end else [])]
    result = av.join_all(values) if values else av.CONSTANT
    has_literal = any(av.literal_of(value) is not None for value in values)
    if isinstance(result, av.Tensor) and not result.optional and has_literal:
        name = frame.function.name if frame.function is not None else ""
        return replace(result, optional=Condition(ConditionKind.RETURNS_TENSOR, name))
    return result


_HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], bool | None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _assign_annotated,
    ast.AugAssign: _assign_augmented,
    ast.Delete: _delete,
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
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), _define_function),
    ast.ClassDef: _define_class,
}
"""The handler of each kind of statement.  One that returns False means that control cannot go on after it."""
if sys.version_info >= (3, 11):
    _HANDLERS[ast.TryStar] = _try
