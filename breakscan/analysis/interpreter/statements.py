"""Runs the statements of a function over abstract values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from breakscan.analysis.interpreter import narrowing as truth
from breakscan.analysis.interpreter.annotations import annotated_value
from breakscan.analysis.interpreter.arithmetic import binary
from breakscan.analysis.interpreter.assignment import bind, store_attribute
from breakscan.analysis.interpreter.boolean_tests import branch
from breakscan.analysis.interpreter.conditions import Condition, ConditionKind
from breakscan.analysis.interpreter.expressions import evaluate, function_value
from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.joins import item_of, iterated, join, join_all
from breakscan.analysis.interpreter.subscripts import subscript
from breakscan.analysis.interpreter.values import (
    CONSTANT,
    NONE,
    UNKNOWN,
    Constant,
    Container,
    Instance,
    Namespace,
    Size,
    Sure,
    Tensor,
    Unknown,
    Value,
    tensor,
)
from breakscan.findings import Place
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import own_nodes

# Dynamo restores these after a break; with any other context manager, a break makes the whole frame run eagerly.
RESUMABLE_CONTEXTS = frozenset(
    {
        "torch.no_grad",
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.inference_mode",
        "torch.autocast",
        "torch.amp.autocast",
        "torch.cuda.amp.autocast",
        "torch.cpu.amp.autocast",
        "torch.autograd.profiler.record_function",
        "torch.profiler.profile",
        "torch.autograd.graph.disable_saved_tensors_hooks",
        "torch.profiler.record_function",
        "torch.nn.attention.sdpa_kernel",
        "torch.autograd.grad_mode.no_grad",
        "contextlib.nullcontext",
    }
)

RESUMABLE_WHEN_HELD = frozenset({"torch.autocast", "torch.profiler.record_function", "contextlib.nullcontext"})
"""Those of them that also are when the object was made before the ``with``."""


def run_body(frame: Frame, body: list[ast.stmt]) -> bool:
    """Runs statements in order.  Returns whether control can reach the end."""
    kept = len(frame.conditions)
    try:
        return all(run_statement(frame, statement) for statement in body)
    finally:
        del frame.conditions[kept:]


def run_statement(frame: Frame, node: ast.stmt) -> bool:
    """Runs one statement.  Returns whether control can go on after it."""
    if frame.facts is not None and hasattr(node, "body"):
        frame.facts.settle(frame.names)
    if frame.notes is not None and not frame.silent:
        frame.notes.statement(node, frame.names)
    match node:
        case ast.Expr():
            if not frame.silent or _sets_up(frame, node.value):
                evaluate(frame, node.value)
            elif isinstance(node.value, ast.Call):
                _keep_keywords(frame, node.value)
        case ast.Assign():
            _assign(frame, node)
        case ast.AnnAssign():
            _annotated(frame, node)
        case ast.AugAssign():
            _augmented(frame, node)
        case ast.Return():
            value = evaluate(frame, node.value)
            frame.returned.append(value if frame.facts is None else frame.facts.returned(node.value, value))
            return False
        case ast.Raise():
            with frame.muted():
                evaluate(frame, node.exc)
            return False
        case ast.If():
            return _if(frame, node)
        case ast.For() | ast.AsyncFor():
            _for(frame, node)
        case ast.While():
            _while(frame, node)
        case ast.With() | ast.AsyncWith():
            return _with(frame, node)
        case ast.Try():
            return _try(frame, node)
        case ast.Assert():
            _assert(frame, node)
        case ast.Match():
            return _match(frame, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            frame.names[node.name] = function_value(frame, frame.index.all_functions[node])
        case ast.ClassDef():
            frame.emit(EventKind.DEFINE, node, form="class")
            frame.names[node.name] = UNKNOWN
        case ast.Delete():
            _delete(frame, node)
        case ast.Break() | ast.Continue():
            return False
        case _:
            if isinstance(node, getattr(ast, "TryStar", ())):
                return _try(frame, node)  # type: ignore[arg-type]
    return True


def _sets_up(frame: Frame, node: ast.expr) -> bool:
    """Whether a call in code that sets an object up grows a container, or is a method that its own file defines."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute):
        return False
    if isinstance(func.value, ast.Name) and frame.function is not None and frame.function.owner is not None:
        method = frame.program.project.method(frame.function.owner, func.attr)
        return method is None or method.index is frame.index
    return isinstance(func.value, ast.Name | ast.Attribute)


def _keep_keywords(frame: Frame, call: ast.Call) -> None:
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
    called = {n.func.id for n in own_nodes(method.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    if "setattr" in called:
        for keyword in call.keywords:
            if keyword.arg is not None:
                frame.program.attributes.store(owner, keyword.arg, evaluate(frame, keyword.value))


_TESTS = (ast.Call, ast.BoolOp, ast.UnaryOp, ast.Compare)


def _assign(frame: Frame, node: ast.Assign) -> None:
    known = truth.known_truth(frame, node.value) if isinstance(node.value, _TESTS) else None
    value = evaluate(frame, node.value)
    if known is not None:
        value = replace(CONSTANT, truth=known)
    for target in node.targets:
        if isinstance(value, Unknown) and isinstance(node.value, ast.Call):
            _bind_result_of_unknown(frame, target, node.value)
        else:
            bind(frame, target, value)


def _bind_result_of_unknown(frame: Frame, target: ast.expr, call: ast.Call) -> None:
    """``x, y = prepare(x, y)``: what comes back under the name of a tensor that went in is very likely a tensor."""
    given = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    for part in target.elts if isinstance(target, ast.Tuple) else [target]:
        if isinstance(part, ast.Name) and part.id in given and isinstance(frame.look_up(part.id), Tensor):
            sure = min(frame.look_up(part.id).sure, Sure.LIKELY)
            bind(frame, part, tensor(sure))
        else:
            bind(frame, part, UNKNOWN)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    promised = annotated_value(frame.index, node.annotation)
    value = evaluate(frame, node.value) if node.value is not None else promised
    if isinstance(value, Unknown | Namespace):
        value = promised
    if node.value is not None or not isinstance(node.target, ast.Name):
        bind(frame, node.target, value)


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    value = evaluate(frame, node.value)
    if isinstance(target, ast.Name):
        old = frame.look_up(target.id)
        new = binary(old, value, node.op)
        frame.names[target.id] = frame.facts.augmented(node, old, new) if frame.facts is not None else new
    elif isinstance(target, ast.Subscript):
        subscript(frame, target, evaluate(frame, target.value), "augment")
    else:
        old = evaluate(frame, target)
        store_attribute(frame, target, binary(old, value, node.op), "augment")


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)


def _if(frame: Frame, node: ast.If) -> bool:
    known = truth.known_truth(frame, node.test)
    if known is not None:
        truth.narrow(frame, node.test, known)
        return run_body(frame, node.body if known else node.orelse)
    branch(frame, node.test, "guard" if is_guard(node) else "if", node)
    before = dict(frame.names)
    when_true = truth.narrow(frame, node.test, True)
    with frame.muted(isinstance(node.body[-1], ast.Raise)):
        body_goes_on = _run_arm(frame, node, True, when_true)
    after_body = dict(frame.names)
    _reset(frame, before)
    when_false = truth.narrow(frame, node.test, False)
    else_goes_on = _run_arm(frame, node, False, when_false) if node.orelse else True
    if body_goes_on and else_goes_on:
        merged = join_names(after_body, frame.names)
        _mark_conditional(merged, after_body, frame.names, when_true)
        _reset(frame, merged)
    elif body_goes_on:
        _reset(frame, after_body)
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
    merged: dict[str, Value], body: dict[str, Value], other: dict[str, Value], conditions: list[Condition]
) -> None:
    """Attaches a side's condition to values that became tensors on that side only."""
    if not conditions:
        return
    for name, value in merged.items():
        was_another_kind = isinstance(other.get(name), Constant | Unknown | Container | Size)
        if was_another_kind and isinstance(value, Tensor) and isinstance(body.get(name), Tensor):
            merged[name] = replace(value, optional=value.optional or conditions[0])


def _rest_stands_under(frame: Frame, conditions: list[Condition]) -> None:
    """Adds the conditions, which are the other outcome of an early exit, to the rest of the block."""
    frame.conditions += [c for c in conditions if c not in frame.conditions]


def is_guard(node: ast.If) -> bool:
    """Whether an ``if`` does nothing but raise."""
    return not node.orelse and isinstance(node.body[-1], ast.Raise) and len(node.body) <= 2


def _reset(frame: Frame, names: dict[str, Value]) -> None:
    if names is not frame.names:
        frame.names.clear()
        frame.names.update(names)


def join_names(a: dict[str, Value], b: dict[str, Value]) -> dict[str, Value]:
    """What is known where two paths meet."""
    return {
        name: a[name] if name not in b else b[name] if name not in a else join(a[name], b[name]) for name in {**a, **b}
    }


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    iterable = evaluate(frame, node.iter)
    if isinstance(iterable, Tensor):
        frame.emit(EventKind.ITERATE, node.iter, operand=iterable)

    def once() -> None:
        if frame.facts is not None:
            frame.facts.start_round(node, frame.names)
        bind(frame, node.target, iterated(iterable))
        with frame.within(Place.LOOP, node):
            run_body(frame, node.body)

    _run_rounds(frame, once)
    run_body(frame, node.orelse)


def _run_rounds(frame: Frame, once: Callable[[], None]) -> None:
    """Runs a loop's body, and again where a second round starts with other values than the first."""
    before = dict(frame.names)
    once()
    carried = join_names(before, frame.names)
    _reset(frame, carried)
    if frame.loops < MOST_LOOPS_REPEATED and any(carried[name] != value for name, value in before.items()):
        frame.loops += 1
        once()
        frame.loops -= 1
        _reset(frame, join_names(carried, frame.names))


MOST_LOOPS_REPEATED = 3
"""Loops inside one another whose second round is looked at: each doubles the work."""


def _while(frame: Frame, node: ast.While) -> None:
    if truth.known_truth(frame, node.test) is False:
        run_body(frame, node.orelse)
        return

    def once() -> None:
        if frame.facts is not None:
            frame.facts.start_round(node, frame.names)
        branch(frame, node.test, "while", node)
        truth.narrow(frame, node.test, True)
        with frame.within(Place.LOOP, node):
            run_body(frame, node.body)

    _run_rounds(frame, once)
    run_body(frame, node.orelse)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    resumable = True
    for item in node.items:
        value = evaluate(frame, item.context_expr)
        callee = value.name if isinstance(value, Instance) else _context_name(frame, item.context_expr)
        form = "made" if isinstance(item.context_expr, ast.Call) else "held"
        resumable = resumable and callee in (RESUMABLE_CONTEXTS if form == "made" else RESUMABLE_WHEN_HELD)
        if callee is not None:
            frame.emit(EventKind.ENTER, item.context_expr, form=form, callee=callee, operand=value)
        if item.optional_vars is not None:
            bind(frame, item.optional_vars, UNKNOWN)
    with frame.within(Place.PLAIN if resumable else Place.WITH):
        return run_body(frame, node.body)


def _context_name(frame: Frame, node: ast.expr) -> str | None:
    return frame.index.dotted(node.func if isinstance(node, ast.Call) else node)


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
        if handler.name:
            frame.names[handler.name] = UNKNOWN
        caught = Condition(ConditionKind.RAISED, ast.unparse(handler.type) if handler.type else "")
        with frame.within(Place.TRY), frame.under(caught):
            if run_body(frame, handler.body):
                goes_on = True
                after.append(dict(frame.names))
    if after:
        merged = after[0]
        for names in after[1:]:
            merged = join_names(merged, names)
        _reset(frame, merged)
    return run_body(frame, node.finalbody) and goes_on


def _assert(frame: Frame, node: ast.Assert) -> None:
    constant = node.msg is None or (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str))
    branch(frame, node.test, "assert" if constant else "assert-message", node, compound_only=constant)
    for condition in truth.narrow(frame, node.test, True):
        if condition not in frame.conditions:
            frame.conditions.append(condition)


def _match(frame: Frame, node: ast.Match) -> bool:
    subject = evaluate(frame, node.subject)
    before = dict(frame.names)
    results = [before]
    for case in node.cases:
        _reset(frame, dict(before))
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                frame.names[name] = subject if pattern is case.pattern else item_of(subject)
        if case.guard is not None:
            branch(frame, case.guard, "if")
        if run_body(frame, case.body):
            results.append(dict(frame.names))
    merged = results[0]
    for names in results[1:]:
        merged = join_names(merged, names)
    _reset(frame, merged)
    return True


def returned_value(frame: Frame, reaches_end: bool) -> Value:
    """What the function returns, over all paths."""
    values = [*frame.returned, *([NONE] if reaches_end else [])]
    return join_all(values) if values else CONSTANT
