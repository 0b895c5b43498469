"""Which line of the program asked for each guard of a compiled frame.

Wraps ``torch._dynamo.guards.CheckFunctionManager.__init__``.  What the guards check comes from the
structured trace, with what checking them takes; but torch measures that once, after it has flushed the processor's
caches: on torch 2.13, 67 us for guards that take 1.4 us at each call.  So it is measured here, as calls do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from types import CodeType
from typing import Any

from breakscan.record.hooks.object_facts import code_of, stack_of
from breakscan.record.hooks.patching import leave_no_trace, wrapped
from breakscan.record.records import GuardsBuilt, StackFrame

_CHECKS = 8
"""Times that guards are checked to measure it: the first ones fill the caches."""


@contextmanager
def built_guards(sink: Callable[[CodeType, Any, Any], None]) -> Iterator[bool]:
    """Hands the code of each frame whose guards were built, what traced it, and what checks them, to the sink.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, f_code: Any, output_graph: Any, *args: Any, **kwargs: Any) -> None:
            try:
                original(self, f_code, output_graph, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise
            sink(f_code, output_graph, getattr(self, "guard_manager", None))

        return init

    with wrapped(["torch._dynamo.guards:CheckFunctionManager"], "__init__", wrap) as available:
        yield available


def with_lines(built: GuardsBuilt, code: CodeType, output_graph: Any, manager: Any) -> GuardsBuilt:
    """The guards, each with the line that asked for it, where Dynamo knows one, and what checking them takes."""
    lines = _lines(output_graph.guards)
    return replace(
        built,
        frame=code_of(code),
        check_seconds=_check_seconds(manager, getattr(output_graph, "local_scope", None)),
        guards=tuple(replace(guard, line=_line(guard.subject, guard.kind, lines)) for guard in built.guards),
    )


def _check_seconds(manager: Any, scope: Any) -> float | None:
    """What checking all guards takes; None where this torch does not let us check them."""
    if not callable(getattr(manager, "check", None)) or scope is None:
        return None
    times = []
    for _ in range(_CHECKS):
        began = perf_counter()
        held = manager.check(scope)
        times.append(perf_counter() - began)
        if not held:
            return None
    return min(times)


def _lines(guards: Iterable[Any]) -> dict[tuple[str, str | None], StackFrame]:
    """The line by what is guarded and the kind of the guard; by the former alone, that of any."""
    import torch

    torchs = torch.__path__[0]
    lines: dict[tuple[str, str | None], StackFrame] = {}
    for guard in guards:
        if not guard.user_stack:
            continue
        own = [frame for frame in guard.user_stack if not frame.filename.startswith(torchs)]
        (line,) = stack_of((own or guard.user_stack)[-1:])
        for kind in (*(guard.guard_types or ()), None):
            lines.setdefault((guard.name, kind), line)
    return lines


def _line(subject: str | None, kind: str, lines: dict[tuple[str, str | None], StackFrame]) -> StackFrame | None:
    """Returns the line of a guard. Guards on an object's attributes get the line of the object."""
    if subject is None:
        return None
    owner = subject.removesuffix(".__dict__")
    keys: list[tuple[str, str | None]] = [(subject, kind), (subject, None), (owner, kind), (owner, None)]
    return next((lines[key] for key in keys if key in lines), None)
