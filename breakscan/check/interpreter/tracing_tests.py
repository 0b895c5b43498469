"""Functions of the program that only ask whether a compiler traces: what they return while it does."""

from __future__ import annotations

import ast

from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.findings import Mode
from breakscan.rulebook.torch_facts.not_measured import (
    FALSE_WHILE_TRACING,
    ONLY_WHILE_DYNAMO_TRACES,
    TRUE_WHILE_TRACING,
)

_MOST_CALLS_DEEP = 3
_FALSE = frozenset({"torch.jit.is_tracing", "torch._C._get_tracing_state", "torch._C._is_tracing"})

TELLING = frozenset({*TRUE_WHILE_TRACING, *FALSE_WHILE_TRACING, *(name.rpartition(".")[2] for name in _FALSE)})
"""The last parts of the names of functions that tell whether Dynamo traces."""


def truth_while_tracing(dotted: str, mode: Mode) -> bool | None:
    """What a function by that name returns while code is compiled so, or None if it asks something else."""
    last = dotted.rsplit(".", 1)[-1]
    if last == "is_exporting" and mode.exports:
        return True
    if last in ONLY_WHILE_DYNAMO_TRACES and mode is Mode.EXPORT:
        return False if dotted.startswith("torch.") else None
    if last in TRUE_WHILE_TRACING:
        return True
    if last in FALSE_WHILE_TRACING or dotted in _FALSE:
        return False
    return None


def truth_of_helper(info: FunctionInfo, mode: Mode) -> bool | None:
    """What a function returns while code is compiled so, if the tests of torch in it decide that."""
    return _Helper(info.index, 0, mode).result(info)


class _Helper:
    """Reads the body of one function, in which a name holds what a test of torch gave."""

    def __init__(self, index: ModuleIndex, depth: int, mode: Mode) -> None:
        self._index = index
        self._depth = depth
        self._mode = mode
        self._names: dict[str, bool | None] = {}
        self._results: set[bool | None] = set()

    def result(self, info: FunctionInfo) -> bool | None:
        body = info.node.body
        if not isinstance(body, list):
            return self._truth(body)
        if not isinstance(info.node, ast.FunctionDef) or self._run(body):
            return None
        return next(iter(self._results)) if len(self._results) == 1 else None

    def _run(self, body: list[ast.stmt]) -> bool:
        """Reads statements. Returns whether control can reach the end."""
        return all(self._statement(node) for node in body)

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Return():
                self._results.add(None if node.value is None else self._truth(node.value))
                return False
            case ast.Raise():
                return False
            case ast.If():
                known = self._truth(node.test)
                sides = [node.body] if known else [node.orelse] if known is False else [node.body, node.orelse]
                return self._sides(sides)
            case ast.Try():
                return self._run(node.body) and self._run(node.orelse)
            case ast.Assign(targets=[ast.Name(id=name)]):
                self._names[name] = self._truth(node.value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.BitOr()):
                self._names[name] = True if self._names.get(name) else None
            case ast.Expr() | ast.Import() | ast.ImportFrom() | ast.Pass():
                pass
            case _:
                self._results.add(None)
        return True

    def _sides(self, sides: list[list[ast.stmt]]) -> bool:
        """Reads the sides of a test, of which one runs. Returns whether control can go on after it."""
        before = self._names
        after = []
        for side in sides:
            self._names = dict(before)
            if self._run(side):
                after.append(self._names)
        names = {name for one in after for name in one}
        self._names = {n: after[0].get(n) if len({one.get(n) for one in after}) == 1 else None for n in names}
        return bool(after)

    def _truth(self, node: ast.expr) -> bool | None:
        match node:
            case ast.Constant():
                return bool(node.value)
            case ast.Name():
                return self._names.get(node.id)
            case ast.UnaryOp(op=ast.Not()):
                inner = self._truth(node.operand)
                return None if inner is None else not inner
            case ast.BoolOp():
                known = [self._truth(value) for value in node.values]
                decisive = isinstance(node.op, ast.Or)
                return decisive if decisive in known else None if None in known else not decisive
            case ast.IfExp():
                known_test = self._truth(node.test)
                if known_test is not None:
                    return self._truth(node.body if known_test else node.orelse)
                body, other = self._truth(node.body), self._truth(node.orelse)
                return body if body is other else None
            case ast.Call(func=ast.Name(id="bool"), args=[argument]):
                return self._truth(argument)
            case ast.Call():
                return self._call(self._index.dotted(node.func) or "")
        return None

    def _call(self, dotted: str) -> bool | None:
        known = truth_while_tracing(dotted, self._mode)
        if known is not None or self._depth >= _MOST_CALLS_DEEP:
            return known
        info = self._index.function_named(dotted)
        return _Helper(info.index, self._depth + 1, self._mode).result(info) if info is not None else None
