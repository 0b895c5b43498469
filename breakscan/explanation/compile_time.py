"""The compile time of a run: by part of the compiler, function and kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from breakscan.explanation.compilations import CompiledFrame
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.forks import clock_shifts
from breakscan.explanation.time_trees import CompilePart
from breakscan.model.findings import Origin, Site
from breakscan.model.words import seconds_in_words
from breakscan.recording.records import CompileTimed, Record


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """The time of all compilations of a function: itself, the parts of it that follow breaks, and their backward
    passes. ``parts`` do not overlap."""

    function: str
    site: Site
    origin: Origin
    compiles: int
    seconds: float
    parts: Mapping[CompilePart, float]


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The time that a Triton kernel took to compile and to autotune, where torch reports it, and the lines that it
    comes from."""

    name: str
    seconds: float
    autotuning_seconds: float
    lines: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class CompileTime:
    """Each list with what took most first."""

    parts: Mapping[CompilePart, float]
    functions: Sequence[FunctionTime]
    kernels: Sequence[KernelTime]


def compile_time(explanation: Explanation) -> CompileTime:
    """The compile time of the run, or of the lowest rank."""
    functions = _functions(explanation.compiles)
    parts: dict[CompilePart, float] = defaultdict(float)
    for function in functions:
        for part, seconds in function.parts.items():
            parts[part] += seconds
    return CompileTime(_most_first(parts), functions, _kernels(explanation))


def spent_compiling(processes: Sequence[Sequence[Record]], compiles: Iterable[CompiledFrame]) -> float:
    """The part of the run's wall time in which something was compiled.

    Of one process, with what falls outside of compilations: the first run of a graph can compile and tune kernels, and
    record CUDA graphs.  What several processes compile at the same time is not added up.
    """
    ended = [
        (record.at + shift, record.seconds)
        for records, shift in zip(processes, clock_shifts(processes), strict=True)
        for record in records
        if isinstance(record, CompileTimed)
    ]
    if sum(any(isinstance(one, CompileTimed) for one in records) for records in processes) < 2:
        return max(sum(seconds for _, seconds in ended), sum(function.seconds for function in _functions(compiles)))
    total, until = 0.0, float("-inf")
    for end, seconds in sorted(ended, key=lambda one: one[0] - one[1]):
        total += max(0.0, end - max(until, end - seconds))
        until = max(until, end)
    return total


def _functions(compiles: Iterable[CompiledFrame]) -> list[FunctionTime]:
    """Parts of a function have its name, and are in its file."""
    groups: dict[tuple[str, str], list[CompiledFrame]] = defaultdict(list)
    for compiled in compiles:
        groups[compiled.site.path, compiled.function].append(compiled)
    return sorted(map(_function, groups.values()), key=lambda function: -function.seconds)


def _function(group: Sequence[CompiledFrame]) -> FunctionTime:
    parts: dict[CompilePart, float] = defaultdict(float)
    for member in group:
        for tree in member.time:
            for node in tree.all():
                parts[node.part] += node.own_seconds
    first = min(group, key=lambda one: (one.rest_only, one.site.line))
    seconds = max(sum(one.seconds + one.backward_seconds for one in group), sum(parts.values()))
    return FunctionTime(first.function, first.site, first.origin, len(group), seconds, _most_first(parts))


def _kernels(explanation: Explanation) -> list[KernelTime]:
    lines: dict[str, dict[Site, None]] = defaultdict(dict)
    compiling: dict[str, float] = defaultdict(float)
    for graph in explanation.graphs:
        for made in graph.generated:
            for kernel in made.kernels:
                lines[kernel.name] |= dict.fromkeys(kernel.lines)
    tuning: dict[str, float] = defaultdict(float)
    for compiled in explanation.compiles:
        for name, seconds in compiled.kernel_seconds.items():
            compiling[name] += seconds
        for tree in compiled.time:
            for node in tree.all():
                if node.part is CompilePart.AUTOTUNING and node.name in lines:
                    tuning[node.name] += node.seconds
    found = [
        KernelTime(name, compiling.get(name, 0.0), tuning.get(name, 0.0), tuple(lines.get(name, ())))
        for name in {**compiling, **tuning}
    ]
    return sorted(found, key=lambda kernel: -(kernel.seconds + kernel.autotuning_seconds))


def _most_first(parts: Mapping[CompilePart, float]) -> Mapping[CompilePart, float]:
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


PART_WORDS = {
    CompilePart.TRACING: "tracing",
    CompilePart.GUARDS: "guards",
    CompilePart.AOT_AUTOGRAD: "AOTAutograd",
    CompilePart.INDUCTOR: "Inductor",
    CompilePart.KERNELS: "compiling kernels",
    CompilePart.AUTOTUNING: "autotuning",
    CompilePart.CACHES: "loading from caches",
    CompilePart.CUDA_GRAPHS: "recording CUDA graphs",
    CompilePart.OTHER: "the rest of Dynamo",
}
_LEAST_PART = 0.05
"""The least share of the time for which a part is named."""


def parts_in_words(parts: Mapping[CompilePart, float], *, all_parts: bool = False) -> str:
    """``compiling kernels 12 s, Inductor 3.1 s``, the longest first; without short ones, unless all are asked for."""
    least = 0.0 if all_parts else _LEAST_PART * sum(parts.values())
    shown = [(part, seconds) for part, seconds in parts.items() if seconds > least]
    return ", ".join(f"{PART_WORDS[part]} {seconds_in_words(seconds)}" for part, seconds in shown)
