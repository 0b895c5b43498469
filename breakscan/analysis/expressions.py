"""Evaluates expressions over abstract values, and emits the events in them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from breakscan.analysis import truth
from breakscan.analysis.attributes import attribute_of
from breakscan.analysis.calls import Arguments, apply
from breakscan.analysis.index import FunctionInfo
from breakscan.analysis.values import (
    CONSTANT,
    NONE,
    SHAPE,
    UNKNOWN,
    Sort,
    Sure,
    Value,
    container,
    container_of,
    join,
    join_all,
    number,
    tensor,
)
from breakscan.findings import Place
from breakscan.rulebook.events import Argument, EventKind

if TYPE_CHECKING:
    from breakscan.analysis.frame import Frame


def evaluate(frame: Frame, node: ast.expr | None) -> Value:
    """The value of an expression.  Emits what happens while it is computed."""
    if node is None:
        return NONE
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(frame, node)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(frame, child)
    return UNKNOWN


def branch(
    frame: Frame, test: ast.expr, form: str, statement: ast.stmt | None = None, *, compound_only: bool = False
) -> None:
    """Evaluates a test for its truth, as ``if``, ``while``, ``assert`` and their kin do.

    ``and``, ``or`` and ``not`` in a test are jumps of their own: each operand branches by itself, and each
    but the first only under the outcome of those before it.  One event speaks for all of them: at the operand
    where there is one, else at the whole test, from the keyword of ``statement`` on where it starts below it.
    With ``compound_only`` a jump that is the last of the test and not negated is none: Dynamo makes a check of it.
    """
    found: list[_Branch] = []
    _branch_operands(frame, test, found, last=True, negated=False)
    if compound_only:
        found = [jump for jump in found if not jump.plain]
    if not found:
        return
    surest = max(found, key=lambda b: (b.value.is_tensor, not b.conditions, b.value.sure))
    node: ast.expr | ast.stmt = surest.node
    if len({(b.node.lineno, b.node.col_offset) for b in found}) > 1:
        node = test
    if statement is not None and statement.lineno < node.lineno:
        node = ast.copy_location(ast.Pass(), statement)
        node.end_lineno, node.end_col_offset = test.end_lineno, test.end_col_offset
    with frame.under(*surest.conditions):
        frame.emit(EventKind.BRANCH, node, form=form, operand=surest.value)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A jump of a test.  ``plain`` tells that it is the last of the test and not negated."""

    node: ast.expr | ast.stmt
    value: Value
    conditions: tuple[str, ...]
    plain: bool


def _branch_operands(frame: Frame, test: ast.expr, found: list[_Branch], *, last: bool, negated: bool) -> None:
    if truth.known_truth(frame, test) is not None:
        return
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _branch_operands(frame, test.operand, found, last=last, negated=not negated)
    elif isinstance(test, ast.BoolOp):

        def visit(operand: ast.expr, is_last: bool) -> None:
            _branch_operands(frame, operand, found, last=last and is_last, negated=negated)

        _bool_operands(frame, test, visit)
    elif isinstance(test, ast.Compare) and len(test.ops) > 1:
        results = _compare_all(frame, test)
        for i, value in enumerate(results):
            plain = last and not negated and i == len(results) - 1
            if value.sort in (Sort.TENSOR, Sort.NUMBER):
                found.append(_Branch(test, value, tuple(frame.conditions), plain))
    else:
        value = evaluate(frame, test)
        if value.sort in (Sort.TENSOR, Sort.NUMBER):
            found.append(_Branch(test, value, tuple(frame.conditions), last and not negated))


def _emit_branch(frame: Frame, node: ast.expr, value: Value, form: str) -> None:
    if value.sort in (Sort.TENSOR, Sort.NUMBER):
        frame.emit(EventKind.BRANCH, node, form=form, operand=value)


def _bool_operands(frame: Frame, node: ast.BoolOp, visit: Callable[[ast.expr, bool], object]) -> None:
    """Visits the operands in order, each with whether it is the last, under what those before it imply."""
    saved = dict(frame.names)
    kept = len(frame.conditions)
    for operand in node.values:
        known = truth.known_truth(frame, operand)
        if known is None:
            visit(operand, operand is node.values[-1])
        elif known is isinstance(node.op, ast.Or):
            break
        for condition in truth.narrow(frame, operand, isinstance(node.op, ast.And)):
            if condition not in frame.conditions:
                frame.conditions.append(condition)
    del frame.conditions[kept:]
    # What `:=` bound stays; what the operands narrowed does not hold behind them.
    for name, value in saved.items():
        frame.names[name] = value


def _constant(frame: Frame, node: ast.Constant) -> Value:
    return NONE if node.value is None else CONSTANT


def _name(frame: Frame, node: ast.Name) -> Value:
    return frame.look_up(node.id)


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    narrowed = frame.names.get(truth.attribute_key(node) or "")
    if narrowed is not None:
        return narrowed
    dotted = frame.index.dotted(node)
    owner = evaluate(frame, node.value)
    return attribute_of(frame, node, owner, node.attr, dotted)


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    owner = evaluate(frame, node.value)
    return subscript(frame, node, owner, "load")


def subscript(frame: Frame, node: ast.Subscript, owner: Value, form: str) -> Value:
    """Emits what indexing does; ``form`` is load, store or augment.  Returns what is read."""
    indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [_index_value(frame, node, index, owner) for index in indices]
    if owner.sort in (Sort.TENSOR, Sort.UNKNOWN, Sort.NAMESPACE):
        for value in values:
            if value.is_tensor:
                sure = owner.sure if owner.is_tensor else Sure.LIKELY
                frame.emit(EventKind.INDEX, node, form=form, operand=value, sure=sure)
    if owner.is_tensor:
        return replace(tensor(owner.sure, owner.dtype), intermediate=True)
    if owner.sort in (Sort.UNKNOWN, Sort.NAMESPACE) and any(v.is_tensor and v.dtype == "bool" for v in values):
        return tensor(Sure.LIKELY)
    if owner.sort is Sort.CONTAINER and len(indices) == 1:
        return _element(owner, indices[0])
    if owner.sort is Sort.MODULE and owner.element is not None:
        return owner.element
    return owner.item() if owner.sort is Sort.SHAPE else UNKNOWN


def _index_value(frame: Frame, node: ast.Subscript, index: ast.expr, owner: Value) -> Value:
    if not isinstance(index, ast.Slice):
        return evaluate(frame, index)
    for bound in (index.lower, index.upper, index.step):
        value = evaluate(frame, bound)
        if bound is not None and value.is_tensor:
            frame.emit(EventKind.INDEX, node, form="slice", operand=value, sure=owner.sure)
    return CONSTANT


def _element(owner: Value, index: ast.expr) -> Value:
    if isinstance(index, ast.Slice):
        return replace(owner, elements=None, element=owner.item(), keys=())
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        key: object = -index.operand.value if isinstance(index.operand.value, int) else None
    else:
        key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int) and owner.elements is not None and -len(owner.elements) <= key < len(owner.elements):
        return owner.elements[key]
    if isinstance(key, str):
        return dict(owner.keys).get(key, owner.element or UNKNOWN)
    return owner.item()


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        argument = Argument(0, None, right.words())
        frame.emit(EventKind.CALL, node, callee="str.__mod__", operand=right, arguments=(argument,))
    return binary(left, right, node.op)


def binary(left: Value, right: Value, op: ast.operator) -> Value:
    """The value of an arithmetic operation."""
    tensors = [v for v in (left, right) if v.is_tensor]
    if tensors:
        dtype = _promoted(left, right, op)
        both = len(tensors) == 2
        zero = all(v.zero_dim for v in tensors) if both or _scalar(left, right) else None
        return tensor(max(v.sure for v in tensors), dtype, zero or None)
    if isinstance(op, ast.Add) and left.sort is Sort.CONTAINER and right.sort is Sort.CONTAINER:
        if left.elements is not None and right.elements is not None:
            return container([*left.elements, *right.elements])
        return container_of(join(left.item(), right.item()))
    if isinstance(op, ast.Mult) and Sort.CONTAINER in (left.sort, right.sort):
        many = left if left.sort is Sort.CONTAINER else right
        return container_of(many.item())
    if isinstance(op, ast.Mod) and left.sort is Sort.CONSTANT:
        return CONSTANT
    for value in (left, right):
        if value.sort is Sort.NUMBER:
            return number(value.sure)
    if Sort.UNKNOWN in (left.sort, right.sort) or Sort.NAMESPACE in (left.sort, right.sort):
        return UNKNOWN
    return SHAPE if Sort.SHAPE in (left.sort, right.sort) else CONSTANT


def _scalar(left: Value, right: Value) -> bool:
    return any(v.sort in (Sort.CONSTANT, Sort.NUMBER, Sort.SHAPE) for v in (left, right))


def _promoted(left: Value, right: Value, op: ast.operator) -> str | None:
    if isinstance(op, ast.Div):
        return "float"
    dtypes = [v.dtype for v in (left, right) if v.is_tensor]
    if "float" in dtypes:
        return "float"
    if len(dtypes) == 2 and dtypes[0] == dtypes[1]:
        return dtypes[0]
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and "bool" in dtypes:
        return "bool"
    return "int" if len(dtypes) == 2 and None not in dtypes else None


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        if value.is_tensor:
            frame.emit(EventKind.BRANCH, node, form="not", operand=value)
        return number(value.sure) if value.sort in (Sort.TENSOR, Sort.NUMBER) else CONSTANT
    if value.is_tensor:
        return replace(value, parameter=False, intermediate=True)
    return value if value.sort in (Sort.NUMBER, Sort.SHAPE, Sort.CONSTANT) else UNKNOWN


def _bool_op(frame: Frame, node: ast.BoolOp) -> Value:
    results: list[Value] = []
    form = "and" if isinstance(node.op, ast.And) else "or"

    def visit(operand: ast.expr, last: bool) -> None:
        value = evaluate(frame, operand)
        if not last:
            _emit_branch(frame, operand, value, form)
        results.append(value)

    _bool_operands(frame, node, visit)
    if not results:
        return CONSTANT
    last = results[-1]
    if isinstance(node.op, ast.And) and last.is_tensor and not any(value.is_tensor for value in results[:-1]):
        # Else it is what came before, which no tensor decides.
        flags = " and ".join(ast.unparse(operand) for operand in node.values[:-1])
        return replace(last, optional=last.optional or f"`{flags}`")
    return join_all(results)


def _compare(frame: Frame, node: ast.Compare) -> Value:
    results = _compare_all(frame, node)
    for result in results[:-1]:
        _emit_branch(frame, node, result, "and")
    return join_all(results)


def _compare_all(frame: Frame, node: ast.Compare) -> list[Value]:
    """The result of each comparison of a chain."""
    values = [evaluate(frame, side) for side in (node.left, *node.comparators)]
    return [_compare_pair(frame, node, op, values[i], values[i + 1]) for i, op in enumerate(node.ops)]


def _compare_pair(frame: Frame, node: ast.Compare, op: ast.cmpop, left: Value, right: Value) -> Value:
    if isinstance(op, ast.Is | ast.IsNot):
        return CONSTANT
    if isinstance(op, ast.In | ast.NotIn):
        subject = right if right.is_tensor else left
        compared = right.is_tensor or (right.sort is Sort.CONTAINER and not right.keys)
        if subject.is_tensor and compared:
            frame.emit(EventKind.BRANCH, node, form="in", operand=subject)
            return number(subject.sure)
        return CONSTANT
    tensors = [v for v in (left, right) if v.is_tensor]
    if tensors:
        if Sort.NONE in (left.sort, right.sort):
            return CONSTANT
        zero = True if all(v.zero_dim for v in tensors) and (len(tensors) == 2 or _scalar(left, right)) else None
        return tensor(max(v.sure for v in tensors), "bool", zero)
    for value in (left, right):
        if value.sort is Sort.NUMBER:
            return number(value.sure)
    unknown = {Sort.UNKNOWN, Sort.NAMESPACE}
    return UNKNOWN if unknown & {left.sort, right.sort} else CONSTANT


def _if_expression(frame: Frame, node: ast.IfExp) -> Value:
    known = truth.known_truth(frame, node.test)
    if known is not None:
        return evaluate(frame, node.body if known else node.orelse)
    branch(frame, node.test, "ternary")
    sides = []
    for side, outcome in ((node.body, True), (node.orelse, False)):
        saved = dict(frame.names)
        with frame.under(*truth.narrow(frame, node.test, outcome)):
            sides.append(evaluate(frame, side))
        frame.names.clear()
        frame.names.update(saved)
    return join(*sides)


def _formatted(frame: Frame, node: ast.FormattedValue) -> Value:
    value = evaluate(frame, node.value)
    if value.is_tensor:
        argument = Argument(0, None, value.words())
        # `!r` and `!s` call the builtin; a plain field is put off until the graph has run.
        callee = {ord("r"): "repr", ord("s"): "str", ord("a"): "ascii"}.get(node.conversion, "str.__format__")
        frame.emit(EventKind.CALL, node.value, callee=callee, operand=value, arguments=(argument,))
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
            if value.elements is not None:
                elements += value.elements
            else:
                exact = False
                elements.append(value.item())
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
            keys.update(value.keys)
            continue
        evaluate(frame, key)
        values.append(value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            keys[key.value] = value
    element = join_all(values) if values else None
    return Value(Sort.CONTAINER, element=element, keys=tuple(keys.items()))


def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    saved = dict(frame.names)
    # A break in a list comprehension splits; a generator or a dict under construction cannot be resumed.
    place = Place.PLAIN if isinstance(node, ast.ListComp) else Place.LOOP
    try:
        for i, generator in enumerate(node.generators):
            iterable = evaluate(frame, generator.iter)
            if iterable.is_tensor:
                frame.emit(EventKind.ITERATE, generator.iter, operand=iterable)
            bind(frame, generator.target, iterable.item())
            with frame.within(place if i or generator.ifs else Place.PLAIN):
                for condition in generator.ifs:
                    branch(frame, condition, "filter")
                    truth.narrow(frame, condition, True)
        with frame.within(place):
            if isinstance(node, ast.DictComp):
                evaluate(frame, node.key)
                return container_of(evaluate(frame, node.value))
            return container_of(evaluate(frame, node.elt))
    finally:
        frame.names.clear()
        frame.names.update(saved)


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    info = frame.program.lambda_info(node, frame.function)
    return Value(Sort.FUNCTION, function=info, closure=frame.names)


def _named(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    bind(frame, node.target, value)
    return value


def _starred(frame: Frame, node: ast.Starred) -> Value:
    return evaluate(frame, node.value).item()


def _wrapped(frame: Frame, node: ast.Await | ast.YieldFrom | ast.Yield) -> Value:
    evaluate(frame, node.value)
    return UNKNOWN


def _call(frame: Frame, node: ast.Call) -> Value:
    callee = evaluate(frame, node.func)
    positional: list[Value] = []
    spread = False
    for argument in node.args:
        value = evaluate(frame, argument)
        if isinstance(argument, ast.Starred):
            spread = True
        positional.append(value)
    named = {keyword.arg: evaluate(frame, keyword.value) for keyword in node.keywords if keyword.arg}
    for keyword in node.keywords:
        if keyword.arg is None:
            named.update(evaluate(frame, keyword.value).keys)
            spread = True
    return apply(frame, node, callee, Arguments(positional, named, spread))


def bind(frame: Frame, target: ast.expr, value: Value) -> None:
    """Assigns to a target: a name, an attribute, a subscript, or a pattern of them."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, container_of(value.item()))
    elif isinstance(target, ast.Attribute):
        store_attribute(frame, target, value, "assign")
    elif isinstance(target, ast.Subscript):
        owner = evaluate(frame, target.value)
        subscript(frame, target, owner, "store")
        _grow(frame, target, owner, value)


def _unpack(frame: Frame, targets: Sequence[ast.expr], value: Value) -> None:
    elements = value.elements
    if elements is not None and len(elements) == len(targets) and not any(isinstance(t, ast.Starred) for t in targets):
        for target, element in zip(targets, elements, strict=True):
            bind(frame, target, element)
    else:
        for target in targets:
            bind(frame, target, value if isinstance(target, ast.Starred) else value.item())


def _grow(frame: Frame, target: ast.Subscript, owner: Value, value: Value) -> None:
    """A container to which something was stored under a key."""
    if owner.sort is Sort.CONTAINER and isinstance(target.value, ast.Name):
        keys = dict(owner.keys)
        if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            keys[target.slice.value] = value
        element = join(owner.element, value) if owner.element is not None else value
        frame.names[target.value.id] = replace(owner, elements=None, element=element, keys=tuple(keys.items()))


def store_attribute(frame: Frame, target: ast.Attribute, value: Value, form: str) -> None:
    """Emits the store of an attribute, and remembers it where the class is known."""
    owner = evaluate(frame, target.value)
    argument = Argument(0, "value", value.words())
    if owner.sort in (Sort.TENSOR, Sort.MODULE):
        frame.emit(
            EventKind.STORE,
            target,
            form=form,
            attribute=target.attr,
            operand=owner,
            arguments=(argument,),
            sure=owner.sure,
        )
    if owner.owner is not None:
        frame.program.store(owner.owner, target.attr, value)
    key = truth.attribute_key(target)
    if key is not None and value.sort not in (Sort.UNKNOWN, Sort.NAMESPACE):
        frame.names[key] = value
    elif key is not None:
        frame.names.pop(key, None)


def function_value(frame: Frame, info: FunctionInfo) -> Value:
    """A function that is defined inside the frame."""
    return Value(Sort.FUNCTION, function=info, closure=frame.names)


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _if_expression,
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
