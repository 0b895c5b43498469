"""Outputs and gradients in the memory of a CUDA graph that are used after the graph has run again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscan.analysis.compile_uses.uses import Found, Survey, Use
from breakscan.analysis.project.scopes import Scope, Step
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
    if backward:
        accumulates = _accumulating_zero_grad(use.step.scope, loop)
        if accumulates is None and any(_calls(outer, "zero_grad") for outer in use.step.loops[:-1]):
            accumulates = None if _calls(loop, "zero_grad") else use.call
        if accumulates is not None:
            yield Found(EventKind.KEEP, accumulates, use.step, "accumulated-gradients")
    statement = use.step.statement
    if isinstance(statement, ast.Assign) and statement.value is use.call:
        outputs = {n.id for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}
    else:
        outputs = set()
    # With gradients and no backward pass, outputs are kept apart until there is one.
    if not backward and not _without_grad(survey, use):
        return
    given = [*use.call.args, *(k.value for k in use.call.keywords)]
    fed = {a.id for a in given if isinstance(a, ast.Name)} & outputs
    fed -= {name for name in fed if _bound_elsewhere(use.step, name)}
    if fed and not backward:
        yield Found(EventKind.KEEP, use.call, use.step, "output-fed-back")
    for node in walk(loop):
        if _appends(node):
            assert isinstance(node, ast.Call)
            kept = node.args[0]
            if kept is use.call or (_root(kept) in outputs and not _bound_elsewhere(use.step, _root(kept))):
                yield Found(EventKind.KEEP, node, use.step, "output-kept")


def _appends(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and len(node.args) == 1
    )


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
    """Whether another statement of the loop gives the name another value, such as a copy."""
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


def _accumulating_zero_grad(scope: Scope, loop: Loop) -> ast.expr | None:
    """The call that leaves gradients in place for the next backward pass, in the same loop."""
    for statement in scope.statements_in(loop):
        for node in walk(statement) if isinstance(statement, ast.Expr) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "zero_grad":
                for keyword in node.keywords:
                    if keyword.arg == "set_to_none" and ast.unparse(keyword.value) == "False":
                        return node
    for statement in loop.body:
        if isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare) and _every_few(statement.test):
            inside = [n for n in walk(statement) if isinstance(n, ast.Attribute)]
            steps = {n.attr for n in inside} >= {"zero_grad"} and "backward" not in {n.attr for n in inside}
            elsewhere = any(_calls(s, "zero_grad") for s in loop.body if s is not statement)
            if steps and not elsewhere:
                return statement.test
    return None


def _every_few(test: ast.Compare) -> bool:
    return isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod)


def _calls(node: ast.AST, method: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == method for n in walk(node))
