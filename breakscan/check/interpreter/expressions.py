"""Evaluates expressions over abstract values, and emits the events in them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter.assignment import bind, subscript
from breakscan.check.interpreter.attributes import attribute_of
from breakscan.check.interpreter.boolean_tests import bool_op, branch, compare, if_expression, operate, unary
from breakscan.check.interpreter.builtin_calls import emit_field, emit_percent
from breakscan.check.interpreter.calls import apply
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import (
    CONSTANT,
    NONE,
    UNKNOWN,
    Arguments,
    ArrayNumber,
    Container,
    Function,
    Module,
    Namespace,
    Sure,
    Tensor,
    TensorNumber,
    Unknown,
    Value,
    any_of,
    container,
    container_of,
    elements_of,
    item_of,
    iterated,
    join_all,
    keys_of,
    literal,
)
from breakscan.check.project.index import FunctionInfo
from breakscan.model.findings import Place
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts.not_measured import RECURRENT_MODULES

# The first touch of a recurrent module: a function that reads one runs eager.


_TOUCHED = "<recurrent>"
"""A key of the names of a frame that no program can have."""


def touch(frame: Frame, node: ast.expr, value: Module) -> None:
    """Emits that a recurrent module is read, unless that has ended the graph already."""
    if frame.silent or _TOUCHED in frame.names:
        return
    kinds = [_kind(frame, one) for one in value.choices or (value,)]
    kind = next((one for one in kinds if one is not None), None)
    if kind is None:
        return
    sure = Sure.CERTAIN if None not in kinds else Sure.LIKELY
    frame.emit(EventKind.READ, node, callee=kind, operand=value, sure=min(sure, value.sure))
    frame.names[_TOUCHED] = CONSTANT


def _kind(frame: Frame, value: Value) -> str | None:
    """The class of torch that a recurrent module is an instance of."""
    if not isinstance(value, Module):
        return None
    names = frame.program.project.outside_bases(value.info) if value.info is not None else [value.name or ""]
    return next((name for name in names if name in RECURRENT_MODULES), None)


_COMPUTED = (Tensor, TensorNumber, ArrayNumber)


def evaluate(frame: Frame, node: ast.expr | None) -> Value:
    """The value of an expression.  Emits what happens while it is computed."""
    if node is None:
        return NONE
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        value = handler(frame, node)
        if not frame.saw_tensor and isinstance(value, _COMPUTED) and value.sure is not Sure.POSSIBLE:
            frame.saw_tensor = True
        if frame.notes is not None and not frame.silent:
            frame.notes.value(node, value)
        return value
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(frame, child)
    return UNKNOWN


def _constant(frame: Frame, node: ast.Constant) -> Value:
    return literal(node.value)


def _name(frame: Frame, node: ast.Name) -> Value:
    value = frame.look_up(node.id)
    if isinstance(value, Module):
        touch(frame, node, value)
    return value


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    narrowed = frame.names.get(narrowing.attribute_key(node) or "")
    value = narrowed if narrowed is not None else attribute_of(frame, node, evaluate(frame, node.value), node.attr)
    if narrowed is None and frame.seen is not None:
        value = frame.as_seen(node, value)
    if isinstance(value, Module):
        touch(frame, node, value)
    return value


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    value = subscript(frame, node, evaluate(frame, node.value), "load")
    if isinstance(value, Module):
        touch(frame, node, value)
    return value


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        emit_percent(frame, node, node.left.value, right)
    return operate(frame, node, left, node.op, right)


def _formatted(frame: Frame, node: ast.FormattedValue) -> Value:
    emit_field(frame, node, evaluate(frame, node.value))
    if node.format_spec is not None:
        evaluate(frame, node.format_spec)
    return CONSTANT


def _joined(frame: Frame, node: ast.JoinedStr) -> Value:
    for part in node.values:
        evaluate(frame, part)
    return CONSTANT


def _display(frame: Frame, node: ast.Tuple | ast.List | ast.Set) -> Value:
    elements: list[Value] = []
    exact = not isinstance(node, ast.Set)
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = evaluate(frame, element.value)
            known = elements_of(value)
            if known is not None:
                elements += known
            else:
                exact = False
                elements.append(item_of(value))
        else:
            elements.append(evaluate(frame, element))
    if exact or not elements:
        return container(elements)
    return container_of(join_all(elements))


def _dict(frame: Frame, node: ast.Dict) -> Value:
    keys: dict[str, Value] = {}
    values: list[Value] = []
    for key, item in zip(node.keys, node.values, strict=True):
        value = evaluate(frame, item)
        if key is None:
            keys.update(keys_of(value))
            continue
        evaluate(frame, key)
        values.append(value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            keys[key.value] = value
    element = any_of(tuple(values)) if values else None
    return Container(element=element, keys=tuple(keys.items()), mapping=True)


def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    saved = dict(frame.names)
    # A break in a list comprehension splits; a generator or a dict under construction cannot be resumed.
    resumable = isinstance(node, ast.ListComp) and not _holds_its_place(frame, node.generators[0].iter)
    place = Place.PLAIN if resumable else Place.LOOP
    try:
        for i, generator in enumerate(node.generators):
            iterable = evaluate(frame, generator.iter)
            if isinstance(iterable, Tensor):
                frame.emit(EventKind.ITERATE, generator.iter, operand=iterable)
            bind(frame, generator.target, iterated(iterable))
            with frame.within(place if i or generator.ifs else Place.PLAIN):
                for condition in generator.ifs:
                    if narrowing.known_truth(frame, condition) is None:
                        branch(frame, condition, "filter")
                    narrowing.narrow(frame, condition, True)
        with frame.within(place):
            if isinstance(node, ast.DictComp):
                evaluate(frame, node.key)
                return container_of(evaluate(frame, node.value), mapping=True)
            return container_of(evaluate(frame, node.elt))
    finally:
        frame.names.clear()
        frame.names.update(saved)


def _holds_its_place(frame: Frame, over: ast.expr) -> bool:
    """True if Dynamo cannot rebuild the iterator over a value: ``enumerate``, and those of dicts (torch 2.13)."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        return over.func.attr in ("items", "keys", "values") and not over.args
    return isinstance(over, ast.Call) and frame.index.dotted(over.func) == "enumerate"


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    return function_value(frame, frame.program.lambda_info(node, frame))


def _named(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    bind(frame, node.target, value)
    return value


def _starred(frame: Frame, node: ast.Starred) -> Value:
    return item_of(evaluate(frame, node.value))


def _wrapped(frame: Frame, node: ast.Await | ast.YieldFrom | ast.Yield) -> Value:
    evaluate(frame, node.value)
    return UNKNOWN


def _call(frame: Frame, node: ast.Call) -> Value:
    callee = evaluate(frame, node.func)
    positional: list[Value] = []
    spread = False
    for argument in node.args:
        value = evaluate(frame, argument.value if isinstance(argument, ast.Starred) else argument)
        if not isinstance(argument, ast.Starred):
            positional.append(value)
            continue
        if _hands_on(frame, argument.value, callee):
            frame.saw_tensor = True
        if isinstance(value, Container) and value.elements:
            positional += value.elements
        else:
            spread = True
            positional.append(item_of(value))
    named = {keyword.arg: evaluate(frame, keyword.value) for keyword in node.keywords if keyword.arg}
    for keyword in node.keywords:
        if keyword.arg is None:
            named.update(keys_of(evaluate(frame, keyword.value)))
            spread = True
    result = apply(frame, node, callee, Arguments(positional, named, spread))
    frame.forget_outcomes(node)
    return result


def _hands_on(frame: Frame, given: ast.expr, callee: Value) -> bool:
    """True if a function hands its ``*args`` on to something that it is given or holds: what comes may be tensors."""
    vararg = frame.function.node.args.vararg if frame.function is not None else None
    unknown = isinstance(callee, Unknown | Function) or (isinstance(callee, Namespace) and callee.bound is not None)
    return vararg is not None and isinstance(given, ast.Name) and given.id == vararg.arg and unknown


def function_value(frame: Frame, info: FunctionInfo) -> Value:
    """A function that is defined inside the frame."""
    frame.program.closures.append(frame.names)
    made = Function(info=info, closure=frame.names)
    if frame.function is not None and not frame.silent:
        frame.program.inner[info] = frame.function, made
    return made


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: unary,
    ast.BoolOp: bool_op,
    ast.Compare: compare,
    ast.IfExp: if_expression,
    ast.FormattedValue: _formatted,
    ast.JoinedStr: _joined,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Starred: _starred,
    ast.Await: _wrapped,
    ast.Yield: _wrapped,
    ast.YieldFrom: _wrapped,
}
