"""Evaluates arithmetic, tests, comparisons and boolean operators: wherever Python asks a value whether it is true."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from breakscan.check.interpreter import narrowing
from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.builtin_calls import call_own_method
from breakscan.check.interpreter.frame import Frame
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import EventKind

_NAMES = {"Mult": "mul", "Div": "truediv", "USub": "neg"}
"""The names of operators in the module ``operator``, where they differ from those of their nodes by more than case."""


def operate(frame: Frame, node: ast.AST, left: av.Value, op: ast.operator, right: av.Value) -> av.Value:
    """The value of an arithmetic operation.  Emits one on a number that was drawn: only a tensor can be computed from
    it, and nothing by dividing it."""
    compute_with_pointers(frame, node, left, right)
    drawn = left if isinstance(left, av.DrawnNumber) else right
    if isinstance(drawn, av.DrawnNumber):
        of_tensor = isinstance(right if drawn is left else left, av.Tensor | av.Unknown | av.Namespace)
        if not of_tensor or (drawn is left and isinstance(op, ast.Div) and isinstance(right, av.Tensor)):
            return emit_operation(frame, node, op, drawn)
    made = binary(left, right, op)
    if isinstance(made, av.Unknown) and isinstance(op, ast.Sub | ast.Div | ast.Pow | ast.MatMult) and not frame.silent:
        sides = getattr(node, "left", None), getattr(node, "right", None)
        if any(isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice) for side in sides):
            return av.tensor(av.Sure.LIKELY)  # ``ends[1:] - ends[:-1]``: no list or text is computed with so
    return made


def compute_with_pointers(frame: Frame, node: ast.AST, *values: av.Value) -> None:
    """Emits ``data_ptr()`` where something is computed from its result or compared with it: that ends the graph."""
    for value in values:
        if isinstance(value, av.Pointer):
            frame.emit(EventKind.CALL, node, callee="torch.Tensor.data_ptr", operand=value, sure=value.sure)
            return


def emit_operation(frame: Frame, node: ast.AST, op: ast.operator | ast.unaryop, operand: av.Value) -> av.Value:
    """Emits an operation on a number that was drawn.  The graph ends there, and the result is computed in Python."""
    name = type(op).__name__
    callee = f"operator.{_NAMES.get(name, name.lower())}"
    frame.emit(EventKind.CALL, node, callee=callee, operand=operand, sure=operand.sure)
    return av.CONSTANT


def binary(left: av.Value, right: av.Value, op: ast.operator) -> av.Value:
    if isinstance(left, av.Tensor) or isinstance(right, av.Tensor):
        typed = any(v.dtype for v in (left, right) if isinstance(v, av.Tensor))
        if isinstance(op, ast.BitAnd | ast.BitOr) and not typed:  # hardly any other tensors are combined so
            return av.at_most(_of_tensors(left, right, "bool"), av.Sure.LIKELY)
        return _of_tensors(left, right, _promoted(left, right, op))
    for side in (left, right):
        if isinstance(op, ast.Mult) and isinstance(side, av.Container):
            return av.container_of(av.item_of(side))
    if isinstance(op, ast.Add) and isinstance(left, av.Container) and isinstance(right, av.Container):
        if left.elements is not None and right.elements is not None:
            return av.container([*left.elements, *right.elements])
        return av.container_of(av.join(av.item_of(left), av.item_of(right)))
    if isinstance(op, ast.Mod) and isinstance(left, av.Constant):
        return av.CONSTANT
    if (number := of_numbers(left, right)) is not None:
        return number
    if isinstance(left, av.Unknown | av.Namespace) or isinstance(right, av.Unknown | av.Namespace):
        return av.UNKNOWN
    return av.SIZE if isinstance(left, av.Size) or isinstance(right, av.Size) else av.CONSTANT


def _of_tensors(left: av.Value, right: av.Value, dtype: str | None, *, compared: bool = False) -> av.Tensor:
    """The result of an operation or comparison of which one side at least is a tensor."""
    tensors = [v for v in (left, right) if isinstance(v, av.Tensor)]
    # A Python number leaves the shape of the other as it is.
    keeps_shape = len(tensors) == 2 or any(isinstance(v, av.PythonValue) for v in (left, right))
    zero_dim = keeps_shape and all(v.zero_dim for v in tensors)
    one_dim = keeps_shape and not compared and all(v.one_dim for v in tensors)
    make = av.array if all(v.array for v in tensors) else av.tensor
    made = make(max(v.sure for v in tensors), dtype, zero_dim or None, one_dim)
    # Tensors without a first size that depends on data could broadcast to it.
    is_by_data = any(v.by_data for v in tensors) and all(v.by_data or v.zero_dim for v in tensors)
    made = replace(made, by_data=True) if keeps_shape and is_by_data else made
    return replace(made, optional=av.doubt(*tensors)) if all(av.doubt(v) for v in tensors) else made


def of_numbers(left: av.Value, right: av.Value) -> av.Value | None:
    """The result of an operation or comparison where one side is a number that is known only when the graph runs."""
    for value in (left, right):
        if isinstance(value, av.TensorNumber):
            return av.TensorNumber(value.sure)
    for value in (left, right):
        if isinstance(value, av.DrawnNumber):
            return value
    if isinstance(left, av.PythonValue) and isinstance(right, av.PythonValue):
        late = [value for kind in (av.DataSize, av.ArrayNumber) for value in (left, right) if isinstance(value, kind)]
        return next(iter(late), None)
    return None


def _promoted(left: av.Value, right: av.Value, op: ast.operator) -> str | None:
    if isinstance(op, ast.Div):
        return "float"
    dtypes = [v.dtype for v in (left, right) if isinstance(v, av.Tensor)]
    if "float" in dtypes:
        return "float"
    if len(dtypes) == 2 and dtypes[0] == dtypes[1]:
        return dtypes[0]
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and "bool" in dtypes:
        return "bool"
    return "int" if len(dtypes) == 2 and None not in dtypes else None


def branch(
    frame: Frame, test: ast.expr, form: str, statement: ast.stmt | None = None, *, compound_only: bool = False
) -> list[ast.AST]:
    """Evaluates a test whose truth is not known before, and returns the operands that are known only in a run. ``and``,
    ``or`` and ``not`` are separate jumps: each operand branches by itself, and under the outcome of those before it.
    One event speaks for all: at the operand where there is one, else at the whole test, from the keyword of
    ``statement`` on where it starts below it. With ``compound_only`` a jump that is the last of the test and not
    negated only counts where there is no other, in a form of its own: Dynamo makes a check of it."""
    found: list[_Branch] = []
    _branch_operands(frame, test, found, last=True, negated=False)
    decided_late: list[ast.AST] = [jump.node for jump in found]
    if compound_only:
        compound = [jump for jump in found if not jump.plain]
        form = form if compound else "assert-plain"
        found = compound or found
    if not found:
        return decided_late
    surest = max(found, key=lambda b: (isinstance(b.value, av.Tensor), not b.conditions, b.value.sure))
    node: ast.expr | ast.stmt = surest.node
    if len({(b.node.lineno, b.node.col_offset) for b in found}) > 1:
        node = test
    if statement is not None and statement.lineno < node.lineno:
        node = ast.copy_location(ast.Pass(), statement)
        node.end_lineno, node.end_col_offset = test.end_lineno, test.end_col_offset
    given = surest.value.optional
    sure = av.Sure.CERTAIN
    if given is not None and given.kind is ConditionKind.GIVEN and given.subject == ast.unparse(surest.node):
        sure = av.Sure.POSSIBLE  # `if mask:` for an optional argument: with several elements, Python raises there, too
    with frame.under(*surest.conditions):
        frame.emit(EventKind.BRANCH, node, form=form, operand=surest.value, sure=sure)
    return decided_late


DECIDED_LATE = (av.Tensor, av.TensorNumber, av.DrawnNumber, av.DataSize)
"""Values that are known only when the graph runs."""


@dataclass(frozen=True, slots=True)
class _Branch:
    """A jump of a test.  ``plain`` means that it is the last of the test and not negated."""

    node: ast.expr | ast.stmt
    value: av.Value
    conditions: tuple[Condition, ...]
    plain: bool


def _branch_operands(frame: Frame, test: ast.expr, found: list[_Branch], *, last: bool, negated: bool) -> None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _branch_operands(frame, test.operand, found, last=last, negated=not negated)
    elif isinstance(test, ast.BoolOp):

        def visit(operand: ast.expr, is_last: bool) -> None:
            _branch_operands(frame, operand, found, last=last and is_last, negated=negated)

        bool_operands(frame, test, visit)
    else:
        is_chain = isinstance(test, ast.Compare) and len(test.ops) > 1
        results = compare_all(frame, cast(ast.Compare, test)) if is_chain else [tested(frame.evaluate(test))]
        for i, value in enumerate(results, 1):
            if isinstance(value, DECIDED_LATE):
                plain = last and not negated and i == len(results)
                found.append(_Branch(test, value, tuple(frame.conditions), plain))


def tested(value: av.Value) -> av.Value:
    """A value as a test of it sees it."""
    return av.array(value.sure, zero_dim=True) if isinstance(value, av.ArrayNumber) else value


def emit_branch(frame: Frame, node: ast.expr, value: av.Value, form: str) -> None:
    """Emits a branch at a node, if Dynamo does not know its value while it traces."""
    value = tested(value)
    if isinstance(value, DECIDED_LATE):
        frame.emit(EventKind.BRANCH, node, form=form, operand=value)


def bool_operands(frame: Frame, node: ast.BoolOp, visit: Callable[[ast.expr, bool], object]) -> None:
    """Visits the operands in order, each with whether it is the last, under what those before it imply."""
    saved = dict(frame.names)
    kept = len(frame.conditions)
    for operand in node.values:
        known = narrowing.known_truth(frame, operand)
        if known is None:
            visit(operand, operand is node.values[-1])
        elif known is isinstance(node.op, ast.Or):
            break
        outcome = isinstance(node.op, ast.And)
        for condition in narrowing.narrow(frame, operand, outcome) or narrowing.rare_equality(operand, outcome):
            if condition not in frame.conditions:
                frame.conditions.append(condition)
    del frame.conditions[kept:]
    # Names bound by `:=` stay; narrowing by the operands ends with them.
    frame.names.update(saved)


def unary(frame: Frame, node: ast.UnaryOp) -> av.Value:
    """The value of ``not x``, ``-x``, ``+x`` or ``~x``."""
    value = frame.evaluate(node.operand)
    if isinstance(node.op, ast.Not):
        if isinstance(value, av.Tensor | av.TensorNumber | av.DataSize):
            frame.emit(EventKind.BRANCH, node, form="not", operand=value)
        if isinstance(value, av.DrawnNumber):
            return value
        return av.TensorNumber(value.sure) if isinstance(value, av.Tensor | av.TensorNumber) else av.CONSTANT
    if isinstance(value, av.Tensor):
        return replace(value, parameter=False, intermediate=True)
    if isinstance(value, av.Constant):
        return replace(value, literal=_signed(node.op, value.literal), truth=None)
    if isinstance(value, av.DrawnNumber):
        return emit_operation(frame, node, node.op, value)
    return value if isinstance(value, av.PythonValue) else av.UNKNOWN


def _signed(op: ast.unaryop, literal: str | int | float | None) -> int | float | None:
    """The result of a sign or ``~`` for a known number; None if that is not known."""
    if literal is None or isinstance(literal, str):
        return None
    if isinstance(op, ast.Invert):
        return ~int(literal) if isinstance(literal, int) else None
    return -literal if isinstance(op, ast.USub) else +literal


def bool_op(frame: Frame, node: ast.BoolOp) -> av.Value:
    """The value of ``and`` or ``or``, where it is used as a value."""
    results: list[av.Value] = []
    form = "and" if isinstance(node.op, ast.And) else "or"

    def visit(operand: ast.expr, last: bool) -> None:
        value = frame.evaluate(operand)
        if not last:
            emit_branch(frame, operand, value, form)
        results.append(value)

    bool_operands(frame, node, visit)
    if not results:
        return av.CONSTANT
    last = results[-1]
    if isinstance(node.op, ast.And) and [value for value in results if isinstance(value, av.Tensor)] == [last]:
        # Else it is what came before, which no tensor decides.
        flags = " and ".join(ast.unparse(operand) for operand in node.values[:-1])
        return replace(last, optional=last.optional or Condition(ConditionKind.TEST, flags))
    return av.join_all(results)


def compare(frame: Frame, node: ast.Compare) -> av.Value:
    results = compare_all(frame, node)
    for result in results[:-1]:
        emit_branch(frame, node, result, "and")
    return av.join_all(results)


def compare_all(frame: Frame, node: ast.Compare) -> list[av.Value]:
    """The result of each comparison of a chain."""
    values = [frame.evaluate(side) for side in (node.left, *node.comparators)]
    return [_compare_pair(frame, node, op, values[i], values[i + 1]) for i, op in enumerate(node.ops)]


def _compare_pair(frame: Frame, node: ast.Compare, op: ast.cmpop, left: av.Value, right: av.Value) -> av.Value:
    if isinstance(op, ast.Is | ast.IsNot):
        return av.CONSTANT
    if isinstance(op, ast.In | ast.NotIn):
        return _membership(frame, node, left, right)
    left, right = tested(left), tested(right)
    if isinstance(left, av.Tensor) or isinstance(right, av.Tensor):
        is_none = isinstance(left, av.NoneValue) or isinstance(right, av.NoneValue)
        return av.CONSTANT if is_none else _of_tensors(left, right, "bool", compared=True)
    if isinstance(op, ast.Eq | ast.NotEq):
        result = call_own_method(frame, node, left, "__eq__", right)
        if result is not None:
            return result
    if isinstance(left, av.Container) or isinstance(right, av.Container):
        _compare_elements(frame, node, op, left, right)
    compute_with_pointers(frame, node, left, right)
    known = of_numbers(left, right)
    if known is not None:
        return known
    is_open = isinstance(left, av.Unknown | av.Namespace) or isinstance(right, av.Unknown | av.Namespace)
    return av.UNKNOWN if is_open else av.CONSTANT


def _compare_elements(frame: Frame, node: ast.Compare, op: ast.cmpop, left: av.Value, right: av.Value) -> None:
    """Emits the comparison of two lists or tuples if it asks a tensor in them whether it is true."""
    sides = [av.elements_of(side) for side in (left, right) if not isinstance(side, av.Size)]
    longest = max((len(side) for side in sides if side is not None), default=0)
    if not longest or any(side is None or len(side) != longest for side in sides):
        return
    displays = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Tuple | ast.List)]
    if len({type(side) for side in displays}) > 1:
        return  # they are not equal, whatever is in them
    for i in range(longest):
        pair = [side[i] for side in sides if side is not None]
        tensors = [value for value in pair if isinstance(value, av.Tensor)]
        if tensors and not any(isinstance(value, av.NoneValue) for value in pair):
            kind = "list" if isinstance(displays[0] if displays else None, ast.List) else "tuple"
            # Earlier elements may differ, and so may the length of a shape.
            known = av.Sure.CERTAIN if not i and len(sides) > 1 else av.Sure.LIKELY
            sure = min(known, *(value.sure for value in tensors))
            compared = replace(av.container(tensors), sure=sure, optional=av.doubt(*tensors))
            name = narrowing.COMPARE[type(op)].__name__
            frame.emit(EventKind.CALL, node, callee=f"{kind}.__{name}__", operand=compared)
        literals = [av.literal_of(value) for value in pair]
        if tensors or (None not in literals and len(set(literals)) > 1):
            return


def _membership(frame: Frame, node: ast.Compare, left: av.Value, right: av.Value) -> av.Value:
    if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        return av.CONSTANT  # a tensor holds no strings: the other side is a dictionary
    holds = isinstance(right, av.Container)
    is_late = isinstance(left, av.DrawnNumber) or (holds and isinstance(left, av.TensorNumber | av.DataSize))
    if is_late and not (isinstance(right, av.Container) and right.mapping):
        frame.emit(EventKind.BRANCH, node, form="in", operand=left, sure=left.sure)
        return av.CONSTANT
    is_either = isinstance(right, av.Tensor) and getattr(right.optional, "kind", None) is ConditionKind.TENSOR
    if is_either and not isinstance(av.literal_of(left), int | float):
        return av.CONSTANT  # of a tensor or a mapping, the mapping is asked
    subject = right if isinstance(right, av.Tensor) else left
    compared = isinstance(right, av.Tensor) or (isinstance(right, av.Container) and not right.keys)
    if isinstance(subject, av.Tensor) and subject.array:
        return av.array(subject.sure, "bool", zero_dim=True)
    if isinstance(subject, av.Tensor) and compared:
        frame.emit(EventKind.BRANCH, node, form="in", operand=subject)
        return av.TensorNumber(subject.sure)
    return av.CONSTANT


def if_expression(frame: Frame, node: ast.IfExp) -> av.Value:
    """The value of ``a if test else b``."""
    known = narrowing.known_truth(frame, node.test)
    if known is not None:
        return frame.evaluate(node.body if known else node.orelse)
    branch(frame, node.test, "ternary")
    sides = []
    conditions = []
    for side, outcome in ((node.body, True), (node.orelse, False)):
        saved = dict(frame.names)
        narrowed = narrowing.narrow(frame, node.test, outcome)
        conditions.append(narrowed[0] if narrowed else av.has_outcome(node.test, outcome))
        with frame.under(*narrowed):
            sides.append(frame.evaluate(side))
        frame.restore(saved)
    merged = av.join(*sides)
    if isinstance(merged, av.Tensor) and merged.optional is None:
        for i, value in enumerate(sides):
            if isinstance(value, av.Constant | av.Size):
                return replace(merged, optional=conditions[1 - i])
    return merged
