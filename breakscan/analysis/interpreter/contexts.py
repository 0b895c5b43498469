"""Context managers: after a break inside a ``with``, can Dynamo go on?"""

from __future__ import annotations

import ast

from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import Instance
from breakscan.rulebook.events import EventKind

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


def enter(frame: Frame, node: ast.expr) -> bool:
    """Emits that a context manager is entered.  Returns whether Dynamo restores it after a break."""
    value = frame.evaluate(node)
    callee = value.name if isinstance(value, Instance) else _dotted_name(frame, node)
    form = "made" if isinstance(node, ast.Call) else "held"
    if callee is not None:
        frame.emit(EventKind.ENTER, node, form=form, callee=callee, operand=value)
    return callee in (RESUMABLE_CONTEXTS if form == "made" else RESUMABLE_WHEN_HELD)


def _dotted_name(frame: Frame, node: ast.expr) -> str | None:
    return frame.index.dotted(node.func if isinstance(node, ast.Call) else node)
