"""Methods of unknown values that only modules, losses and optimizers have."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import Sure
from breakscan.rulebook.events import EventKind

_OPTIMIZER = "torch.optim.Optimizer"
_HOOK = ("register_", "_hook")


def emit_guessed(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> None:
    """Emits what a method of an unknown value very likely is."""
    if name.startswith(_HOOK[0]) and name.endswith(_HOOK[1]):
        callee = f"torch.nn.Module.{name}"
    elif name == "backward":
        callee = "torch.Tensor.backward"
    elif "optim" in _last_name(node):
        callee = f"{_OPTIMIZER}.{name}"
    elif name == "load_state_dict":
        callee = f"torch.nn.Module.{name}"
    else:
        return
    frame.saw_tensor = True
    emit_call(frame, node, callee, arguments, Sure.LIKELY)


def of_optimizer(frame: Frame, owner: str, name: str) -> str:
    """The dotted name of a method of a class; that of the base class where no rule names the class itself."""
    dotted = f"{owner}.{name}"
    if owner.rpartition(".")[0] != "torch.optim":
        return dotted
    frame.saw_tensor = True
    return dotted if frame.program.rules.names(EventKind.CALL, dotted) else f"{_OPTIMIZER}.{name}"


def _last_name(node: ast.Call) -> str:
    """``optimizer`` of ``self.optimizer.step()`` and of ``optimizer[i].step()``."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Subscript):
        owner = owner.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return name.lower()
