"""The event of a call, also of a call of what Dynamo does not trace by its own rules."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.check.interpreter.attributes import in_autograd_function
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import (
    UNKNOWN,
    Arguments,
    Constant,
    Container,
    Instance,
    Namespace,
    Sure,
    Tensor,
    Unknown,
    Value,
    doubt,
    elements_of,
)
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import Argument, EventKind
from breakscan.rulebook.torch_facts.table import Skipped

# The event of a call.


def emit_call(frame: Frame, node: ast.Call, callee: str, arguments: Arguments, sure: Sure, untraced: str = "") -> None:
    """Emits a call, with its argument 0 as the operand.  ``untraced`` is the form of a call that Dynamo was measured
    not to trace."""
    form = untraced
    if untraced and any(frame.program.rules.names(kind, callee) for kind in (EventKind.CALL, EventKind.ENTER)):
        form = ""
    if not form and in_autograd_function(frame):
        form = "autograd-function"
    if not frame.wants(EventKind.CALL, callee, form):
        return
    operand = arguments.get(0) or UNKNOWN
    tensors = [v.sure for v in arguments.values() if isinstance(v, Tensor)]
    if len(tensors) > 1 or (tensors and not isinstance(operand, Tensor)):
        # Rules may demand any argument to be a tensor: the least sure of them speaks for all.
        operand = replace(operand, sure=min(tensors))
    elif isinstance(operand, Container):
        operand = _as_its_tensors(operand)
    frame.emit(
        EventKind.CALL,
        node,
        form=form,
        callee=callee,
        operand=operand,
        arguments=_patterns(frame, node, callee, arguments),
        sure=Sure.LIKELY if arguments.spread else sure,
    )


def _as_its_tensors(operand: Container) -> Container:
    """A container of tensors, no surer than that there is one in it."""
    parts: tuple[Value | None, ...] = operand.elements or (operand.element, *(part for _, part in operand.keys))
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if not tensors:
        return operand
    surest = max(tensors, key=lambda part: (doubt(part) is None, part.sure))
    return replace(operand, sure=min(operand.sure, surest.sure), optional=operand.optional or doubt(surest))


def _patterns(frame: Frame, node: ast.Call, callee: str, arguments: Arguments) -> tuple[Argument, ...]:
    patterns = arguments.patterns()
    values = arguments.values()
    if any(map(_tensor_if, values)):
        patterns = tuple(replace(p, tensor_if=_tensor_if(value)) for p, value in zip(patterns, values, strict=True))
    if callee not in frame.program.rules.asking_for_truth:
        return patterns
    receivers = len(arguments.positional) - len(node.args)
    nodes: dict[int | str | None, ast.expr] = {i + receivers: given for i, given in enumerate(node.args)}
    nodes |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    return tuple(
        replace(pattern, true_if=_true_if(value, nodes.get(pattern.index if pattern.name is None else pattern.name)))
        for pattern, value in zip(patterns, values, strict=True)
    )


def _tensor_if(value: Value) -> Condition | None:
    """The condition under which an argument is a tensor or an object, or holds a tensor, where it may be something
    else."""
    if isinstance(value, Instance):
        return value.optional
    parts = (value,) if isinstance(value, Tensor) else elements_of(value) or ()
    doubts = [doubt(part) for part in parts if isinstance(part, Tensor)]
    return doubts[0] if doubts and None not in doubts else None


def _true_if(value: Value, node: ast.expr | None) -> Condition | None:
    """The condition under which an argument is True, where that is not known."""
    if isinstance(value, Constant) and value.optional and value.optional.kind is ConditionKind.FLAG:
        return replace(value.optional, outcome=True)
    unknown = isinstance(value, Unknown | Namespace) or (isinstance(value, Constant) and value.literal is None)
    return Condition(ConditionKind.TEST, ast.unparse(node)) if unknown and node is not None else None


SKIPPED = "skipped"


def emit_skippable(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments, sure: Sure = Sure.CERTAIN) -> None:
    """Emits a call by its dotted name."""
    known = _how_sure(frame.api.skipped, dotted)
    if known is None:
        emit_call(frame, node, dotted, arguments, sure)
    else:
        emit_call(frame, node, dotted, arguments, min(sure, known), SKIPPED)


def is_skipped(frame: Frame, dotted: str) -> bool:
    """True if the rules of Dynamo say that a name is not traced."""
    return frame.api.skipped.by_rule(dotted)


def _how_sure(skipped: Skipped, dotted: str) -> Sure | None:
    """The confidence that a name is not traced."""
    if skipped.by_rule(dotted):
        return Sure.CERTAIN
    return Sure.LIKELY if skipped.in_practice(dotted) else None


def emit_iteration(frame: Frame, node: ast.expr, iterable: Instance) -> None:
    """Emits that an object of a class is iterated over that Dynamo does not trace."""
    name = f"{iterable.name}.__iter__"
    if iterable.info is None and not isinstance(node, ast.Call) and frame.api.skipped.by_rule(name):
        frame.emit(EventKind.CALL, node, form=SKIPPED, callee=name, operand=iterable, sure=iterable.sure)
