"""Compilations of functions: the time that each took and for what, also of all of a run, and the guards of its code."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from breakscan.explanation.context import ExplainContext, is_torchs_own
from breakscan.explanation.run_totals import clock_shifts
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller
from breakscan.model.words import counted, grouped, seconds_in_words
from breakscan.recording.parsers.frames import is_resumed
from breakscan.recording.parsers.guards import read_demand, readable
from breakscan.recording.records import (
    CacheLooked,
    CompileCalled,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    Guard,
    GuardsBuilt,
    PackageInstalled,
    PythonMade,
    Record,
    ShapeSpecialised,
    time_covered,
)


@dataclass(frozen=True, slots=True)
class GuardLine:
    """A guard of a compiled function: torch's kind of it, what has to hold, and the line that asked for it."""

    kind: str
    text: str
    site: Site | None


def most_first(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for part, spent in parts:
        seconds[part] += spent
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


_Rest = tuple[str, str, int | None]  # the rest of a function: its file, Dynamo's name for it, the line where it goes on


@dataclass(frozen=True, slots=True)
class MadeLine:
    """A line of the Python that runs in place of a function.  ``site`` is the program's line that it runs, or where the
    rest of the function goes on, which it calls; ``note`` says so, or what the graph holds that it calls."""

    text: str
    site: Site | None
    note: str


@dataclass(frozen=True, slots=True)
class CompiledFrame:
    """One compilation of a function: when it began, in seconds since the recording did, how long it took, and how long
    its backward, where that was compiled later; under which guards it holds, and what checking them takes at each call.
    ``rest_only`` says that it is the part after a break; ``failed`` what ended it without compiled code.  ``parts`` are
    the seconds in each stage of the compiler, with its backward.  ``made`` is what Dynamo made of it, as Python;
    ``step`` the step in which it was compiled, or its backward later, see :class:`.CompileTimed`."""

    compile_id: str
    function: str
    site: Site
    origin: Origin
    rest_only: bool
    at: float
    seconds: float
    backward_seconds: float
    parts: Mapping[str, float]
    guards: Sequence[GuardLine]
    guard_count: int | None
    guard_seconds: float | None
    caches: Sequence[CacheLooked]
    restarts: Sequence[str]
    failed: str | None
    made: Sequence[MadeLine] = ()
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Specialisation:
    """A dynamic size that the code turned into a constant: what it was the size of, its value, why and where."""

    compile_id: str
    sources: tuple[str, ...]
    value: str
    reason: str
    site: Site | None
    function: str | None


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


@dataclass(frozen=True, slots=True)
class Precompiled:
    """A function whose compiled code was loaded, and the line that asked torch.compile for it."""

    function: str
    site: Site
    caller: Caller | None


_RESTARTS = {
    "fail_and_restart_analysis": "a graph break, for which torch gives no reason",
    "UnspecializeRestartAnalysis": "a module is traced again as one that may change",
    "CompileCollectiveRestartAnalysis": "the ranks have exchanged what they know of sizes",
    "TensorifyScalarRestartAnalysis": "a Python float must be a constant of the graph",
}


def restarts_in_words(frame: CompiledFrame) -> list[str]:
    """The reasons for which Dynamo traced a function again: torch gives a sentence, or the name of an exception."""
    return [_RESTARTS.get("".join(re.findall(r"\w+", reason)[-1:]), reason) for reason in frame.restarts]


def compile_targets(context: ExplainContext) -> list[CompileTarget]:
    """The calls of torch.compile by the program.  Torch makes further calls itself to serve them."""
    tried = {record.code for record in context.of(CompileStarted)} | {r.frame for r in context.of(FrameEnded)}
    tried.update(code for record in context.of(PackageInstalled) for code in record.codes)
    targets: list[CompileTarget] = []
    for call in context.of(CompileCalled):
        attempted = call.code in tried
        if targets and is_torchs_own(call):
            targets[-1] = replace(targets[-1], attempted=targets[-1].attempted or attempted)
        else:
            own = (attempted, call.backend, call.fullgraph, dict(call.settings))
            targets.append(CompileTarget(call.target, context.nearest(call.stack), *own))
    return targets


def compiled_frames(context: ExplainContext) -> list[CompiledFrame]:
    """The compilations of all processes, in the order in which they began."""
    each = zip(context.processes, clock_shifts(context.processes), strict=True)
    return sorted((one for process in each for one in _frames(*process, context)), key=lambda frame: frame.at)


def _frames(records: Sequence[Record], shift: float, context: ExplainContext) -> Iterable[CompiledFrame]:
    started = {r.compile_id: r for r in records if isinstance(r, CompileStarted)}
    timed: dict[str, list[CompileTimed]] = defaultdict(list)
    caches: dict[str, list[CacheLooked]] = defaultdict(list)
    guards: dict[str | None, GuardsBuilt] = {}
    made: dict[str, PythonMade] = {}
    rests: dict[_Rest, list[str]] = defaultdict(list)
    for record in records:
        if isinstance(record, CompileTimed):
            timed[record.compile_id].append(record)
        elif isinstance(record, GuardsBuilt):
            guards[record.compile_id] = record
        elif isinstance(record, CacheLooked):
            held = f": {record.guards}" if record.guards else ""
            why = record.reason if record.guards is None else f"what is stored holds for other sizes{held}"
            caches[record.compile_id].append(replace(record, reason=why))
        elif isinstance(record, PythonMade) and (begun := started.get(record.compile_id or "")):
            made[begun.compile_id] = record
            rests[begun.code.path, begun.code.name, record.goes_on].append(begun.compile_id)
    for compile_id, times in timed.items():
        if (begun := started.get(compile_id)) is None:
            continue
        own = next((one for one in times if not one.backward), None)
        built, python, ops = guards.get(compile_id), made.get(compile_id), own.ops if own else None
        yield CompiledFrame(
            compile_id=compile_id,
            function=context.function_of(begun.code),
            site=context.site_of(begun.code),
            origin=context.origin(begun.code.path),
            rest_only=is_resumed(begun.code.name),
            at=begun.at + shift,
            seconds=own.seconds if own else 0.0,
            backward_seconds=sum(one.seconds for one in times if one.backward),
            parts=most_first(stage for one in times for stage in one.stages.items()),
            guards=tuple(dict.fromkeys(_guard_line(guard, context) for guard in built.guards)) if built else (),
            guard_count=own.guards if own else None,
            guard_seconds=built.check_seconds if built else None,
            caches=tuple(caches[compile_id]),
            restarts=tuple(reason.partition("\n")[0] for reason in own.restarts) if own else (),
            failed=own.failed if own else None,
            made=tuple(_made_lines(python, begun.code.path, ops, rests, context)) if python else (),
            step=max((one.step for one in times if one.step is not None), default=None),
        )


def _made_lines(
    made: PythonMade, path: str, ops: int | None, rests: Mapping[_Rest, Sequence[str]], context: ExplainContext
) -> Iterator[MadeLine]:
    for line in made.lines:
        number = line.goes_on if line.resumes else line.line
        note = f"line {number}, not in a graph" if number else ""
        if line.graph and ops is not None:
            note = counted(ops, "operation")
        elif line.resumes:
            ids = ", ".join(rests.get((path, line.resumes, number), ()))
            note = f"goes on at line {number}{f', compiled as {ids}' if ids else ''}"
        text = f"{'    ' * line.depth}{readable(line.text)}"
        yield MadeLine(text, context.sources.site(path, number) if number else None, note)


def _guard_line(guard: Guard, context: ExplainContext) -> GuardLine:
    line = guard.line
    site = context.sources.site(line.path, line.line, line.column, line.end_column) if line else None
    return GuardLine(guard.kind, read_demand(guard.kind, guard.text), site)


def precompiled(context: ExplainContext) -> list[Precompiled]:
    found = (
        Precompiled(context.function_of(code), context.site_of(code), context.nearest(record.stack))
        for record in context.of(PackageInstalled)
        for code in record.codes
        if context.origin(code.path) is not Origin.FRAMEWORK and not is_resumed(code.name)
    )
    return list(dict.fromkeys(found))


_CONSEQUENCE = "find"  # torch's word for a size that had to equal one which is a constant by now
_NUMBER = re.compile(r"-?\d+$")
_REASONS = {
    "guard_int": "the code needs it as a Python number",
    "guard_bool": "the code compares it with a number, and goes on as the comparison said",
}


def specialisations(context: ExplainContext) -> list[Specialisation]:
    """The specialisations, each once, in the order of the compiler."""
    records = [record for record in context.of(ShapeSpecialised) if _is_users(record, context)]
    return [*{(one.compile_id, one.symbol): _specialisation(one, context) for one in records}.values()]


def _is_users(record: ShapeSpecialised, context: ExplainContext) -> bool:
    """Return whether the program's own code could have kept the size dynamic.  It could not where an operation's
    operands have to match, as a matrix and its weight, or where torch's own modules check that; compiled autograd's
    sizes are not the program's; floats are not sizes."""
    if record.reason == _CONSEQUENCE or record.asked_by == "expect_true" or record.compile_id.startswith("!"):
        return False
    if not (record.sources and record.stack and _NUMBER.match(record.value)):
        return False
    in_torch = context.origin(record.stack[-1].path) is Origin.FRAMEWORK
    return record.asked_by == "guard_int" or not in_torch


def _specialisation(record: ShapeSpecialised, context: ExplainContext) -> Specialisation:
    own = [frame for frame in record.stack if context.origin(frame.path) is not Origin.FRAMEWORK]
    where = (own or list(record.stack))[-1]
    begun = context.started.get(record.compile_id)
    return Specialisation(
        compile_id=record.compile_id,
        sources=tuple(readable(source) for source in record.sources),
        value=record.value,
        reason=_REASONS.get(record.asked_by or "", "the code depends on it"),
        site=context.sources.site(where.path, where.line, where.column, where.end_column),
        function=context.function_of(begun.code) if begun else context.function(where.path, where.line, where.name),
    )


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """The time of all compilations of a function: itself, the parts after breaks, and their backward passes."""

    function: str
    site: Site
    origin: Origin
    compiles: int
    seconds: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CompileTime:
    """Both with what took most first."""

    parts: Mapping[str, float]
    functions: Sequence[FunctionTime]


def compile_time(compiles: Iterable[CompiledFrame]) -> CompileTime:
    """The compile time of a run, or of the lowest rank."""
    # Parts of a function have its name, and are in its file.
    groups = grouped(((compiled.site.path, compiled.function), compiled) for compiled in compiles)
    functions = sorted(map(_function_time, groups.values()), key=lambda function: -function.seconds)
    return CompileTime(most_first(chain.from_iterable(one.parts.items() for one in functions)), functions)


def _function_time(group: Sequence[CompiledFrame]) -> FunctionTime:
    first = min(group, key=lambda one: (one.rest_only, one.site.line))
    seconds = sum(one.seconds + one.backward_seconds for one in group)
    parts = most_first(chain.from_iterable(one.parts.items() for one in group))
    return FunctionTime(first.function, first.site, first.origin, len(group), seconds, parts)


def spent_compiling(context: ExplainContext) -> float:
    """The part of the run's wall time in which something was compiled, by one process or by several at once."""
    return time_covered(
        (record.at + shift - record.seconds, record.at + shift)
        for records, shift in zip(context.processes, clock_shifts(context.processes), strict=True)
        for record in records
        if isinstance(record, CompileTimed)
    )


STAGES = {"dynamo": "Dynamo", "aot_autograd": "AOTAutograd", "inductor": "Inductor"}  # the stages of compiling


def parts_in_words(parts: Mapping[str, float]) -> str:
    """``Inductor 12 s, Dynamo 3.1 s``, the longest first; without short ones."""
    least = 0.05 * sum(parts.values())
    return ", ".join(f"{STAGES[part]} {seconds_in_words(took)}" for part, took in parts.items() if took > least)
