"""What single calls return, by themselves and without events: where an object is set up, and where the result of a
small function depends on its arguments."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.frame import Frame, Interpreter
from breakscan.check.interpreter.statements import returned_value, run_body
from breakscan.check.interpreter.values import UNKNOWN, Value
from breakscan.check.project.index import FunctionInfo

MOST_CALLS_DEEP = 3
MOST_CALLS = 500
"""Ten times what the files of large libraries take."""
MOST_NODES_OF_SMALL = 60
_NOT_IN_SMALL = (ast.For, ast.While, ast.Try, ast.With)


class SingleCalls:
    """The results of calls in one program, kept by their arguments."""

    def __init__(self, program: Interpreter) -> None:
        self._program = program
        self._results: dict[object, Value] = {}
        self._running: set[FunctionInfo] = set()

    def apply_to(self, info: FunctionInfo) -> bool:
        """Whether each call of a function is interpreted by itself."""
        return is_small(info) and info not in self._running and not info.is_generator

    def result(self, info: FunctionInfo, given: Arguments, closure: dict[str, Value] | None) -> Value:
        """What a call returns; unknown where finding out would take too much."""
        if len(self._running) >= MOST_CALLS_DEEP or info in self._running:
            return UNKNOWN
        body = info.node.body
        if not isinstance(body, list) or isinstance(info.node, ast.AsyncFunctionDef) or info.is_generator:
            return UNKNOWN
        if info.index is not self._program.index and not is_small(info):
            return UNKNOWN
        key = info, tuple(given.positional), tuple(given.named.items()), closure is None
        if key in self._results:
            return self._results[key]
        if len(self._results) >= MOST_CALLS:
            return UNKNOWN
        frame = Frame(self._program, info, {**(closure or {}), **self._program.signatures.given(info, given)})
        frame.silent = True
        self._running.add(info)
        try:
            self._results[key] = result = returned_value(frame, run_body(frame, body))
        finally:
            self._running.discard(info)
        return result


def is_small(info: FunctionInfo) -> bool:
    """Whether a function is short and has no loops."""
    if info.small is None:
        nodes = info.own_nodes
        info.small = len(nodes) <= MOST_NODES_OF_SMALL and not any(isinstance(node, _NOT_IN_SMALL) for node in nodes)
    return info.small
