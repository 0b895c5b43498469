"""Context managers: after a break inside a ``with``, can Dynamo go on?"""

from __future__ import annotations

import ast

from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import Class, Function, Instance
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import walk

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


def enter(frame: Frame, item: ast.withitem, body: list[ast.stmt]) -> bool:
    """Emits that a context manager is entered.  Returns whether Dynamo restores it after a break."""
    node = item.context_expr
    value = frame.evaluate(node)
    callee = value.name if isinstance(value, Instance) else _dotted_name(frame, node)
    form = "made" if isinstance(node, ast.Call) else "held"
    if callee == "contextlib.ExitStack" and _enters_only_own(frame, item, body):
        return False
    if callee is not None:
        frame.emit(EventKind.ENTER, node, form=form, callee=callee, operand=value)
    return callee in (RESUMABLE_CONTEXTS if form == "made" else RESUMABLE_WHEN_HELD)


def _dotted_name(frame: Frame, node: ast.expr) -> str | None:
    return frame.index.dotted(node.func if isinstance(node, ast.Call) else node)


def _enters_only_own(frame: Frame, item: ast.withitem, body: list[ast.stmt]) -> bool:
    """Whether a stack of context managers is used for nothing but context managers of the program that it makes."""
    if not isinstance(item.optional_vars, ast.Name):
        return item.optional_vars is None
    name = item.optional_vars.id
    nodes = [node for statement in body for node in walk(statement)]
    calls = [n for n in nodes if isinstance(n, ast.Call) and _enters(n.func, name)]
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return len(uses) == len(calls) and all(len(n.args) == 1 and _makes_own(frame, n.args[0]) for n in calls)


def _enters(func: ast.expr, name: str) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "enter_context"
        and isinstance(func.value, ast.Name)
        and func.value.id == name
    )


def _makes_own(frame: Frame, node: ast.expr) -> bool:
    """Whether a context manager of the program is made here: a class, or a generator under ``contextmanager``."""
    with frame.muted():
        made = frame.evaluate(node.func) if isinstance(node, ast.Call) else None
    if isinstance(made, Class) and made.info is not None:
        return frame.program.project.method(made.info, "__enter__") is not None
    return isinstance(made, Function) and made.info is not None and _MANAGER in made.info.decorators


_MANAGER = "contextlib.contextmanager"
