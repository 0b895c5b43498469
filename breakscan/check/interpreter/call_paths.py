"""The facts on every path by which the methods of an object call one of its other methods.

``if self.merged: self.unmerge()`` says what ``if not self.merged`` gives in ``unmerge``, and what its events depend on.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.function_state import CallPath
from breakscan.check.interpreter.values import has_outcome
from breakscan.check.project.index import FunctionInfo
from breakscan.model.findings import ConditionKind
from breakscan.source.walking import walk

ANYWHERE = CallPath()


def path_to(frame: Frame, node: ast.AST, info: FunctionInfo) -> CallPath:
    """The facts at a node that calls a function."""
    receiver = receiver_of(frame.function)
    if receiver is None or not isinstance(node, ast.Call) or not _calls_own(node.func, receiver, info):
        return ANYWHERE
    tests = [has_outcome(*test) for test in frame.tests if _is_about(test[0], receiver)]
    conditions = tuple(
        c for c in frame.conditions if c.kind is ConditionKind.TEST and c.subject.startswith(f"{receiver}.")
    )
    return CallPath(frame.outcomes, conditions, tests[-1] if tests else frame.caller_test)


def join_paths(a: CallPath, b: CallPath) -> CallPath:
    """The facts that hold on both paths."""
    return CallPath(
        join_outcomes(a.outcomes, b.outcomes),
        tuple(c for c in a.conditions if c in b.conditions),
        a.test if a.test == b.test else None,
    )


def join_outcomes(a: Mapping[str, bool], b: Mapping[str, bool]) -> Mapping[str, bool]:
    """The outcomes that are the same on two paths."""
    return a if a is b else {name: outcome for name, outcome in a.items() if b.get(name) is outcome}


def outcomes_of(frame: Frame, test: ast.expr, outcome: bool, but: Collection[ast.AST]) -> Mapping[str, bool]:
    """The outcomes of tests of attributes of the object, now that a test has one; without those operands that a tensor
    decides: Dynamo does not know them the second time either."""
    receiver = receiver_of(frame.function)
    found = {} if receiver is None else dict(_attributes(test, outcome, receiver, but))
    return {**frame.outcomes, **found} if found else frame.outcomes


def _attributes(test: ast.expr, outcome: bool, receiver: str, but: Collection[ast.AST]) -> list[tuple[str, bool]]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _attributes(test.operand, not outcome, receiver, but)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is outcome:
        return [found for value in test.values for found in _attributes(value, outcome, receiver, but)]
    if isinstance(test, ast.Attribute) and _is_name(test.value, receiver) and test not in but:
        return [(test.attr, outcome)]
    return []


def known_outcome(frame: Frame, test: ast.Attribute) -> bool | None:
    """The outcome of a test of an attribute of the object, if an earlier test decides it."""
    receiver = receiver_of(frame.function)
    return frame.outcomes.get(test.attr) if receiver is not None and _is_name(test.value, receiver) else None


def forget_outcomes(frame: Frame, node: ast.AST) -> None:
    """Forgets the outcomes if a call, or a store, may change the object."""
    if not frame.outcomes:
        return
    receiver = receiver_of(frame.function)
    if any(isinstance(part, ast.Name) and part.id in (receiver, "super") for part in walk(node)):
        frame.outcomes = ANYWHERE.outcomes


def receiver_of(function: FunctionInfo | None) -> str | None:
    """The name of the object that a method belongs to."""
    return (
        function.first_parameter
        if function is not None and function.owner is not None and not function.is_static
        else None
    )


def _calls_own(called: ast.expr, receiver: str, info: FunctionInfo) -> bool:
    return isinstance(called, ast.Attribute) and called.attr == info.name and _is_name(called.value, receiver)


def _is_about(test: ast.expr, receiver: str) -> bool:
    return {part.id for part in walk(test) if isinstance(part, ast.Name)} == {receiver}


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
