"""The compile time of a run: by stage of the compiler and function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from breakscan.explanation.compilations import CompiledFrame, most_first
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
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CompileTime:
    """Both with what took most first."""

    parts: Mapping[str, float]
    functions: Sequence[FunctionTime]


def compile_time(explanation: Explanation) -> CompileTime:
    """The compile time of the run, or of the lowest rank."""
    # Parts of a function have its name, and are in its file.
    groups: dict[tuple[str, str], list[CompiledFrame]] = defaultdict(list)
    for compiled in explanation.compiles:
        groups[compiled.site.path, compiled.function].append(compiled)
    functions = sorted(map(_function, groups.values()), key=lambda function: -function.seconds)
    return CompileTime(most_first(chain.from_iterable(one.parts.items() for one in functions)), functions)


def _function(group: Sequence[CompiledFrame]) -> FunctionTime:
    first = min(group, key=lambda one: (one.rest_only, one.site.line))
    seconds = sum(one.seconds + one.backward_seconds for one in group)
    parts = most_first(chain.from_iterable(one.parts.items() for one in group))
    return FunctionTime(first.function, first.site, first.origin, len(group), seconds, parts)


def spent_compiling(processes: Sequence[Sequence[Record]]) -> float:
    """The part of the run's wall time in which something was compiled: what several processes compile at the same time
    is not added up."""
    ended = [
        (record.at + shift, record.seconds)
        for records, shift in zip(processes, clock_shifts(processes), strict=True)
        for record in records
        if isinstance(record, CompileTimed)
    ]
    total, until = 0.0, float("-inf")
    for end, seconds in sorted(ended, key=lambda one: one[0] - one[1]):
        total += max(0.0, end - max(until, end - seconds))
        until = max(until, end)
    return total


STAGES = {"dynamo": "Dynamo", "aot_autograd": "AOTAutograd", "inductor": "Inductor"}
"""The words for the stages of compiling."""


def parts_in_words(parts: Mapping[str, float]) -> str:
    """``Inductor 12 s, Dynamo 3.1 s``, the longest first; without short ones."""
    least = 0.05 * sum(parts.values())
    return ", ".join(f"{STAGES[part]} {seconds_in_words(took)}" for part, took in parts.items() if took > least)
