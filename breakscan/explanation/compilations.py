"""Compilations of functions: the time that each took and for what, and the guards under which its code holds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from breakscan.explanation.context import ExplainContext
from breakscan.explanation.forks import clock_shifts
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller
from breakscan.model.words import counted
from breakscan.recording.parsers.frames import is_resumed
from breakscan.recording.parsers.guards import read_demand, readable
from breakscan.recording.records import (
    CacheLooked,
    CompileStarted,
    CompileTimed,
    Guard,
    GuardsBuilt,
    PackageInstalled,
    PythonMade,
    Record,
    ShapeSpecialised,
    SpansTimed,
)


class CompilePart(str, Enum):
    """The parts of the compiler."""

    TRACING = "tracing"
    """Dynamo goes through the program's code."""
    GUARDS = "guards"
    AOT_AUTOGRAD = "aot-autograd"
    INDUCTOR = "inductor"
    """Its passes, and the code that it generates."""
    KERNELS = "kernels"
    """Triton's compiler, or the one for C++."""
    AUTOTUNING = "autotuning"
    CACHES = "caches"
    """Loading what an earlier compilation has left."""
    CUDA_GRAPHS = "cuda-graphs"
    """Recording them."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class GuardLine:
    """A guard of a compiled function: torch's kind of it, what has to hold, and the line that asked for it."""

    kind: str
    text: str
    site: Site | None


_Rest = tuple[str, str, int | None]
"""The rest of a function: its file, Dynamo's name for it, the line at which it goes on."""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A compiler cache that was asked, what it had (``hit``, ``miss``, ``bypass``, ``disabled``), and why, where torch
    says that: torch's own text of a bypass."""

    cache: str
    outcome: str
    reason: str | None


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

    ``rest_only`` says that it is the part after a break; ``failed`` what ended it without compiled code.  ``parts`` is
    what it spent its time on, with its backward, and with what its graphs did when they first ran: these do not
    overlap.  ``made`` is what Dynamo made of it, as Python.
    """

    compile_id: str
    function: str
    site: Site
    origin: Origin
    rest_only: bool
    at: float
    seconds: float
    backward_seconds: float
    parts: Mapping[CompilePart, float]
    guards: Sequence[GuardLine]
    guard_count: int | None
    guard_seconds: float | None
    caches: Sequence[CacheUse]
    restarts: Sequence[str]
    failed: str | None
    made: Sequence[MadeLine] = ()


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


def compiled_frames(processes: Sequence[Sequence[Record]], context: ExplainContext) -> list[CompiledFrame]:
    """The compilations of all processes, in the order in which they began."""
    found = [
        frame
        for records, shift in zip(processes, clock_shifts(processes), strict=True)
        for frame in _frames(records, shift, context)
    ]
    return sorted(found, key=lambda frame: frame.at)


def _frames(records: Sequence[Record], shift: float, context: ExplainContext) -> Iterable[CompiledFrame]:
    started = {r.compile_id: r for r in records if isinstance(r, CompileStarted)}
    timed: dict[str, list[CompileTimed]] = defaultdict(list)
    caches: dict[str, list[CacheUse]] = defaultdict(list)
    guards: dict[str | None, GuardsBuilt] = {}
    spans: dict[str, list[SpansTimed]] = defaultdict(list)
    made: dict[str, PythonMade] = {}
    rests: dict[_Rest, list[str]] = defaultdict(list)
    for record in records:
        if isinstance(record, CompileTimed):
            timed[record.compile_id].append(record)
        elif isinstance(record, GuardsBuilt):
            guards[record.compile_id] = record
        elif isinstance(record, CacheLooked):
            caches[record.compile_id].append(_cache_use(record))
        elif isinstance(record, SpansTimed):
            spans[record.compile_id].append(record)
        elif isinstance(record, PythonMade) and (begun := started.get(record.compile_id or "")):
            made[begun.compile_id] = record
            rests[begun.code.path, begun.code.name, record.goes_on].append(begun.compile_id)
    for compile_id, times in timed.items():
        begun = started.get(compile_id)
        if begun is not None:
            generated = {use.outcome for use in caches[compile_id] if use.cache == "fx_graph"}
            parts = time_by_part(spans[compile_id], is_cached=generated == {"hit"})
            frame = _frame(begun, times, guards.get(compile_id), caches[compile_id], parts, shift, context)
            if compile_id in made:
                ops = next((one.ops for one in times if not one.backward), None)
                frame = replace(frame, made=tuple(_made_lines(made[compile_id], begun.code.path, ops, rests, context)))
            yield frame


_LOADING = "PyCodeCache.load_by_key_path"
_PARTS = {
    "bytecode_tracing": CompilePart.TRACING,
    "build_guards": CompilePart.GUARDS,
    "backend_compile": CompilePart.AOT_AUTOGRAD,
    "create_aot_dispatcher_function": CompilePart.AOT_AUTOGRAD,
    "entire_backward_compile": CompilePart.AOT_AUTOGRAD,
    "min_cut_rematerialization_partition": CompilePart.AOT_AUTOGRAD,
    "compile_fx.<locals>.fw_compiler_base": CompilePart.INDUCTOR,
    "compile_fx.<locals>.bw_compiler": CompilePart.INDUCTOR,
    "inductor_compile": CompilePart.INDUCTOR,
    "inductor_import": CompilePart.INDUCTOR,
    "_recursive_pre_grad_passes": CompilePart.INDUCTOR,
    "_recursive_joint_graph_passes": CompilePart.INDUCTOR,
    "_recursive_post_grad_passes": CompilePart.INDUCTOR,
    "async_compile.wait": CompilePart.KERNELS,
    "async_compile.precompile": CompilePart.KERNELS,
    "compile_file": CompilePart.KERNELS,
    "AotCodeCompiler.compile": CompilePart.KERNELS,
    "reload_kernel_in_parent": CompilePart.KERNELS,
    "CachingAutotuner.slow_precompile_config": CompilePart.KERNELS,
    "CachingAutotuner.benchmark_all_configs": CompilePart.AUTOTUNING,
    "CachingAutotuner.coordinate_descent_tuning": CompilePart.AUTOTUNING,
    "CachingAutotuner.combo_sequential_autotune": CompilePart.AUTOTUNING,
    "benchmark_fused_nodes": CompilePart.AUTOTUNING,
    "benchmark_codegened_module": CompilePart.AUTOTUNING,
    "AOTAutogradCache.inductor_load": CompilePart.CACHES,
    "TritonBundler.read_and_emit": CompilePart.CACHES,
    "inductor_codecache_torch_key": CompilePart.CACHES,
    "CacheBase.get_system.triton_key": CompilePart.CACHES,
    "CUDAGraphNode.record": CompilePart.CUDA_GRAPHS,
    "cudagraphify.get_container": CompilePart.CUDA_GRAPHS,
}
"""The parts of torch's spans, by name.  Any other is part of what is around it."""
_TEMPLATES = ("_template_autotuning", "_template_precompiling")


def time_by_part(spans: Iterable[SpansTimed], *, is_cached: bool = False) -> Mapping[CompilePart, float]:
    """The seconds of one compilation, its backward and what its graphs did when they first ran, by part.

    Where all code was out of caches (``is_cached``), no kernel is compiled: to load one can take as long as to compile
    it, as Inductor finds out about the C++ compiler first.
    """
    seconds: dict[CompilePart, float] = defaultdict(float)
    for record in spans:
        at_depth: dict[int, CompilePart] = {}
        for name, depth, whole in zip(record.names, record.depths, record.seconds, strict=False):
            around = at_depth.get(depth - 1, CompilePart.OTHER)
            part = _part_of(name, around)
            if part is CompilePart.KERNELS and (is_cached or around is CompilePart.CACHES):
                part = CompilePart.CACHES
            at_depth[depth] = part
            seconds[part] += whole
            if depth:
                seconds[around] -= whole
    return most_first({part: time for part, time in seconds.items() if time > 0})


def _part_of(name: str, around: CompilePart) -> CompilePart:
    if name == _LOADING:
        # It runs the generated module, which has its kernels compiled, or finds them in a cache.
        return CompilePart.KERNELS
    return CompilePart.AUTOTUNING if name.endswith(_TEMPLATES) else _PARTS.get(name, around)


def most_first(parts: Mapping[CompilePart, float]) -> Mapping[CompilePart, float]:
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


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


def _cache_use(looked: CacheLooked) -> CacheUse:
    if looked.guards is None:
        return CacheUse(looked.cache, looked.outcome, looked.reason)
    held = f": {looked.guards}" if looked.guards else ""
    return CacheUse(looked.cache, looked.outcome, f"what is stored holds for other sizes{held}")


def _frame(
    begun: CompileStarted,
    times: Sequence[CompileTimed],
    built: GuardsBuilt | None,
    caches: Sequence[CacheUse],
    parts: Mapping[CompilePart, float],
    shift: float,
    context: ExplainContext,
) -> CompiledFrame:
    own = next((timed for timed in times if not timed.backward), None)
    return CompiledFrame(
        compile_id=begun.compile_id,
        function=context.function_of(begun.code),
        site=context.site_of(begun.code),
        origin=context.origin(begun.code.path),
        rest_only=is_resumed(begun.code.name),
        at=begun.at + shift,
        seconds=own.seconds if own else 0.0,
        backward_seconds=sum(timed.seconds for timed in times if timed.backward),
        parts=parts,
        guards=tuple(dict.fromkeys(_guard_line(guard, context) for guard in built.guards)) if built else (),
        guard_count=own.guards if own else None,
        guard_seconds=built.check_seconds if built else None,
        caches=tuple(caches),
        restarts=tuple(reason.partition("\n")[0] for reason in own.restarts) if own else (),
        failed=own.failed if own else None,
    )


def _guard_line(guard: Guard, context: ExplainContext) -> GuardLine:
    line = guard.line
    site = context.sources.site(line.path, line.line, line.column, line.end_column) if line else None
    return GuardLine(guard.kind, read_demand(guard.kind, guard.text), site)


def precompiled(records: Iterable[Record], context: ExplainContext) -> list[Precompiled]:
    """Each function once, in order, with the line that asked for it."""
    found: dict[Precompiled, None] = {}
    for record in records:
        if isinstance(record, PackageInstalled):
            caller = next(iter(reversed(context.callers(record.stack))), None)
            for code in record.codes:
                if context.origin(code.path) is not Origin.FRAMEWORK and not is_resumed(code.name):
                    found[Precompiled(context.function_of(code), context.site_of(code), caller)] = None
    return list(found)


_CONSEQUENCE = "find"
"""Torch's word for a size that had to equal one which is a constant by now."""
_NUMBER = re.compile(r"-?\d+$")
_REASONS = {
    "guard_int": "the code needs it as a Python number",
    "guard_bool": "the code compares it with a number, and goes on as the comparison said",
}


def specialisations(
    records: Iterable[Record], started: Mapping[str, CompileStarted], context: ExplainContext
) -> list[Specialisation]:
    """The specialisations, each once, in the order of the compiler.  ``started`` holds the frame of each compile."""
    found = {
        (record.compile_id, record.symbol): _specialisation(record, started, context)
        for record in records
        if isinstance(record, ShapeSpecialised) and _is_users(record, context)
    }
    return list(found.values())


def _is_users(record: ShapeSpecialised, context: ExplainContext) -> bool:
    """Return whether the program's own code could have kept the size dynamic.

    It could not where an operation's operands have to match, as a matrix and its weight, or where torch's own modules
    check that; compiled autograd's sizes are not the program's; floats are not sizes.
    """
    if record.reason == _CONSEQUENCE or record.asked_by == "expect_true" or record.compile_id.startswith("!"):
        return False
    if not (record.sources and record.stack and _NUMBER.match(record.value)):
        return False
    in_torch = context.origin(record.stack[-1].path) is Origin.FRAMEWORK
    return record.asked_by == "guard_int" or not in_torch


def _specialisation(
    record: ShapeSpecialised, started: Mapping[str, CompileStarted], context: ExplainContext
) -> Specialisation:
    own = [frame for frame in record.stack if context.origin(frame.path) is not Origin.FRAMEWORK]
    where = (own or list(record.stack))[-1]
    begun = started.get(record.compile_id)
    return Specialisation(
        compile_id=record.compile_id,
        sources=tuple(readable(source) for source in record.sources),
        value=record.value,
        reason=_REASONS.get(record.asked_by or "", "the code depends on it"),
        site=context.sources.site(where.path, where.line, where.column, where.end_column),
        function=context.function_of(begun.code) if begun else context.function(where.path, where.line, where.name),
    )
