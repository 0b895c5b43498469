"""Which Python numbers and strings have another value in each iteration of a loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from breakscan.check.compile_uses.uses import Survey
from breakscan.check.project.scopes import Step
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
    """What changes in the loops around one statement."""

    def __init__(self, survey: Survey, step: Step) -> None:
        self.survey = survey
        self.scope = step.scope
        self.loop = step.loops[-1] if step.loops else None
        self.names: dict[str, ArgumentChange] = {}
        self.ints: set[str] = set()
        for loop in step.loops:
            self._head(loop)
        for loop in step.loops:
            for _ in range(2):
                self._body(loop)

    def of(self, node: ast.expr) -> ArgumentChange | None:
        """How an expression changes, if it is a Python number or string that does; else None."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.JoinedStr):
            parts = [p.value for p in node.values if isinstance(p, ast.FormattedValue)]
            return ArgumentChange.TEXT if any(self.of(part) for part in parts) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mod):
            return self._of_numbers([node.left, node.right])
        return self._of_call(node) if isinstance(node, ast.Call) else None

    def _of_call(self, node: ast.Call) -> ArgumentChange | None:
        name = self.survey.index.dotted(node.func)
        if name in _CLOCKS_AND_DICE:
            return ArgumentChange.NUMBER
        if name == "str" and len(node.args) == 1:
            return ArgumentChange.TEXT if self.of(node.args[0]) else None
        return self._of_numbers(node.args) if name in _OF_NUMBERS else None

    def _of_numbers(self, operands: Sequence[ast.expr]) -> ArgumentChange | None:
        """How a number changes that is computed from some numbers."""
        found = [self.of(operand) for operand in operands]
        fixed = [operand for operand, change in zip(operands, found, strict=True) if change is None]
        changes = ArgumentChange.NUMBER in found and all(map(self._is_fixed_number, fixed))
        return ArgumentChange.NUMBER if changes else None

    def is_int(self, node: ast.expr) -> bool:
        """Whether a number that changes is an int in each iteration."""
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
            bound = self.survey.names.bindings_of(node.id, self.scope)
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
            counter = self._counter(target, over)
            if isinstance(counter, ast.Name):
                self._add_number(counter.id, is_int=True)
        elif isinstance(over, ast.List | ast.Tuple | ast.Set) and isinstance(target, ast.Name):
            values = {v.value for v in over.elts if isinstance(v, ast.Constant) and type(v.value) in (int, float)}
            if len(values) == len(over.elts) > 1:
                self._add_number(target.id, is_int=all(type(v) is int for v in values))

    def _counter(self, target: ast.expr, over: ast.Call) -> ast.expr | None:
        """The target that counts the iterations of a loop over ``range`` or ``enumerate``."""
        name = self.survey.index.dotted(over.func)
        if name in _COUNTING:
            return None if _runs_once(over) else target
        return target.elts[0] if name == "enumerate" and isinstance(target, ast.Tuple) else None

    def _add_number(self, name: str, *, is_int: bool) -> None:
        self.names[name] = ArgumentChange.NUMBER
        if is_int:
            self.ints.add(name)

    def _body(self, loop: Loop) -> None:
        """Finds counters that the body increments, and names for values computed from what changes."""
        for statement in self.scope.statements_in(loop):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                if self._counts(statement.target.id, statement, loop):
                    self._add_number(statement.target.id, is_int=self.is_int(statement.value))
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                change = self.of(statement.value)
                name = statement.targets[0].id
                if change is not None and self._is_bound_once(name, loop):
                    self.names[name] = change
                    if self.is_int(statement.value):
                        self.ints.add(name)

    def _counts(self, name: str, statement: ast.AugAssign, loop: Loop) -> bool:
        """Whether a name starts as a number before a loop, and the loop only adds a number to it."""
        start = self.survey.names.bound_before(name, self.scope, loop)
        is_number = start is not None and _is_number(start.value)
        return is_number and _is_number(statement.value) and self._is_bound_once(name, loop)

    def _is_bound_once(self, name: str, loop: Loop) -> bool:
        return len(self.survey.names.bound_in(name, self.scope, loop)) == 1


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _runs_once(counting: ast.Call) -> bool:
    last = counting.args[-1] if counting.args else None
    return len(counting.args) == 1 and isinstance(last, ast.Constant) and last.value in (0, 1)


def _last(dotted: str | None) -> str:
    return (dotted or "").rsplit(".", 1)[-1]
