"""Timings of compiled code, and whether they measure the compilation, or the launch alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from breakscan.check.compile_uses.uses import Found, Survey, Use
from breakscan.check.project.scopes import Step
from breakscan.rulebook.events import EventKind
from breakscan.source.walking import is_name, walk

_CLOCKS = frozenset(
    {
        "time.time",
        "time.perf_counter",
        "time.monotonic",
        "time.time_ns",
        "time.perf_counter_ns",
        "time.monotonic_ns",
        "timeit.default_timer",
    }
)
_MEANT = re.compile(r"compil\w*[ _-]*(time|took|in\b)|first|warm|cold|startup", re.IGNORECASE)
_WAITS = re.compile(r"synchronize|\.item\(|\.cpu\(|\.tolist\(|\.numpy\(|\bEvent\(|print\(|barrier|all_reduce|\.to\(")


def timed_calls(survey: Survey) -> Iterator[Found]:
    """The compiled calls between two clock readings, and what these measure."""
    lines = survey.text.split("\n")
    for step in survey.steps:
        started = _started(survey, step.statement)
        if started is None:
            continue
        stopped = _stopped(survey, step, started)
        if stopped is None:
            continue
        start, stop = step.statement.lineno, stopped.end_lineno or stopped.lineno
        timed = [u for u in survey.uses if u.step.scope is step.scope and start < u.call.lineno <= stop]
        if not timed:
            continue
        text = "\n".join(lines[start - 1 : stop + 1])
        facts = set()
        if not step.loops and not _MEANT.search(text) and _is_first(survey, timed[0], step, stop):
            facts.add("timed:first-call")
        on_gpu = re.search(r"[\"']cuda|\.cuda\(", survey.text)
        if (
            on_gpu
            and "synchronize" not in survey.text
            and not _WAITS.search("\n".join(lines[start : stopped.lineno - 1]))
        ):
            facts.add("timed:unsynchronised")
        yield Found(EventKind.TIME, timed[0].call, timed[0].step, operands=frozenset(facts))


def _started(survey: Survey, statement: ast.stmt) -> str | None:
    """The name that a statement sets to a reading of the clock."""
    if (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and _reads_clock(survey, statement.value)
    ):
        return statement.targets[0].id
    return None


def _reads_clock(survey: Survey, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and survey.index.dotted(node.func) in _CLOCKS


def _stopped(survey: Survey, step: Step, name: str) -> ast.stmt | None:
    """The statement of the same block that reads the clock again to compute the difference."""
    later = step.block[step.block.index(step.statement) + 1 :]
    for i, statement in enumerate(later):
        # A clock read inside a loop or a branch times a part of something longer.
        for node in walk(statement) if not hasattr(statement, "body") else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and is_name(node.right, name):
                if _reads_clock(survey, node.left):
                    return statement
                if isinstance(node.left, ast.Name):
                    ends = [s for s in later[: i + 1] if _started(survey, s) == node.left.id]
                    return ends[0] if ends else None
        if _started(survey, statement) == name:
            return None
    return None


def _is_first(survey: Survey, use: Use, step: Step, stop: int) -> bool:
    """Whether a timed callable was neither called before nor passed to anything that may call it, and is timed once."""
    if use.compiled.in_place or use.compiled.node.lineno > step.statement.lineno:
        return False
    for other in survey.uses_of(use.compiled):
        if other.step.scope is not use.step.scope or not step.statement.lineno < other.call.lineno <= stop:
            return False
    called = use.call.func
    if not isinstance(called, ast.Name):
        return False
    scopes = walk(use.step.scope.node)
    for node in scopes:
        if isinstance(node, ast.Call) and node.lineno < step.statement.lineno:
            for argument in (*node.args, *(k.value for k in node.keywords)):
                if is_name(argument, called.id) and node is not use.compiled.node:
                    return False
    return not isinstance(use.step.scope.node, ast.Module) or not _passed_around(survey, called.id, use)


def _passed_around(survey: Survey, name: str, use: Use) -> bool:
    """Whether a function reads the name, and may thus have called it before."""
    return any(
        is_name(node, name)
        for scope in survey.names.scopes.scopes
        if scope is not use.step.scope
        for node in walk(scope.node)
        if isinstance(node, ast.expr)
    )
