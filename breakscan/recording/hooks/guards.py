"""The guards of compiled frames, and why a frame is compiled again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from types import CodeType
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks
from breakscan.recording.hooks.object_facts import (
    code_of,
    current_compile_id,
    stack_above_dynamo,
    stack_of,
    value_in_words,
)
from breakscan.recording.parsers.guards import subject_source
from breakscan.recording.records import FailedGuard, GuardsBuilt, RecompileSeen, StackFrame

_CHECKS = 8
"""Times that guards are checked to measure it: the first ones fill the caches."""


class GuardHook(Hook):
    """Adds to the guards of a compiled frame, which the structured trace has, the lines of the program that asked for
    them, and what checking them takes.

    Torch measures the latter once, after it has flushed the processor's caches: on torch 2.13, 67 us for guards that
    take 1.4 us at each call.  So it is measured here, as calls do it.
    """

    name = "guards"
    without = "the lines that asked for guards are missing"
    wraps = ("torch._dynamo.guards:CheckFunctionManager.__init__",)

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._with_lines = self.guarded(_with_lines)

    def after(self, _: None, manager: Any, f_code: CodeType, output_graph: Any, *__: Any, **___: Any) -> None:
        built = self.hooks.merged.saw_guards(current_compile_id())
        if built is not None:
            guards = getattr(manager, "guard_manager", None)
            self.hooks.write(self._with_lines(built, f_code, output_graph, guards) or built)


class RecompileHook(Hook):
    """Records the guard that did not hold of each version, and the value that it was checked with."""

    name = "recompiles"
    without = "recompiles are read from its structured trace: without the new value of what changed"
    wraps = ("torch._dynamo.guards:get_and_maybe_log_recompilation_reasons",)
    imported_by = ("torch._dynamo.convert_frame",)

    def before(self, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("skip_logging") or (len(args) > 1 and args[1]):
            # Dynamo only asks; it recompiles nothing.
            return
        record = RecompileSeen(
            compile_id=current_compile_id(),
            frame=code_of(frame.f_code),
            guards=tuple(guard for entry in _entries(entries) if (guard := _failed_guard(entry, frame))),
            stack=stack_above_dynamo(),
        )
        self.hooks.merged.saw_recompile(record)


def _with_lines(built: GuardsBuilt, code: CodeType, output_graph: Any, manager: Any) -> GuardsBuilt:
    """The guards, each with the line that asked for it, where Dynamo knows one, and what checking them takes."""
    lines = _lines(output_graph.guards)
    return replace(
        built,
        frame=code_of(code),
        check_seconds=_check_seconds(manager, getattr(output_graph, "local_scope", None)),
        guards=tuple(replace(guard, line=_line(guard.subject, guard.kind, lines)) for guard in built.guards),
    )


def _check_seconds(manager: Any, scope: Any) -> float | None:
    """The seconds that checking all guards takes; None where this torch does not let us check them."""
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
    """Return the line of a guard. Guards on an object's attributes get the line of the object."""
    if subject is None:
        return None
    owner = subject.removesuffix(".__dict__")
    keys: list[tuple[str, str | None]] = [(subject, kind), (subject, None), (owner, kind), (owner, None)]
    return next((lines[key] for key in keys if key in lines), None)


def _entries(entries: Any) -> list[Any]:
    """The cache entries, newest first: a list since torch 2.13, a linked list before."""
    if isinstance(entries, list):
        return entries
    found = []
    while entries is not None:
        found.append(entries)
        entries = entries.next
    return found


def _failed_guard(entry: Any, frame: Any) -> FailedGuard | None:
    manager = entry.guard_manager
    info = manager.check_verbose(frame.f_locals)
    if info.result or not info.verbose_code_parts:
        return None
    text = info.verbose_code_parts[0]
    return FailedGuard(
        compile_id=str(entry.compile_id),
        text=text,
        executed=info.num_guards_executed,
        new=_new_value(text, manager, frame),
        stack=stack_of(getattr(info, "user_stack", None)),
    )


def _new_value(guard: str, manager: Any, frame: Any) -> str | None:
    """The value of the guarded expression now, in words; None if it is not known."""
    source = subject_source(guard)
    if source is None:
        return None
    scope = {"L": frame.f_locals, **getattr(manager, "closure_vars", {})}
    try:
        return value_in_words(eval(source, getattr(manager, "global_scope", {}), scope))
    except Exception:
        return None
