"""Calls of one compiled callable under different global states of torch, each of which is compiled separately."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscan.check.compile_uses.compiled import Compiled
from breakscan.check.compile_uses.uses import Found, Survey, Use
from breakscan.check.project.index import FunctionInfo
from breakscan.check.project.scopes import Scope
from breakscan.rulebook.events import EventKind

_GRAD = {
    "torch.no_grad": "no_grad",
    "torch.autograd.no_grad": "no_grad",
    "torch.inference_mode": "inference_mode",
    "torch.enable_grad": "grad",
}
_AUTOCAST = frozenset({"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_SWITCHES = {
    "torch.set_default_dtype": "the default dtype",
    "torch.set_default_device": "the default device",
    "torch.set_num_threads": "the number of threads",
    "torch.use_deterministic_algorithms": "deterministic mode",
    "torch.set_float32_matmul_precision": "the precision of matrix products",
}
_TRAINS = ("backward", "autograd", "optim")


def switched_state(survey: Survey) -> Iterator[Found]:
    """Calls under another grad mode or autocast than an earlier call, and settings changed between two calls."""
    for compiled in {use.compiled: None for use in survey.uses}:
        for scope, uses in _by_scope(survey.uses_of(compiled)).items():
            if not _wrapped_again(compiled):
                yield from _contexts(survey, scope, uses)
            yield from _switches(survey, scope, uses)


def _by_scope(uses: list[Use]) -> dict[Scope, list[Use]]:
    found: dict[Scope, list[Use]] = {}
    for use in uses:
        found.setdefault(use.step.scope, []).append(use)
    return found


def _wrapped_again(compiled: Compiled) -> bool:
    """Whether the name refers to a wrapper around the compiled function, made by a decorator above torch.compile."""
    target = compiled.target
    function = target.function if target else None
    return isinstance(function, ast.FunctionDef) and function.decorator_list[:1] not in ([], [compiled.node])


def _contexts(survey: Survey, scope: Scope, uses: list[Use]) -> Iterator[Found]:
    if _called_in_context(survey, scope.info):
        return
    trains = any(word in survey.text for word in _TRAINS)
    seen: list[tuple[str, bool]] = []
    for use in uses:
        state = _state(survey, use)
        if state is None or state in seen:
            continue
        grads = [grad for grad, autocast in seen if autocast == state[1]]
        if any(grad == state[0] for grad, _ in seen):
            yield Found(EventKind.SWITCH, use.call, use.step, "mixed-autocast", "autocast")
        # One version with gradients for training and one without for evaluation is intended.
        elif grads and (not trains or "grad" not in (state[0], *grads)):
            yield Found(EventKind.SWITCH, use.call, use.step, "mixed-grad", "grad mode")
        seen.append(state)


def _state(survey: Survey, use: Use) -> tuple[str, bool] | None:
    """Grad mode and autocast at a call, as far as its function sets them; None if a context manager is not known."""
    grad, autocast = "grad", False
    node = use.step.scope.node
    decorators = [] if isinstance(node, ast.Module) else node.decorator_list
    for context in (*decorators, *use.step.contexts):
        if isinstance(context, ast.Name):
            bindings = survey.names.bindings_of(context.id, use.step.scope)
            if len(bindings) != 1 or bindings[0].value is None:
                return None
            context = bindings[0].value
        name = survey.index.dotted(context.func if isinstance(context, ast.Call) else context)
        if name in _GRAD:
            grad = _GRAD[name]
        elif name in _AUTOCAST and isinstance(context, ast.Call):
            enabled = next((k.value for k in context.keywords if k.arg == "enabled"), ast.Constant(True))
            if not isinstance(enabled, ast.Constant):
                return None
            autocast = bool(enabled.value)
        elif name is None or not name.startswith(("torch.profiler", "torch.cuda.device", "torch.cuda.stream", "open")):
            return None
    return grad, autocast


def _called_in_context(survey: Survey, info: FunctionInfo | None) -> bool:
    """Whether the file calls a function inside a ``with``, which may set a state that the function does not set."""
    if info is None:
        return False
    return any(
        bool(step.contexts) and isinstance(call.func, ast.Name) and call.func.id == info.name
        for call, step in survey.calls
    )


def _switches(survey: Survey, scope: Scope, uses: list[Use]) -> Iterator[Found]:
    first, last = uses[0].call.lineno, uses[-1].call.lineno
    for call, step in survey.calls:
        name = survey.index.dotted(call.func) if step.scope is scope else None
        if name is None or name not in _SWITCHES:
            continue
        in_loop = any(set(step.loops) & set(use.step.loops) for use in uses) and not _constant(call)
        if in_loop or first < call.lineno < last:
            yield Found(EventKind.SWITCH, call, step, "switched", _SWITCHES[name])


def _constant(call: ast.Call) -> bool:
    return all(isinstance(a, ast.Constant) for a in call.args)
