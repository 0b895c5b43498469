"""Which line of the program asked for each guard of a compiled frame.

Wraps ``torch._dynamo.guards.CheckFunctionManager.__init__``.  What the guards check comes from the
structured trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType
from typing import Any

from breakscan.runtime.hooks.object_facts import code_of, stack_of
from breakscan.runtime.hooks.patching import leave_no_trace, wrapped
from breakscan.runtime.records.guards import GuardsBuilt
from breakscan.runtime.records.source import StackFrame


@contextmanager
def built_guards(sink: Callable[[CodeType, Any], None]) -> Iterator[bool]:
    """Hands the code of each frame whose guards were built, and what traced it, to the sink.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, f_code: Any, output_graph: Any, *args: Any, **kwargs: Any) -> None:
            try:
                original(self, f_code, output_graph, *args, **kwargs)
            except Exception as error:
                leave_no_trace(error)
                raise
            sink(f_code, output_graph)

        return init

    with wrapped(["torch._dynamo.guards:CheckFunctionManager"], "__init__", wrap) as available:
        yield available


def with_lines(built: GuardsBuilt, code: CodeType, output_graph: Any) -> GuardsBuilt:
    """The guards, each with the line that asked for it, where Dynamo knows one."""
    lines = _lines(output_graph.guards)
    return replace(
        built,
        frame=code_of(code),
        guards=tuple(replace(guard, line=_line(guard.subject, guard.kind, lines)) for guard in built.guards),
    )


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
