"""Runs assignments: to names, attributes, subscripts and patterns of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter.annotations import annotated_value
from breakscan.check.interpreter.arithmetic import operate
from breakscan.check.interpreter.call_paths import forget_outcomes
from breakscan.check.interpreter.data_sizes import parts_of_size
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.joins import any_of, item_of
from breakscan.check.interpreter.parameters import used_as_tensor
from breakscan.check.interpreter.subscripts import entry_of, subscript
from breakscan.check.interpreter.values import (
    CONSTANT,
    UNKNOWN,
    ClassOrObject,
    Constant,
    Container,
    DataSize,
    Module,
    Namespace,
    Sure,
    Tensor,
    Unknown,
    Value,
    at_most,
    container_of,
    elements_of,
    tensor,
)
from breakscan.rulebook.events import Argument, EventKind

_TESTS = (ast.Call, ast.BoolOp, ast.UnaryOp, ast.Compare)


def assign(frame: Frame, node: ast.Assign) -> None:
    known = narrowing.known_truth(frame, node.value) if isinstance(node.value, _TESTS) else None
    value = frame.evaluate(node.value)
    if known is not None:
        value = replace(CONSTANT, truth=known)
    for target in node.targets:
        if isinstance(value, Unknown) and (call := _call_of(node.value)) is not None:
            _bind_result_of_unknown(frame, target, call)
        elif isinstance(target, ast.Attribute) and isinstance(value, Constant) and _is_update(node.value, target):
            store_attribute(frame, target, value, _form_of_update(frame.evaluate(target), node.value))
        else:
            bind(frame, target, value)


def _call_of(node: ast.expr) -> ast.Call | None:
    """The call whose result, or an element of it, is assigned."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node if isinstance(node, ast.Call) else None


def _bind_result_of_unknown(frame: Frame, target: ast.expr, call: ast.Call) -> None:
    """``x, y = prepare(x, y)``: what comes back under the name of a tensor that went in is very likely a tensor, and so
    is what the function only uses as one.
    """
    given = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    for part in target.elts if isinstance(target, ast.Tuple) else [target]:
        if isinstance(part, ast.Name) and part.id in given and isinstance(frame.look_up(part.id), Tensor):
            sure = min(frame.look_up(part.id).sure, Sure.LIKELY)
            bind(frame, part, tensor(sure))
        elif isinstance(part, ast.Name) and _is_used_as_tensor(frame, part.id, call):
            bind(frame, part, tensor(Sure.LIKELY))
        else:
            bind(frame, part, UNKNOWN)


def _is_used_as_tensor(frame: Frame, name: str, call: ast.Call) -> bool:
    """Whether a function uses a name only as a tensor to which it binds what it does not know.  What the functions of
    torch give is known if it is a tensor, and what is noted for rewrites needs more than that.
    """
    if frame.function is None or frame.notes is not None:
        return False
    if (frame.index.dotted(call.func) or "").startswith("torch."):
        return False
    return used_as_tensor(frame.api, frame.function, name)


def _is_update(value: ast.expr, target: ast.Attribute) -> TypeGuard[ast.BinOp]:
    """``self.steps = self.steps + 1``."""
    return isinstance(value, ast.BinOp) and ast.unparse(target) in map(ast.unparse, (value.left, value.right))


def _form_of_update(old: Value, update: ast.BinOp | ast.AugAssign) -> str:
    """An attribute that becomes a float is assigned, for Dynamo does not compile it for each value."""
    parts = (update.left, update.right) if isinstance(update, ast.BinOp) else (update.value,)
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    if isinstance(old, Constant):
        numbers.append(old.literal)
    is_float = isinstance(update.op, ast.Div) or any(isinstance(number, float) for number in numbers)
    return "assign" if is_float else "augment"


def assign_annotated(frame: Frame, node: ast.AnnAssign) -> None:
    promised = annotated_value(frame.index, node.annotation)
    value = frame.evaluate(node.value) if node.value is not None else promised
    if isinstance(value, Unknown | Namespace):
        value = promised
    if node.value is not None or not isinstance(node.target, ast.Name):
        bind(frame, node.target, value)


def assign_augmented(frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    value = frame.evaluate(node.value)
    if isinstance(target, ast.Name):
        old = frame.look_up(target.id)
        new = operate(frame, node, old, node.op, value)
        frame.names[target.id] = frame.facts.augmented(node, old, new) if frame.facts is not None else new
    elif isinstance(target, ast.Subscript):
        subscript(frame, target, frame.evaluate(target.value), "augment")
        forget_outcomes(frame, target)
    else:
        old = frame.evaluate(target)
        store_attribute(frame, target, operate(frame, node, old, node.op, value), _form_of_update(old, node))


def delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)
        else:
            forget_outcomes(frame, target)


def bind(frame: Frame, target: ast.expr, value: Value) -> None:
    """Assigns to a target: a name, an attribute, a subscript, or a pattern of them."""
    if isinstance(target, ast.Name):
        if frame.facts is not None:
            value = frame.facts.bound(target, value)
        frame.names[target.id] = value
        if frame.entries:
            frame.entries.pop(target.id, None)
        if frame.notes is not None and not frame.silent:
            frame.notes.value(target, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, container_of(item_of(value)))
    elif isinstance(target, ast.Attribute):
        store_attribute(frame, target, value, "assign")
    elif isinstance(target, ast.Subscript):
        owner = frame.evaluate(target.value)
        subscript(frame, target, owner, "store")
        forget_outcomes(frame, target)
        _grow(frame, target, owner, value)


def _unpack(frame: Frame, targets: Sequence[ast.expr], value: Value) -> None:
    elements = parts_of_size(value, len(targets)) if isinstance(value, DataSize) else elements_of(value)
    if elements is not None and len(elements) == len(targets) and not any(isinstance(t, ast.Starred) for t in targets):
        for target, element in zip(targets, elements, strict=True):
            bind(frame, target, element)
    else:
        for target in targets:
            bind(frame, target, value if isinstance(target, ast.Starred) else item_of(value))


def _grow(frame: Frame, target: ast.Subscript, owner: Value, value: Value) -> None:
    """Returns a container after something was stored in it under a key."""
    if isinstance(owner, Container) and isinstance(target.value, ast.Name):
        keys = dict(owner.keys)
        if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            keys[target.slice.value] = value
        element = any_of((owner.element, value)) if owner.element is not None else value
        frame.names[target.value.id] = replace(owner, elements=None, element=element, keys=tuple(keys.items()))
    elif isinstance(owner, Unknown | Namespace) and (place := entry_of(target)) is not None:
        name, key = place
        if isinstance(value, Tensor) and value.sure is Sure.CERTAIN and value.optional is None:
            frame.entries.setdefault(name, {})[key] = at_most(value, Sure.LIKELY)
        else:
            frame.entries.get(name, {}).pop(key, None)


def store_attribute(frame: Frame, target: ast.Attribute, value: Value, form: str) -> None:
    """Emits the store of an attribute, and remembers it if the class is known."""
    owner = frame.evaluate(target.value)
    forget_outcomes(frame, target)
    argument = Argument(0, "value", value.words())
    if isinstance(owner, Tensor | Module):
        frame.emit(
            EventKind.STORE,
            target,
            form=form,
            attribute=target.attr,
            operand=owner,
            arguments=(argument,),
            sure=owner.sure,
        )
    if isinstance(owner, ClassOrObject) and owner.info is not None:
        frame.program.attributes.store(owner.info, target.attr, value)
    key = narrowing.attribute_key(target)
    if key is not None and not isinstance(value, Unknown | Namespace):
        frame.names[key] = replace(value, literal=None) if isinstance(value, Constant) else value
    elif key is not None:
        frame.names.pop(key, None)
