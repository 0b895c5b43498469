"""The loop of the program from which the captured calls are made: one iteration of it is a step as the user runs it."""

import __future__

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

from breakscan.prove.call_runs import put_back
from breakscan.prove.capture import CapturedCallable, UserFrame, watch_backward
from breakscan.prove.protocol import TimedStep
from breakscan.prove.state import ObjectWalk
from breakscan.prove.torch_state import Modes, eager_stance
from breakscan.prove.varied_calls import TimeLimitReached, time_limit

MOST_CALLS = 64
"""Calls in one iteration: a loop with more is over epochs."""
LONGEST = 60
"""Seconds of a first iteration: one that waits for a request never ends."""
_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_NAMED, ast.Lambda)


class UserLoop:
    """The body of a loop, as it ran when the last call was captured.  What an iteration changes is put back after it:
    the names that it binds, and the contents of containers and attributes."""

    def __init__(self, code: CodeType, names: dict[str, Any], bound: set[str], site: str) -> None:
        self._site = site
        self._code = code
        self._names = names
        self._bound = {name: names[name] for name in bound if name in names}
        self._undo: list[Callable[[], object]] = []

    def run(self) -> None:
        """Runs one iteration."""
        # A step that is timed does not look for it.
        import torch

        exec(self._code, self._names)
        self._names.update(self._bound)
        torch.clear_autocast_cache()
        with torch.no_grad():
            for undo in self._undo:
                undo()

    def try_out(self, callables: Sequence[CapturedCallable], modes: Modes, number: int) -> TimedStep | None:
        """Runs an iteration eager.  Returns what it did, None if it cannot be repeated or is not a whole step."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        calls: dict[int, int] = {}
        seen: set[str] = set()
        for one in callables:
            put_back(one, one.calls[-1])
        walk = ObjectWalk(self._names, {})
        steps = register_optimizer_step_post_hook(lambda *_: seen.add("optimizer"))
        try:
            with time_limit(LONGEST), modes.set(), eager_stance():
                for one in callables:
                    one.instead = _counted(one, calls, lambda: seen.add("backward"))
                self.run()
        except (Exception, SystemExit, TimeLimitReached):
            return None
        finally:
            steps.remove()
            self._names.update(self._bound)
            self._undo = [undo for undo in walk.undo if undo()]
            for one in callables:
                one.instead = None
                self._undo += [undo for snapshot in one.snapshots_of(one.calls[-1]) for undo in snapshot.advanced()]
        trains = any(one.backward for one in callables)
        if len(calls) < len(callables) or (trains and "backward" not in seen):
            return None
        return TimedStep(self._site, number, sum(calls.values()), "backward" in seen, "optimizer" in seen)


def loops_of(frames: Iterable[UserFrame]) -> Iterator[UserLoop]:
    """The loops in which the frames are, the innermost first."""
    for code, line, names in frames:
        for loop in _loops_at(code, line, names):
            parts = [part for statement in loop.body for part in _parts(statement)]
            if any(isinstance(part, _LEAVING) for part in parts):
                continue
            once = ast.parse("for __breakscan_step in (None,): pass")
            assert isinstance(once.body[0], ast.For)
            once.body[0].body = loop.body
            bound = {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
            flags = code.co_flags & __future__.annotations.compiler_flag
            body = compile(once, code.co_filename, "exec", flags, dont_inherit=True)
            yield UserLoop(body, dict(names), bound, f"{code.co_filename}:{loop.lineno}")


def loops_around(code: CodeType, line: int) -> list[int]:
    """The lines of the loops around a line in the scope of some code, the outermost first."""
    return [loop.lineno for loop in _loops_at(code, line)][::-1]


def _loops_at(code: CodeType, line: int, names: dict[str, Any] | None = None) -> list[ast.For | ast.While]:
    """The loops around a line in the scope of some code, the innermost first."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename, names)))
    except (SyntaxError, ValueError):
        return []
    named = (one for one in ast.walk(tree) if isinstance(one, _NAMED) and one.name == code.co_name)
    scope = max((one for one in named if _holds(one, one, line)), key=lambda one: one.lineno, default=None)
    if scope is None and code.co_name != "<module>":
        return []
    loops = (one for one in ast.walk(scope or tree) if isinstance(one, (ast.For, ast.While)))
    around = [one for one in loops if _holds(one.body[0], one.body[-1], line)]
    return sorted(around, key=lambda one: one.lineno, reverse=True)


def _holds(first: ast.stmt | ast.expr, last: ast.stmt | ast.expr, line: int) -> bool:
    return first.lineno <= line <= (last.end_lineno or last.lineno)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it, without what is in other scopes."""
    yield node
    for child in () if isinstance(node, _SCOPES) else ast.iter_child_nodes(node):
        yield from _parts(child)


def _counted(captured: CapturedCallable, calls: dict[int, int], seen: Callable[[], object]) -> Callable[..., object]:
    def call(*args: object, **kwargs: object) -> object:
        calls[id(captured)] = calls.get(id(captured), 0) + 1
        if sum(calls.values()) > MOST_CALLS:
            raise TimeLimitReached
        result = captured.original(*args, **kwargs)
        watch_backward(result, seen)
        return result

    return call
