"""Runs assignments, to names, attributes, subscripts and patterns of them, and evaluates subscripts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter.attributes import part_of_size, parts_of_size, taken_by_data
from breakscan.check.interpreter.boolean_tests import operate
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.parameters import annotated_value, compares_attribute, used_as_tensor
from breakscan.check.interpreter.values import (
    CONSTANT,
    UNKNOWN,
    ClassOrObject,
    Constant,
    Container,
    DataSize,
    DrawnNumber,
    Module,
    Namespace,
    PythonValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Unknown,
    Value,
    any_of,
    array,
    at_most,
    container_of,
    doubt,
    elements_of,
    item_of,
    literal_of,
    tensor,
)
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import Argument, EventKind

# Evaluates subscripts, read and written.


def subscript(frame: Frame, node: ast.Subscript, owner: Value, form: str) -> Value:
    """Emits what indexing does; ``form`` is load, store or augment.  Returns what is read."""
    indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [_as_mask(index, _index_value(frame, node, index, owner), owner) for index in indices]
    tensors = [value for value in values if isinstance(value, Tensor)]
    for index, value in zip(indices, values, strict=True):
        if isinstance(value, Tensor):
            _emit_index(frame, node, owner, index, value, form)
        elif (isinstance(value, TensorNumber | DataSize) and _is_list(owner)) or (
            isinstance(value, DrawnNumber) and not (isinstance(owner, Container) and (owner.mapping or owner.keys))
        ):
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=value.sure)
    if isinstance(owner, Tensor):
        return _part(frame, owner, indices, values)
    if isinstance(owner, Unknown | Namespace) and any(v.zero_dim is not True for v in tensors):
        return tensor(Sure.LIKELY)  # a list takes only what is a single number
    if isinstance(owner, Container) and len(indices) == 1:
        return _element(owner, indices[0])
    if isinstance(owner, Module) and owner.element is not None:
        return owner.element
    if isinstance(owner, Unknown | Namespace) and frame.entries and (place := entry_of(node)) is not None:
        name, key = place
        return frame.entries.get(name, {}).get(key, UNKNOWN)
    if isinstance(owner, DataSize) and len(indices) == 1:
        return part_of_size(owner, indices[0])
    return item_of(owner) if isinstance(owner, Size) else UNKNOWN


def _is_list(owner: Value) -> bool:
    """True if only Python numbers can be indices; a tensor also takes those that are not known yet."""
    return isinstance(owner, Module) or (isinstance(owner, Container) and not owner.keys and not owner.mapping)


def entry_of(node: ast.Subscript) -> tuple[str, str] | None:
    """The name and the key of ``state["step"]``."""
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return (node.value.id, key) if isinstance(node.value, ast.Name) and isinstance(key, str) else None


def _emit_index(frame: Frame, node: ast.Subscript, owner: Value, index: ast.expr, value: Tensor, form: str) -> None:
    if isinstance(owner, Tensor | Unknown | Namespace):
        sure = owner.sure if isinstance(owner, Tensor) else Sure.LIKELY
        conditions = [owner.optional] if isinstance(owner, Tensor) and owner.optional is not None else []
        if value.zero_dim and not value.intermediate and value.dtype != "bool":
            # Dynamo knows an integer on the CPU that it is handed.
            conditions.append(Condition(ConditionKind.TEST, f"{ast.unparse(index)}.is_cpu", False))
            sure = Sure.POSSIBLE if value.optional else sure
        with frame.under(*conditions):
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=sure)
    elif isinstance(owner, Size) or _is_list(owner):
        # Only a single number can be an index here.
        # A container of things unknown is still a container.
        sure = Sure.CERTAIN if isinstance(item_of(owner), Unknown) else owner.sure
        frame.emit(EventKind.INDEX, node, form=form, operand=replace(value, zero_dim=True), sure=sure)


def _part(frame: Frame, owner: Tensor, indices: list[ast.expr], values: list[Value]) -> Value:
    """The value of a subscript of a tensor."""
    single = owner.one_dim and len(indices) == 1
    sliced = single and isinstance(indices[0], ast.Slice)
    number = single and not sliced and _is_number(values[0])
    make = array if owner.array else tensor
    if not indices:
        return make(owner.sure, owner.dtype, owner.zero_dim, owner.one_dim)
    index = values[0]
    selected = single and isinstance(index, Tensor) and (index.one_dim or (index.dtype == "bool" and not number))
    part = make(owner.sure, owner.dtype, True if number else None, sliced or selected)
    if taken_by_data(frame, owner, indices, values):
        part = replace(part, by_data=True)
    return replace(part, optional=doubt(owner)) if doubt(owner) else part


def _is_number(value: Value) -> bool:
    return value.zero_dim is True if isinstance(value, Tensor) else isinstance(value, PythonValue)


def _as_mask(index: ast.expr, value: Value, owner: Value) -> Value:
    """The value of an index.  An unknown value that compares an attribute or is inverted, or whose name ends
    in "mask", is assumed to be a mask."""
    unknown = isinstance(value, Unknown) or (isinstance(value, Namespace) and value.name.startswith("?."))
    if unknown and isinstance(owner, Tensor | Namespace) and compares_attribute(index):
        return tensor(Sure.LIKELY, "bool")
    if isinstance(owner, Tensor) and {type(literal_of(part)) for part in elements_of(value) or ()} == {bool}:
        return tensor(dtype="bool")
    name = _last_name(index)
    if not name.lower().endswith(("mask", "masks")):
        return value
    if isinstance(value, Tensor) and value.dtype is None:
        return replace(at_most(value, Sure.LIKELY), dtype="bool")
    if unknown and isinstance(owner, Tensor | Namespace):
        condition = value.optional or Condition(ConditionKind.MASK, name)
        return replace(tensor(Sure.LIKELY, "bool"), optional=condition)
    return value


def _last_name(index: ast.expr) -> str:
    """``mask`` of ``self.mask`` and of ``state["mask"]``."""
    if isinstance(index, ast.Subscript) and isinstance(index.slice, ast.Constant):
        return str(index.slice.value)
    return index.id if isinstance(index, ast.Name) else index.attr if isinstance(index, ast.Attribute) else ""


def _index_value(frame: Frame, node: ast.Subscript, index: ast.expr, owner: Value) -> Value:
    if not isinstance(index, ast.Slice):
        return frame.evaluate(index)
    for bound in (index.lower, index.upper, index.step):
        value = frame.evaluate(bound)
        if bound is not None and isinstance(value, Tensor):
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=owner.sure)
        elif isinstance(value, DrawnNumber):
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=value.sure)
    return CONSTANT


def _element(owner: Container, index: ast.expr) -> Value:
    if isinstance(index, ast.Slice):
        return replace(owner, elements=None, element=item_of(owner), keys=())
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        key: object = -index.operand.value if isinstance(index.operand.value, int) else None
    else:
        key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int) and owner.elements is not None and -len(owner.elements) <= key < len(owner.elements):
        return owner.elements[key]
    if isinstance(key, str):
        return dict(owner.keys).get(key, owner.element or UNKNOWN)
    return item_of(owner)


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
    """True if a function uses a name only as a tensor to which it binds what it does not know.  What the functions of
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
        frame.names[target.id] = operate(frame, node, old, node.op, value)
    elif isinstance(target, ast.Subscript):
        subscript(frame, target, frame.evaluate(target.value), "augment")
        frame.forget_outcomes(target)
    else:
        old = frame.evaluate(target)
        store_attribute(frame, target, operate(frame, node, old, node.op, value), _form_of_update(old, node))


def delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)
        else:
            frame.forget_outcomes(target)


def bind(frame: Frame, target: ast.expr, value: Value) -> None:
    """Assigns to a target: a name, an attribute, a subscript, or a pattern of them."""
    if isinstance(target, ast.Name):
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
        frame.forget_outcomes(target)
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
    frame.forget_outcomes(target)
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
