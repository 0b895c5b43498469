"""The compile time of a run: by part of the compiler and function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from breakscan.explanation.compilations import CompiledFrame, CompilePart, most_first
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.forks import clock_shifts
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
class CompileTime:
    """Both with what took most first."""

    parts: Mapping[CompilePart, float]
    functions: Sequence[FunctionTime]


def compile_time(explanation: Explanation) -> CompileTime:
    """The compile time of the run, or of the lowest rank."""
    functions = _functions(explanation.compiles)
    parts: dict[CompilePart, float] = defaultdict(float)
    for function in functions:
        for part, seconds in function.parts.items():
            parts[part] += seconds
    return CompileTime(most_first(parts), functions)


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
        for part, spent in member.parts.items():
            parts[part] += spent
    first = min(group, key=lambda one: (one.rest_only, one.site.line))
    seconds = max(sum(one.seconds + one.backward_seconds for one in group), sum(parts.values()))
    return FunctionTime(first.function, first.site, first.origin, len(group), seconds, most_first(parts))


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
