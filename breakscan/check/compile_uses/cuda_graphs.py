"""Tensors in the memory of a CUDA graph that are used after it has run again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscan.check.compile_uses.uses import Found, Survey, Use
from breakscan.check.project.scopes import Scope, Step
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import Loop, stored_names, walk

_NO_GRAD = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})


def overwritten_tensors(survey: Survey) -> Iterator[Found]:
    """Uses of modes such as ``reduce-overhead`` that raise when the graph has run again."""
    for use in survey.uses:
        if use.compiled.uses_cuda_graphs and use.step.loops:
            yield from _in_loop(survey, use, use.step.loops[-1])


def _in_loop(survey: Survey, use: Use, loop: Loop) -> Iterator[Found]:
    backward = _calls(loop, "backward")
    if backward and (accumulates := _accumulating(use, loop)) is not None:
        yield Found(EventKind.KEEP, accumulates, use.step, "accumulated-gradients")
    # With gradients and no backward pass, outputs are kept apart until there is one.
    if not backward and not _without_grad(survey, use):
        return
    outputs = {name for name in _outputs(use) if not _bound_elsewhere(use.step, name)}
    given = [*use.call.args, *(k.value for k in use.call.keywords)]
    if not backward and any(isinstance(argument, ast.Name) and argument.id in outputs for argument in given):
        yield Found(EventKind.KEEP, use.call, use.step, "output-fed-back")
    for node in walk(loop):
        kept = _appended(node)
        if kept is not None and (kept is use.call or _root(kept) in outputs):
            assert isinstance(node, ast.Call)
            yield Found(EventKind.KEEP, node, use.step, "output-kept")


def _outputs(use: Use) -> set[str]:
    """The names that the outputs are assigned to."""
    statement = use.step.statement
    if not isinstance(statement, ast.Assign) or statement.value is not use.call:
        return set()
    return {n.id for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}


def _appended(node: ast.AST) -> ast.expr | None:
    """The value that a call appends to a list."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "append":
        return None
    return node.args[0] if len(node.args) == 1 else None


def _root(node: ast.expr) -> str:
    """The name whose memory a value shares: the value itself, a part of it, or the detached value."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            node = node.func.value
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        else:
            return node.id if isinstance(node, ast.Name) else ""


def _bound_elsewhere(step: Step, name: str) -> bool:
    """True if another statement of the loop gives the name another value, such as a copy."""
    return any(
        name in stored_names(other)
        for other in step.scope.statements_in(step.loops[-1])
        if other is not step.statement and isinstance(other, ast.Assign | ast.AugAssign | ast.AnnAssign)
    )


def _without_grad(survey: Survey, use: Use) -> bool:
    node = use.step.scope.node
    decorators = [] if isinstance(node, ast.Module) else node.decorator_list
    for context in (*decorators, *use.step.contexts):
        if survey.index.dotted(context.func if isinstance(context, ast.Call) else context) in _NO_GRAD:
            return True
    return any(
        survey.index.dotted(call.func) == "torch.set_grad_enabled" and ast.unparse(call.args[0]) == "False"
        for call, step in survey.calls
        if step.scope is survey.names.scopes.top and call.args
    )


def _accumulating(use: Use, loop: Loop) -> ast.expr | None:
    """A call that leaves gradients in place for the next backward pass of a loop."""
    found = _zeroed_in_place(use.step.scope, loop) or _zeroed_every_few(loop)
    if found is None and any(_calls(outer, "zero_grad") for outer in use.step.loops[:-1]):
        return None if _calls(loop, "zero_grad") else use.call
    return found


def _zeroed_in_place(scope: Scope, loop: Loop) -> ast.expr | None:
    """A call of ``zero_grad(set_to_none=False)``."""
    for statement in scope.statements_in(loop):
        for node in walk(statement) if isinstance(statement, ast.Expr) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "zero_grad":
                for keyword in node.keywords:
                    if keyword.arg == "set_to_none" and ast.unparse(keyword.value) == "False":
                        return node
    return None


def _zeroed_every_few(loop: Loop) -> ast.expr | None:
    """The test of ``if step % 4 == 0: optimizer.zero_grad()``, if nothing else in the loop does that."""
    zeroing = [statement for statement in loop.body if _calls(statement, "zero_grad")]
    if len(zeroing) != 1 or not isinstance(zeroing[0], ast.If) or _calls(zeroing[0], "backward"):
        return None
    test = zeroing[0].test
    modulo = isinstance(test, ast.Compare) and isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod)
    return test if modulo else None


def _calls(node: ast.AST, method: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == method for n in walk(node))
