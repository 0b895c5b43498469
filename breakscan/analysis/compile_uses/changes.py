"""Which Python numbers and strings have another value in each round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from breakscan.analysis.compile_uses.uses import Survey
from breakscan.analysis.project.scopes import Step
from breakscan.source.walking import Loop


class ArgumentChange(Enum):
    """What changes, as the form of an event."""

    NUMBER = "changing-number"
    TEXT = "changing-text"


_COUNTING = frozenset({"range", "tqdm.trange", "tqdm.auto.trange"})
_PASSED_THROUGH = ("tqdm", "track", "reversed")
_CLOCKS_AND_DICE = frozenset(
    "time.time time.perf_counter time.monotonic random.random random.uniform random.randint random.randrange".split()
)
_OF_NUMBERS = frozenset(
    "int float round abs min max pow math.sin math.cos math.exp math.sqrt math.log math.pow".split()
)
_SETTINGS = frozenset({"args", "config", "cfg", "opt", "hparams", "params"})


class Changes:
    """What changes in the loops around one step."""

    def __init__(self, survey: Survey, step: Step) -> None:
        self.survey = survey
        self.scope = step.scope
        self.loop = step.loops[-1] if step.loops else None
        self.names: dict[str, ArgumentChange] = {}
        self.ints: set[str] = set()
        self._seen = survey.names.bindings_of
        for loop in step.loops:
            self._head(loop)
        for loop in step.loops:
            for _ in range(2):
                self._body(loop)

    def of(self, node: ast.expr) -> ArgumentChange | None:
        """Whether an expression is a Python number or text that changes; None where it is neither, or a constant."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.JoinedStr):
            parts = [p.value for p in node.values if isinstance(p, ast.FormattedValue)]
            return ArgumentChange.TEXT if any(self.of(part) for part in parts) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp):
            sides = [self.of(node.left), self.of(node.right)]
            if ArgumentChange.NUMBER not in sides or isinstance(node.op, ast.Mod):
                return None
            fixed = [s for s, found in zip((node.left, node.right), sides, strict=True) if found is None]
            return ArgumentChange.NUMBER if all(self._is_fixed_number(side) for side in fixed) else None
        if isinstance(node, ast.Call):
            name = self.survey.index.dotted(node.func)
            if name in _CLOCKS_AND_DICE:
                return ArgumentChange.NUMBER
            if name == "str" and len(node.args) == 1:
                return ArgumentChange.TEXT if self.of(node.args[0]) else None
            if name in _OF_NUMBERS and node.args:
                changing = [self.of(a) for a in node.args]
                fixed = [a for a, found in zip(node.args, changing, strict=True) if found is None]
                if ArgumentChange.NUMBER in changing and all(self._is_fixed_number(a) for a in fixed):
                    return ArgumentChange.NUMBER
        return None

    def is_int(self, node: ast.expr) -> bool:
        """Whether a number that changes is an int in each round."""
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, ast.Div) and self.is_int(node.left) and self.is_int(node.right)
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        return isinstance(node, ast.Name) and node.id in self.ints

    def _is_fixed_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float)
        if isinstance(node, ast.BinOp):
            return self._is_fixed_number(node.left) and self._is_fixed_number(node.right)
        if isinstance(node, ast.Call):
            return self.survey.index.dotted(node.func) in ("len", "int", "float")
        if isinstance(node, ast.Attribute):
            root = node.value
            return isinstance(root, ast.Name) and root.id in _SETTINGS
        if isinstance(node, ast.Name):
            bound = self._seen(node.id, self.scope)
            return bool(bound) and all(
                isinstance(b.value, ast.Constant | ast.Call) and self._is_fixed_number(b.value) for b in bound
            )
        return False

    def _head(self, loop: Loop) -> None:
        if isinstance(loop, ast.While):
            return
        target, over = loop.target, loop.iter
        while (
            isinstance(over, ast.Call) and over.args and _last(self.survey.index.dotted(over.func)) in _PASSED_THROUGH
        ):
            over = over.args[0]
        if isinstance(over, ast.Call):
            name = self.survey.index.dotted(over.func)
            if name in _COUNTING and isinstance(target, ast.Name) and not _runs_once(over):
                self.names[target.id] = ArgumentChange.NUMBER
                self.ints.add(target.id)
            if name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
                self.names[target.elts[0].id] = ArgumentChange.NUMBER
                self.ints.add(target.elts[0].id)
        if isinstance(over, ast.List | ast.Tuple | ast.Set) and isinstance(target, ast.Name):
            values = {v.value for v in over.elts if isinstance(v, ast.Constant) and type(v.value) in (int, float)}
            if len(values) == len(over.elts) > 1:
                self.names[target.id] = ArgumentChange.NUMBER
                if all(type(v) is int for v in values):
                    self.ints.add(target.id)

    def _body(self, loop: Loop) -> None:
        """Counters that the body counts up, and names for what is computed from what changes."""
        for statement in own_of_loop(loop.body):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                if self._counts(statement.target.id, statement, loop):
                    self.names[statement.target.id] = ArgumentChange.NUMBER
                    if self.is_int(statement.value):
                        self.ints.add(statement.target.id)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                change = self.of(statement.value)
                name = statement.targets[0].id
                if change is not None and len(self._bound_in(name, loop)) == 1:
                    self.names[name] = change
                    if self.is_int(statement.value):
                        self.ints.add(name)

    def _counts(self, name: str, statement: ast.AugAssign, loop: Loop) -> bool:
        before = [b for b in self._seen(name, self.scope) if b.line < loop.lineno]
        starts = bool(before) and isinstance(before[-1].value, ast.Constant)
        step = isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, int | float)
        number = starts and type(getattr(before[-1].value, "value", None)) in (int, float)
        return number and step and len(self._bound_in(name, loop)) == 1

    def _bound_in(self, name: str, loop: Loop) -> list[object]:
        end = loop.end_lineno or loop.lineno
        return [b for b in self._seen(name, self.scope) if loop.lineno <= b.line <= end]


def _runs_once(counting: ast.Call) -> bool:
    last = counting.args[-1] if counting.args else None
    return len(counting.args) == 1 and isinstance(last, ast.Constant) and last.value in (0, 1)


def _last(dotted: str | None) -> str:
    return (dotted or "").rsplit(".", 1)[-1]


def own_of_loop(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop's body, nested ones too, but not those of functions in it."""
    stack: list[ast.AST] = [*body]
    while stack:
        node = stack.pop(0)
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            stack.extend(ast.iter_child_nodes(node))
