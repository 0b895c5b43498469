"""The functions and modules that ``torch.compile`` was called for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from breakscan.explanation.context import ExplainContext, Owners
from breakscan.model.findings import Origin
from breakscan.model.problem import Caller
from breakscan.recording.parsers.frames import is_compiler_entry
from breakscan.recording.records import (
    BreakSeen,
    Code,
    CompileCalled,
    CompileStarted,
    FrameEnded,
    PackageInstalled,
    Record,
    StackFrame,
)


@dataclass(frozen=True, slots=True)
class CompileTarget:
    """A function or module that ``torch.compile`` was asked for, where, and with which arguments: ``settings`` are
    those besides the backend and ``fullgraph``, as Python writes them."""

    name: str
    caller: Caller | None
    attempted: bool
    backend: str | None
    fullgraph: bool
    settings: Mapping[str, str]


def compile_targets(
    calls: Iterable[CompileCalled], records: Iterable[Record], context: ExplainContext
) -> list[CompileTarget]:
    """The calls of torch.compile by the program.  Torch makes further calls itself to serve them."""
    tried = {r.code for r in records if isinstance(r, CompileStarted)}
    tried |= {r.frame for r in records if isinstance(r, FrameEnded)}
    tried |= {code for r in records if isinstance(r, PackageInstalled) for code in r.codes}
    targets: list[CompileTarget] = []
    for call in calls:
        attempted = call.code in tried
        if targets and is_torchs_own(call):
            targets[-1] = replace(targets[-1], attempted=targets[-1].attempted or attempted)
        else:
            caller = next(iter(reversed(context.callers(call.stack))), None)
            targets.append(
                CompileTarget(call.target, caller, attempted, call.backend, call.fullgraph, dict(call.settings))
            )
    return targets


def torchs_modules(calls: Iterable[CompileCalled], owners: Owners) -> dict[str, StackFrame | None]:
    """The names of the modules whose ``forward`` is torch's own, each with the line of the program that asked for it:
    Dynamo compiles a wrapper in its place."""
    own = (call for call in calls if call.code and owners.of(call.code.path) is Origin.FRAMEWORK)
    asked: dict[str, StackFrame | None] = {}
    for call in own:
        if not is_torchs_own(call):
            lines = (frame for frame in reversed(call.stack) if owners.is_programs(frame.path))
            asked.setdefault(call.target, next(lines, None))
    return asked


def what_wrappers_stand_for(
    calls: Iterable[CompileCalled], breaks: Iterable[BreakSeen], records: Iterable[Record], owners: Owners
) -> dict[Code, str]:
    """The functions that torch.compile was given inside a library's decorator, by the code of the decorator's wrapper.

    The wrappers of one decorator share their code.  Only where all of a call became graphs is it known to have run for
    the function that was given alone; the rest of a call after a break can be the wrapper of another.
    """
    given: dict[Code, set[str]] = {}
    for call in calls:
        is_wrapper = call.code and call.code.name not in ("forward", call.target.rpartition(".")[2])
        if call.code and is_wrapper and owners.of(call.code.path) is Origin.LIBRARY:
            given.setdefault(call.code, set()).add(call.target)
    broken = {(frame.path, frame.name) for seen in breaks for frame in seen.stack}
    not_compiled = {record.frame for record in records if isinstance(record, FrameEnded)}
    return {
        code: min(names)
        for code, names in given.items()
        if len(names) == 1 and (code.path, code.name) not in broken and code not in not_compiled
    }


def is_torchs_own(call: CompileCalled) -> bool:
    """Return whether torch itself called, for the wrapper around a module.  The file alone does not show it: the hook's
    frames carry its name as well."""
    return any(is_compiler_entry(frame.path) and frame.name == "_initialize" for frame in call.stack)
