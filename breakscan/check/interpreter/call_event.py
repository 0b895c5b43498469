"""The events of calls, also of what Dynamo does not trace by its own rules, and of entering context managers."""

import ast
from dataclasses import replace

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.attributes import in_autograd_function
from breakscan.check.interpreter.frame import Frame
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import Argument, EventKind
from breakscan.source.walking import is_name, stored_names


def emit_call(
    frame: Frame, node: ast.Call, callee: str, arguments: av.Arguments, sure: av.Sure, untraced: str = ""
) -> None:
    """Emits a call, with its argument 0 as the operand; ``untraced`` is the form of one that Dynamo does not trace."""
    form = untraced
    if untraced and any(frame.program.rules.names(kind, callee) for kind in (EventKind.CALL, EventKind.ENTER)):
        form = ""
    if frame.wants(EventKind.CALL, callee, SIDE_EFFECT) and any(map(_has_side_effect, arguments.values())):
        form = SIDE_EFFECT
    if not form and in_autograd_function(frame):
        form = "autograd-function"
    if not frame.wants(EventKind.CALL, callee, form):
        return
    operand = arguments.get(0) or av.UNKNOWN
    tensors = [v.sure for v in arguments.values() if isinstance(v, av.Tensor)]
    if len(tensors) > 1 or (tensors and not isinstance(operand, av.Tensor)):
        # Rules may demand any argument to be a tensor: the least sure of them speaks for all.
        operand = replace(operand, sure=min(tensors))
    elif isinstance(operand, av.Container):
        operand = _as_its_tensors(operand)
    frame.emit(
        EventKind.CALL,
        node,
        form=form,
        callee=callee,
        operand=operand,
        arguments=_patterns(frame, node, callee, arguments),
        sure=av.Sure.LIKELY if arguments.spread else sure,
    )


SIDE_EFFECT = "side-effect"
_FILL = frozenset({"append", "extend", "insert", "setdefault"})


def _has_side_effect(value: av.Value) -> bool:
    """True for a function that sets attributes or fills containers that it did not make, or names around it."""
    nodes = value.info.own_nodes if isinstance(value, av.Function) and value.info is not None else ()
    made = {name for node in nodes if isinstance(node, ast.Assign) for name in stored_names(node)}
    for node in nodes:
        held = node.func if isinstance(node, ast.Call) else node
        fills = held is not node and getattr(held, "attr", "") in _FILL
        if isinstance(held, ast.Attribute) and (fills or isinstance(held.ctx, ast.Store)):
            while isinstance(held, ast.Attribute | ast.Subscript):
                held = held.value
            if isinstance(held, ast.Name) and held.id not in made:
                return True
    return any(isinstance(node, ast.Nonlocal | ast.Global) for node in nodes)


def _as_its_tensors(operand: av.Container) -> av.Container:
    """A container of tensors, no surer than that there is one in it."""
    parts: tuple[av.Value | None, ...] = operand.elements or (operand.element, *(part for _, part in operand.keys))
    tensors = [part for part in parts if isinstance(part, av.Tensor)]
    if not tensors:
        return operand
    surest = max(tensors, key=lambda part: (av.doubt(part) is None, part.sure))
    return replace(operand, sure=min(operand.sure, surest.sure), optional=operand.optional or av.doubt(surest))


def _patterns(frame: Frame, node: ast.Call, callee: str, arguments: av.Arguments) -> tuple[Argument, ...]:
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


def _tensor_if(value: av.Value) -> Condition | None:
    """The condition under which an argument is, or holds, a tensor or an object, where it may be something else."""
    if isinstance(value, av.Instance):
        return value.optional
    parts = (value,) if isinstance(value, av.Tensor) else av.elements_of(value) or ()
    doubts = [av.doubt(part) for part in parts if isinstance(part, av.Tensor)]
    return doubts[0] if doubts and None not in doubts else None


def _true_if(value: av.Value, node: ast.expr | None) -> Condition | None:
    """The condition under which an argument is True, where that is not known."""
    if isinstance(value, av.Constant) and value.optional and value.optional.kind is ConditionKind.FLAG:
        return replace(value.optional, outcome=True)
    unknown = isinstance(value, av.Unknown | av.Namespace) or (isinstance(value, av.Constant) and value.literal is None)
    return Condition(ConditionKind.TEST, ast.unparse(node)) if unknown and node is not None else None


SKIPPED = "skipped"


def emit_skippable(
    frame: Frame, node: ast.Call, dotted: str, arguments: av.Arguments, sure: av.Sure = av.Sure.CERTAIN
) -> None:
    """Emits a call by its dotted name."""
    if frame.api.skipped.by_rule(dotted):
        emit_call(frame, node, dotted, arguments, sure, SKIPPED)
    elif frame.api.skipped.in_practice(dotted):
        emit_call(frame, node, dotted, arguments, min(sure, av.Sure.LIKELY), SKIPPED)
    else:
        emit_call(frame, node, dotted, arguments, sure)


# Context managers that Dynamo restores after a break; with any other, a break makes the whole frame run eager.
RESUMABLE_CONTEXTS = frozenset(
    "torch.no_grad torch.enable_grad torch.set_grad_enabled torch.inference_mode torch.autograd.grad_mode.no_grad "
    "torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast torch.profiler.profile "
    "torch.profiler.record_function torch.autograd.profiler.record_function contextlib.nullcontext "
    "torch.autograd.graph.disable_saved_tensors_hooks torch.nn.attention.sdpa_kernel".split()
)
RESUMABLE_WHEN_HELD = frozenset({"torch.autocast", "torch.profiler.record_function", "contextlib.nullcontext"})
"""Those of them that also are when the object was made before the ``with``."""


def enter(frame: Frame, item: ast.withitem) -> tuple[av.Value, bool]:
    """Emits that a context manager is entered.  Returns what ``as`` binds, and if Dynamo restores it after a break."""
    node = item.context_expr
    value = frame.evaluate(node)
    callee = value.name if isinstance(value, av.Instance) else _dotted_name(frame, node)
    form = "made" if _is_made(frame, node) else "held"
    if callee is not None:
        frame.emit(EventKind.ENTER, node, form=form, callee=callee, operand=value)
    resumable = RESUMABLE_CONTEXTS if form == "made" else RESUMABLE_WHEN_HELD
    return value if callee == _STACK else av.UNKNOWN, callee in resumable


def _is_made(frame: Frame, node: ast.expr) -> bool:
    """True for a call, and for a name that the function binds to the results of calls alone."""
    if frame.function is None or not isinstance(node, ast.Name):
        return isinstance(node, ast.Call)
    assigned = (n for n in frame.function.own_nodes if isinstance(n, ast.Assign))
    values = [n.value for n in assigned if any(is_name(target, node.id) for target in n.targets)]
    sides = [side for v in values for side in ((v.body, v.orelse) if isinstance(v, ast.IfExp) else (v,))]
    return bool(sides) and node.id not in frame.parameters and all(isinstance(side, ast.Call) for side in sides)


_STACK = "contextlib.ExitStack"
ENTER_ON_STACK = f"{_STACK}.enter_context"
_NOT_ON_A_STACK = ("torch.", "contextlib.nullcontext", "contextlib.redirect_std", "warnings.catch_warnings")


def enter_on_stack(frame: Frame, node: ast.Call, entered: av.Value) -> None:
    """Emits that a stack of context managers enters one which Dynamo enters in a ``with`` alone: one of torch or of
    contextlib, or an object that the function did not make."""
    argument = node.args[0] if node.args else None
    if isinstance(argument, ast.Call):
        untraced = (_dotted_name(frame, argument) or "").startswith(_NOT_ON_A_STACK)
    else:
        made = isinstance(argument, ast.Name) and argument.id in frame.names and argument.id not in frame.parameters
        untraced = isinstance(entered, av.Instance) and not made
    if untraced:
        frame.emit(EventKind.ENTER, node, form="stack", callee=_STACK, operand=entered)


def _dotted_name(frame: Frame, node: ast.expr) -> str | None:
    return frame.index.dotted(node.func if isinstance(node, ast.Call) else node)
