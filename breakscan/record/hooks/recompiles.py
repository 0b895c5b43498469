"""Why a frame is compiled again: which guard of which version did not hold, and which value it met.

Wraps ``get_and_maybe_log_recompilation_reasons`` of ``torch._dynamo.guards``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from breakscan.record.hooks.object_facts import (
    code_of,
    current_compile_id,
    stack_above_dynamo,
    stack_of,
    value_in_words,
)
from breakscan.record.hooks.patching import wrapped
from breakscan.record.parsers.guards import subject_source
from breakscan.record.records import FailedGuard, RecompileSeen

_MODULES = ("torch._dynamo.guards", "torch._dynamo.convert_frame")
"""The second imports the function by its name."""


@contextmanager
def recompilations(sink: Callable[[Any, FrameType], None]) -> Iterator[bool]:
    """Hands the compiled versions that did not fit, as Dynamo holds them, and the frame to the sink.

    Yields False where this torch has no such hook: nothing is recorded then.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def reasons(entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            # With skip_logging, Dynamo only asks; it recompiles nothing.
            if not (kwargs.get("skip_logging") or (len(args) > 1 and args[1])):
                sink(entries, frame)
            return original(entries, frame, *args, **kwargs)

        return reasons

    with wrapped(_MODULES, "get_and_maybe_log_recompilation_reasons", wrap) as available:
        yield available


def recompile_record(entries: Any, frame: Any) -> RecompileSeen:
    """The recompile as the recording keeps it."""
    return RecompileSeen(
        compile_id=current_compile_id(),
        frame=code_of(frame.f_code),
        guards=tuple(guard for entry in _entries(entries) if (guard := _failed_guard(entry, frame))),
        stack=stack_above_dynamo(),
    )


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
    """What the guarded expression is now, in words; None if it is not known."""
    source = subject_source(guard)
    if source is None:
        return None
    scope = {"L": frame.f_locals, **getattr(manager, "closure_vars", {})}
    try:
        return value_in_words(eval(source, getattr(manager, "global_scope", {}), scope))
    except Exception:
        return None
