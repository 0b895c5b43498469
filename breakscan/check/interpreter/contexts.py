"""Context managers: after a break inside a ``with``, can Dynamo go on?"""

from __future__ import annotations

import ast

from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import UNKNOWN, Instance, Value
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import is_name

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


def enter(frame: Frame, item: ast.withitem) -> tuple[Value, bool]:
    """Emits that a context manager is entered.  Returns what ``as`` binds, and whether Dynamo restores it after a
    break."""
    node = item.context_expr
    value = frame.evaluate(node)
    callee = value.name if isinstance(value, Instance) else _dotted_name(frame, node)
    form = "made" if _is_made(frame, node) else "held"
    if callee is not None:
        frame.emit(EventKind.ENTER, node, form=form, callee=callee, operand=value)
    return value if callee == _STACK else UNKNOWN, callee in (
        RESUMABLE_CONTEXTS if form == "made" else RESUMABLE_WHEN_HELD
    )


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


def enter_on_stack(frame: Frame, node: ast.Call, entered: Value) -> None:
    """Emits that a stack of context managers enters one which Dynamo enters in a ``with`` alone: one of torch or of
    contextlib, or an object that the function did not make."""
    argument = node.args[0] if node.args else None
    if isinstance(argument, ast.Call):
        untraced = (_dotted_name(frame, argument) or "").startswith(_NOT_ON_A_STACK)
    else:
        made = isinstance(argument, ast.Name) and argument.id in frame.names and argument.id not in frame.parameters
        untraced = isinstance(entered, Instance) and not made
    if untraced:
        frame.emit(EventKind.ENTER, node, form="stack", callee=_STACK, operand=entered)


def _dotted_name(frame: Frame, node: ast.expr) -> str | None:
    return frame.index.dotted(node.func if isinstance(node, ast.Call) else node)
