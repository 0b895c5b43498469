"""State that changes between calls of compiled code: Python's, which it reads, and the global states of torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from breakscan.check.compile_uses.arguments import Changes
from breakscan.check.compile_uses.uses import BoundName, Compiled, Found, Survey, Use
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.check.project.scopes import Scope
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import walk

# Python state that compiled code reads and that changes from call to call: counters and lists that grow.


def changing_attributes(survey: Survey) -> Iterator[Found]:
    """``model.step = i`` in the loop that calls the compiled model, where its class reads ``self.step``."""
    for step in survey.steps:
        statement = step.statement
        if not step.loops or not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        changes = Changes(survey, step)
        counts = isinstance(statement, ast.AugAssign) and isinstance(statement.value, ast.Constant)
        if not (counts and type(getattr(statement.value, "value", None)) is int) and not (
            changes.of(statement.value) and changes.is_int(statement.value)
        ):
            continue
        for use in survey.uses:
            source = use.compiled.source
            named = (use.call.func, source) if source is not None else (use.call.func,)
            same = any(isinstance(n, ast.Name) and n.id == target.value.id for n in named)
            if same and use.step.loops[:1] == step.loops[:1] and _reads(survey, use.compiled.target, target.attr):
                yield Found(EventKind.STORE, target, use.step, "changing-attribute", target.attr)
                break


def _reads(survey: Survey, target: BoundName | None, attribute: str) -> bool:
    forward = survey.names.method(target.owner, "forward") if target and target.owner else None
    return forward is not None and any(
        isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Load) for n in forward.own_nodes
    )


def global_counters(
    index: ModuleIndex, text: str, compiled: Iterable[FunctionInfo]
) -> Iterator[tuple[FunctionInfo, ast.stmt, str]]:
    """``count += 1`` on an int of the module's top level, in compiled code: the function, the statement, the name."""
    if "global " not in text:
        return
    numbers = {
        target.id
        for node in index.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is int
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for info in compiled:
        if info.index is not index or not numbers:
            continue
        declared = {n for s in info.own_nodes if isinstance(s, ast.Global) for n in s.names} & numbers
        for node in info.own_nodes:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in declared:
                yield info, node, node.target.id


def growing_attributes(
    index: ModuleIndex, text: str, compiled: Iterable[FunctionInfo]
) -> Iterator[tuple[FunctionInfo, ast.Call, str]]:
    """``self.history.append(x)`` in compiled code, on a list that ``__init__`` makes and nothing empties."""
    if ".append(" not in text:
        return
    for info in compiled:
        if info.index is not index or info.owner is None or info.name == "__init__":
            continue
        for node in info.own_nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                held = node.func.value
                mine = isinstance(held, ast.Attribute) and ast.unparse(held.value) == "self"
                if mine and isinstance(held, ast.Attribute) and _only_grows(index, info.owner, held.attr):
                    yield info, node, f"self.{held.attr}"


def _only_grows(index: ModuleIndex, owner: ClassInfo, attribute: str) -> bool:
    start = owner.methods.get("__init__")
    made = start is not None and any(
        isinstance(n, ast.Assign | ast.AnnAssign)
        and isinstance(n.value, ast.List)
        and any(ast.unparse(t) == f"self.{attribute}" for t in (n.targets if isinstance(n, ast.Assign) else [n.target]))
        for n in start.own_nodes
    )
    # A base in another file may empty it.
    if not made or start is None or not all(b in index.classes or b.startswith("torch.nn.") for b in owner.bases):
        return False
    inside = set(walk(start.node))
    for node in walk(index.tree):
        if node in inside or not isinstance(node, ast.Attribute) or node.attr != attribute:
            continue
        # Whatever else happens to it may empty it, but reading and appending does not.
        if not isinstance(node.ctx, ast.Load):
            return False
    emptied = rf"\.{re.escape(attribute)}\s*\.\s*(clear|pop|remove|popleft)\b|del\s+[\w.]*\.{re.escape(attribute)}\b"
    return re.search(emptied, index.module.text) is None


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
    """True if the name refers to a wrapper around the compiled function, made by a decorator above torch.compile."""
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
    """True if the file calls a function inside a ``with``, which may set a state that the function does not set."""
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
