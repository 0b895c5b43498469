"""Evaluates expressions over abstract values, emits the events in them, and binds values to targets."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.attributes import attribute_of, taken_by_data
from breakscan.check.interpreter.boolean_tests import bool_op, branch, compare, if_expression, operate, unary
from breakscan.check.interpreter.builtin_calls import emit_field, emit_percent
from breakscan.check.interpreter.calls import apply
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.parameters import compares_attribute
from breakscan.check.project.index import FunctionInfo
from breakscan.check.project.roots import PARTIAL
from breakscan.model.findings import Condition, ConditionKind, Place
from breakscan.rulebook.events import Argument, EventKind
from breakscan.rulebook.torch_facts.not_measured import RECURRENT_MODULES

# The first touch of a recurrent module: a function that reads one runs eager.
_TOUCHED = "<recurrent>"
"""A key of the names of a frame that no program can have."""


def touch(frame: Frame, node: ast.expr, value: av.Module) -> None:
    """Emits that a recurrent module is read, unless that has ended the graph already."""
    if frame.silent or _TOUCHED in frame.names:
        return
    kinds = [_kind(frame, one) for one in value.choices or (value,)]
    kind = next((one for one in kinds if one is not None), None)
    if kind is None:
        return
    sure = av.Sure.CERTAIN if None not in kinds else av.Sure.LIKELY
    frame.emit(EventKind.READ, node, callee=kind, operand=value, sure=min(sure, value.sure))
    frame.names[_TOUCHED] = av.CONSTANT


def _kind(frame: Frame, value: av.Value) -> str | None:
    """The class of torch that a recurrent module is an instance of."""
    if not isinstance(value, av.Module):
        return None
    names = frame.program.project.outside_bases(value.info) if value.info is not None else [value.name or ""]
    return next((name for name in names if name in RECURRENT_MODULES), None)


_GENERIC = frozenset("list dict set frozenset tuple".split())
_COMPUTED = (av.Tensor, av.TensorNumber, av.ArrayNumber)
_READS = frozenset({ast.Name, ast.Attribute, ast.Subscript})


def evaluate(frame: Frame, node: ast.expr | None) -> av.Value:
    """The value of an expression.  Emits what happens while it is computed."""
    if node is None:
        return av.NONE
    value = _HANDLERS.get(type(node), _other)(frame, node)
    if value.__class__ is av.Module and node.__class__ in _READS:
        touch(frame, node, value)
    if not frame.saw_tensor and isinstance(value, _COMPUTED) and value.sure is not av.Sure.POSSIBLE:
        frame.saw_tensor = True
    if frame.notes is not None and not frame.silent:
        frame.notes.value(node, value)
    return value


def _other(frame: Frame, node: ast.expr) -> av.Value:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(frame, child)
    return av.UNKNOWN


def _attribute(frame: Frame, node: ast.Attribute) -> av.Value:
    narrowed = frame.names.get(narrowing.attribute_key(node) or "")
    value = narrowed if narrowed is not None else attribute_of(frame, node, evaluate(frame, node.value), node.attr)
    if narrowed is None and frame.seen is not None:
        value = frame.as_seen(node, value)
    return value


def _binary(frame: Frame, node: ast.BinOp) -> av.Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        emit_percent(frame, node, node.left.value, right)
    return operate(frame, node, left, node.op, right)


def _formatted(frame: Frame, node: ast.FormattedValue) -> av.Value:
    emit_field(frame, node, evaluate(frame, node.value))
    if node.format_spec is not None:
        evaluate(frame, node.format_spec)
    return av.CONSTANT


def _joined(frame: Frame, node: ast.JoinedStr) -> av.Value:
    _other(frame, node)
    return av.CONSTANT


def _display(frame: Frame, node: ast.Tuple | ast.List | ast.Set) -> av.Value:
    elements: list[av.Value] = []
    exact = not isinstance(node, ast.Set)
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = evaluate(frame, element.value)
            known = av.elements_of(value)
            if known is not None:
                elements += known
            else:
                exact = False
                elements.append(av.item_of(value))
        else:
            elements.append(evaluate(frame, element))
    return av.container(elements) if exact or not elements else av.container_of(av.join_all(elements))


def _dict(frame: Frame, node: ast.Dict) -> av.Value:
    keys: dict[str, av.Value] = {}
    values: list[av.Value] = []
    for key, item in zip(node.keys, node.values, strict=True):
        value = evaluate(frame, item)
        if key is None:
            keys.update(av.keys_of(value))
            continue
        evaluate(frame, key)
        values.append(value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            keys[key.value] = value
    element = av.any_of(tuple(values)) if values else None
    return av.Container(element=element, keys=tuple(keys.items()), mapping=True)


def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> av.Value:
    saved = dict(frame.names)
    # A break in a list comprehension splits; a generator or a dict under construction cannot be resumed.
    resumable = isinstance(node, ast.ListComp) and not _holds_its_place(frame, node.generators[0].iter)
    place = Place.PLAIN if resumable else Place.LOOP
    try:
        for i, generator in enumerate(node.generators):
            iterable = evaluate(frame, generator.iter)
            if isinstance(iterable, av.Tensor):
                frame.emit(EventKind.ITERATE, generator.iter, operand=iterable)
            bind(frame, generator.target, av.iterated(iterable))
            with frame.within(place if i or generator.ifs else Place.PLAIN):
                for condition in generator.ifs:
                    if narrowing.known_truth(frame, condition) is None:
                        branch(frame, condition, "filter")
                    narrowing.narrow(frame, condition, True)
        with frame.within(place):
            if isinstance(node, ast.DictComp):
                evaluate(frame, node.key)
                return av.container_of(evaluate(frame, node.value), mapping=True)
            return av.container_of(evaluate(frame, node.elt))
    finally:
        frame.restore(saved)


def _holds_its_place(frame: Frame, over: ast.expr) -> bool:
    """True if Dynamo cannot rebuild the iterator over a value: ``enumerate``, and those of dicts (torch 2.13)."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        return over.func.attr in ("items", "keys", "values") and not over.args
    return isinstance(over, ast.Call) and frame.index.dotted(over.func) == "enumerate"


def _named(frame: Frame, node: ast.NamedExpr) -> av.Value:
    value = evaluate(frame, node.value)
    bind(frame, node.target, value)
    return value


def _call(frame: Frame, node: ast.Call) -> av.Value:
    callee = evaluate(frame, node.func)
    if isinstance(node.func, ast.Subscript) and not isinstance(node.func.slice, ast.Constant):
        made = evaluate(frame, node.func.value)
        name = made.name if isinstance(made, av.Namespace) else ""
        if isinstance(made, av.Class) or name in _GENERIC or name.startswith("collections."):
            frame.emit(EventKind.CALL, node, callee="types.GenericAlias", sure=made.sure)
            callee = made
    positional: list[av.Value] = []
    spread = False
    for argument in node.args:
        value = evaluate(frame, argument.value if isinstance(argument, ast.Starred) else argument)
        if not isinstance(argument, ast.Starred):
            positional.append(value)
            continue
        if _hands_on(frame, argument.value, callee):
            frame.saw_tensor = True
        if isinstance(value, av.Container) and value.elements:
            positional += value.elements
        else:
            spread = True
            positional.append(av.item_of(value))
    named = {keyword.arg: evaluate(frame, keyword.value) for keyword in node.keywords if keyword.arg}
    for keyword in node.keywords:
        if keyword.arg is None:
            named.update(av.keys_of(evaluate(frame, keyword.value)))
            spread = True
    result = apply(frame, node, callee, av.Arguments(positional, named, spread))
    frame.forget_outcomes(node)
    return result


def _hands_on(frame: Frame, given: ast.expr, callee: av.Value) -> bool:
    """True if a function hands its ``*args`` on to something that it is given or holds: what comes may be tensors."""
    vararg = frame.function.node.args.vararg if frame.function is not None else None
    unknown = isinstance(callee, av.Unknown | av.Function) or getattr(callee, "bound", None) is not None
    return vararg is not None and isinstance(given, ast.Name) and given.id == vararg.arg and unknown


def function_value(frame: Frame, info: FunctionInfo) -> av.Value:
    """A function that is defined inside the frame."""
    frame.program.closures.append(frame.names)
    made = av.Function(info=info, closure=frame.names)
    if frame.function is not None and not frame.silent:
        frame.program.inner[info] = frame.function, made
    return made


# Subscripts, read and written, and assignments to names, attributes, subscripts and patterns of them.


def subscript(frame: Frame, node: ast.Subscript, owner: av.Value, form: str) -> av.Value:
    """Emits what indexing does; ``form`` is load, store or augment.  Returns what is read."""
    indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [_as_mask(index, _index_value(frame, node, index, owner), owner) for index in indices]
    tensors = [value for value in values if isinstance(value, av.Tensor)]
    for index, value in zip(indices, values, strict=True):
        if isinstance(value, av.Tensor):
            _emit_index(frame, node, owner, index, value, form)
        elif (isinstance(value, av.TensorNumber | av.DataSize) and _is_list(owner)) or (
            isinstance(value, av.DrawnNumber)
            and not (isinstance(owner, av.Container) and (owner.mapping or owner.keys))
        ):
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=value.sure)
    if isinstance(owner, av.Tensor):
        return _part(frame, owner, indices, values)
    if isinstance(owner, av.Unknown | av.Namespace) and any(v.zero_dim is not True for v in tensors):
        return av.tensor(av.Sure.LIKELY)  # a list takes only what is a single number
    if isinstance(owner, av.Container) and len(indices) == 1:
        return _element(owner, indices[0])
    if isinstance(owner, av.Module) and owner.element is not None:
        return owner.element
    if isinstance(owner, av.Unknown | av.Namespace) and frame.entries and (place := entry_of(node)) is not None:
        name, key = place
        return frame.entries.get(name, {}).get(key, av.UNKNOWN)
    if isinstance(owner, av.DataSize) and len(indices) == 1:
        is_first = isinstance(indices[0], ast.Constant) and indices[0].value == 0
        return owner if is_first else av.SIZE  # only the first is known to depend on data
    return av.item_of(owner) if isinstance(owner, av.Size) else av.UNKNOWN


def _is_list(owner: av.Value) -> bool:
    """True if only Python numbers can be indices; a tensor also takes those that are not known yet."""
    is_torchs = isinstance(owner, av.Module) and owner.info is None
    return is_torchs or (isinstance(owner, av.Container) and not owner.keys and not owner.mapping)


def entry_of(node: ast.Subscript) -> tuple[str, str] | None:
    """The name and the key of ``state["step"]``."""
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return (node.value.id, key) if isinstance(node.value, ast.Name) and isinstance(key, str) else None


def _emit_index(
    frame: Frame, node: ast.Subscript, owner: av.Value, index: ast.expr, value: av.Tensor, form: str
) -> None:
    if isinstance(owner, av.Tensor | av.Unknown | av.Namespace):
        sure = owner.sure if isinstance(owner, av.Tensor) else av.Sure.LIKELY
        conditions = [owner.optional] if isinstance(owner, av.Tensor) and owner.optional is not None else []
        if value.zero_dim and not value.intermediate and value.dtype != "bool":
            # Dynamo knows an integer on the CPU that it is handed.
            conditions.append(Condition(ConditionKind.TEST, f"{ast.unparse(index)}.is_cpu", False))
            sure = av.Sure.POSSIBLE if value.optional else sure
        with frame.under(*conditions):
            frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=sure)
    elif isinstance(owner, av.Size) or _is_list(owner):
        # Only a single number can be an index here.
        # A container of things unknown is still a container.
        sure = av.Sure.CERTAIN if isinstance(av.item_of(owner), av.Unknown) else owner.sure
        frame.emit(EventKind.INDEX, node, form=form, operand=replace(value, zero_dim=True), sure=sure)


def _part(frame: Frame, owner: av.Tensor, indices: list[ast.expr], values: list[av.Value]) -> av.Value:
    """The value of a subscript of a tensor."""
    make = av.array if owner.array else av.tensor
    if not indices:
        return make(owner.sure, owner.dtype, owner.zero_dim, owner.one_dim)
    single = owner.one_dim and len(indices) == 1
    sliced = single and isinstance(indices[0], ast.Slice)
    index = values[0]
    is_number = index.zero_dim is True if isinstance(index, av.Tensor) else isinstance(index, av.PythonValue)
    number = single and not sliced and is_number
    selected = single and isinstance(index, av.Tensor) and (index.one_dim or (index.dtype == "bool" and not number))
    part = make(owner.sure, owner.dtype, True if number else None, sliced or selected)
    if taken_by_data(frame, owner, indices, values):
        part = replace(part, by_data=True)
    return replace(part, optional=av.doubt(owner)) if av.doubt(owner) else part


def _as_mask(index: ast.expr, value: av.Value, owner: av.Value) -> av.Value:
    """The value of an index.  An unknown value that compares an attribute or is inverted, or whose name ends
    in "mask", is assumed to be a mask."""
    unknown = isinstance(value, av.Unknown) or (isinstance(value, av.Namespace) and value.name.startswith("?."))
    if unknown and isinstance(owner, av.Tensor | av.Namespace) and compares_attribute(index):
        return av.tensor(av.Sure.LIKELY, "bool")
    if isinstance(owner, av.Tensor) and {type(av.literal_of(part)) for part in av.elements_of(value) or ()} == {bool}:
        return av.tensor(dtype="bool")
    name = _last_name(index)
    if not name.lower().endswith(("mask", "masks")):
        return value
    if isinstance(value, av.Tensor) and value.dtype is None:
        return replace(av.at_most(value, av.Sure.LIKELY), dtype="bool")
    if unknown and isinstance(owner, av.Tensor | av.Namespace):
        condition = value.optional or Condition(ConditionKind.MASK, name)
        return replace(av.tensor(av.Sure.LIKELY, "bool"), optional=condition)
    return value


def _last_name(index: ast.expr) -> str:
    """``mask`` of ``self.mask`` and of ``state["mask"]``."""
    if isinstance(index, ast.Subscript) and isinstance(index.slice, ast.Constant):
        return str(index.slice.value)
    return index.id if isinstance(index, ast.Name) else index.attr if isinstance(index, ast.Attribute) else ""


def _index_value(frame: Frame, node: ast.Subscript, index: ast.expr, owner: av.Value) -> av.Value:
    if not isinstance(index, ast.Slice):
        return frame.evaluate(index)
    for bound in (index.lower, index.upper, index.step):
        value = frame.evaluate(bound)
        if isinstance(value, av.Tensor | av.DrawnNumber):
            likely = owner.sure if isinstance(owner, av.Tensor) else av.Sure.LIKELY  # a list asks for a number, too
            sure = likely if isinstance(value, av.Tensor) else value.sure
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=sure)
    return av.CONSTANT


def _element(owner: av.Container, index: ast.expr) -> av.Value:
    if isinstance(index, ast.Slice):
        return replace(owner, elements=None, element=av.item_of(owner), keys=())
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        key: object = -index.operand.value if isinstance(index.operand.value, int) else None
    else:
        key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int) and owner.elements is not None and -len(owner.elements) <= key < len(owner.elements):
        return owner.elements[key]
    return dict(owner.keys).get(key, owner.element or av.UNKNOWN) if isinstance(key, str) else av.item_of(owner)


def bind(frame: Frame, target: ast.expr, value: av.Value) -> None:
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
        bind(frame, target.value, av.container_of(av.item_of(value)))
    elif isinstance(target, ast.Attribute):
        store_attribute(frame, target, value, "assign")
    elif isinstance(target, ast.Subscript):
        owner = frame.evaluate(target.value)
        subscript(frame, target, owner, "store")
        frame.forget_outcomes(target)
        _grow(frame, target, owner, value)


def _unpack(frame: Frame, targets: Sequence[ast.expr], value: av.Value) -> None:
    elements: Sequence[av.Value] | None = av.elements_of(value)
    if isinstance(value, av.DataSize):
        elements = [value, *[av.SIZE] * (len(targets) - 1)]
    if elements is not None and len(elements) == len(targets) and not any(isinstance(t, ast.Starred) for t in targets):
        for target, element in zip(targets, elements, strict=True):
            bind(frame, target, element)
    else:
        for target in targets:
            bind(frame, target, value if isinstance(target, ast.Starred) else av.item_of(value))


def _grow(frame: Frame, target: ast.Subscript, owner: av.Value, value: av.Value) -> None:
    """Returns a container after something was stored in it under a key."""
    if isinstance(owner, av.Container) and isinstance(target.value, ast.Name):
        keys = dict(owner.keys)
        if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            keys[target.slice.value] = value
        element = av.any_of((owner.element, value)) if owner.element is not None else value
        frame.names[target.value.id] = replace(owner, elements=None, element=element, keys=tuple(keys.items()))
    elif isinstance(owner, av.Unknown | av.Namespace) and (place := entry_of(target)) is not None:
        name, key = place
        if isinstance(value, av.Tensor) and value.sure is av.Sure.CERTAIN and value.optional is None:
            frame.entries.setdefault(name, {})[key] = av.at_most(value, av.Sure.LIKELY)
        else:
            frame.entries.get(name, {}).pop(key, None)


def _untraced_owner(owner: av.Value) -> str | None:
    """The class of a function whose attributes Dynamo does not set: a partial, or a function from outside."""
    if not isinstance(owner, av.Function) or owner.info is None:
        return PARTIAL if isinstance(owner, av.Instance) and owner.name == PARTIAL else None
    is_plain = owner.closure is None and owner.bound is None and not {*owner.info.decorators} - {"staticmethod"}
    return "types.FunctionType" if is_plain else None


def store_attribute(frame: Frame, target: ast.Attribute, value: av.Value, form: str) -> None:
    """Emits the store of an attribute, and remembers it if the class is known."""
    owner = frame.evaluate(target.value)
    frame.forget_outcomes(target)
    argument = Argument(0, "value", value.words())
    if target.attr == "requires_grad" and isinstance(owner, av.Unknown | av.Namespace):
        owner = av.Tensor(av.Sure.LIKELY)  # hardly anything else has it
    callee = _untraced_owner(owner)
    if isinstance(owner, av.Tensor | av.Module) or callee is not None:
        frame.emit(
            EventKind.STORE,
            target,
            form=form,
            callee=callee,
            attribute=target.attr,
            operand=owner,
            arguments=(argument,),
            sure=owner.sure,
        )
    if isinstance(owner, av.ClassOrObject) and owner.info is not None:
        # `self.norm = vit.norm` is what that holds, whatever methods of the name there are.
        is_part = isinstance(value, av.Namespace) and value.name.startswith("?.")
        frame.program.attributes.store(owner.info, target.attr, av.UNKNOWN if is_part else value)
    key = narrowing.attribute_key(target)
    if key is not None and not isinstance(value, av.Unknown | av.Namespace):
        frame.names[key] = replace(value, literal=None) if isinstance(value, av.Constant) else value
    elif key is not None:
        frame.names.pop(key, None)


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], av.Value]] = {
    ast.Constant: lambda frame, node: av.literal(node.value),
    ast.Name: lambda frame, node: frame.look_up(node.id),
    ast.Attribute: _attribute,
    ast.Subscript: lambda frame, node: subscript(frame, node, evaluate(frame, node.value), "load"),
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: unary,
    ast.BoolOp: bool_op,
    ast.Compare: compare,
    ast.IfExp: if_expression,
    ast.FormattedValue: _formatted,
    ast.JoinedStr: _joined,
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), _display),
    ast.Dict: _dict,
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), _comprehension),
    ast.Lambda: lambda frame, node: function_value(frame, frame.program.lambda_info(node, frame)),
    ast.NamedExpr: _named,
    ast.Starred: lambda frame, node: av.item_of(evaluate(frame, node.value)),
}
