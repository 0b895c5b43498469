"""The report of ``explain --caches``: compiler caches that one process has filled, in other processes.
``schemas/caches.schema.json`` describes the JSON."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TextIO

from breakscan.explanation.compilations import CompiledFrame, compile_time
from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Site
from breakscan.model.problem import ProblemKind
from breakscan.model.remedy import remedies_in_words
from breakscan.model.words import grouped, place, position, seconds_in_words
from breakscan.recording.records import AutogradGraph, CacheLooked, Record
from breakscan.recording.traced import GRAPH_PART
from breakscan.report.measured_page import MeasuredPage, PageRow
from breakscan.report.printable import visible, write_json
from breakscan.source.paths import display_path

_PARTS = {
    GRAPH_PART: "the graph",
    "example_inputs": "sizes, strides, types or devices of its inputs",
    "inductor_config": "settings of torch._inductor.config",
}
"""Parts of a key, in words; others have their names in torch."""
_CONSTANT = "what differs from run to run is part of the graph: if it is a number, pass it to the function in a tensor"


@dataclass(frozen=True, slots=True)
class CachedFunction:
    """A function: the seconds that compiling it took in each run, and what each run after the first found, by cache."""

    function: str
    site: Site
    seconds: Sequence[float]
    found: Sequence[str]


@dataclass(frozen=True, slots=True)
class CacheProblem:
    """A compilation that no cache saves: a bypass stores nothing; a miss has another key than the run before."""

    site: Site
    why: str
    remedy: str | None


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Runs of one program in processes of their own: the first with empty caches, the second with those of the first,
    and one with nothing but the ``bundle``, if there is one.  ``seconds`` are those of compiling, ``wall`` those of the
    whole runs; ``traced`` are those in which Dynamo traced in the second, which no cache saves."""

    program: str
    seconds: Sequence[float]
    wall: Sequence[float]
    traced: float
    functions: Sequence[CachedFunction]
    problems: Sequence[CacheProblem]
    bundle: str | None = None
    bundle_bytes: int | None = None


def cold_start(
    program: str, explained: Sequence[Explanation], second: Sequence[Record], bundle: str | None, size: int | None
) -> ColdStart:
    """Compares the runs; ``second`` are the records of the second."""
    groups = [grouped(((one.site.path, one.function), one) for one in run.compiles) for run in explained]
    functions = [
        CachedFunction(
            first[0].function,
            first[0].site,
            [sum(c.seconds + c.backward_seconds for c in group.get(key, ())) for group in groups],
            [_found(use for c in group.get(key, ()) for use in c.caches) for group in groups[1:]],
        )
        for key, first in groups[0].items()
    ]
    bypassed = [
        CacheProblem(one.site, f"{one.what}: {one.why}", remedies_in_words(one.remedies))
        for one in explained[0].problems
        if one.kind is ProblemKind.CACHE_BYPASS
    ]
    missed = [
        CacheProblem(new.site, why, helps)
        for key, again in groups[1].items()
        for old, new in zip(groups[0].get(key, ()), again, strict=False)
        for why, helps in _missed(old, new, second)
    ]
    return ColdStart(
        program,
        [one.compile_seconds for one in explained],
        [one.seconds or 0.0 for one in explained],
        compile_time(explained[1].compiles).parts.get("dynamo", 0.0),
        sorted(functions, key=lambda one: -one.seconds[1]),
        [*bypassed, *dict.fromkeys(missed)],
        bundle,
        size,
    )


def _found(uses: Iterator[CacheLooked]) -> str:
    counts = Counter((use.cache, use.outcome) for use in uses)
    words = (f"{cache} {outcome}{f' {n}×' if n > 1 else ''}" for (cache, outcome), n in sorted(counts.items()))
    return ", ".join(words) or "no cache is asked"


def _missed(first: CompiledFrame, second: CompiledFrame, records: Sequence[Record]) -> Iterator[tuple[str, str | None]]:
    """The lookups that the caches of the first run did not answer in the second, and what differs in their keys."""
    for old, new in zip(first.caches, second.caches, strict=False):
        if new.outcome != "miss" or old.outcome != "miss":
            continue
        names = [name for name in {**new.parts, **old.parts} if new.parts.get(name) != old.parts.get(name)]
        rows = [name[1:] for name in names if name.startswith("%")]
        parts = [f"{name} ({_PARTS[name]})" if name in _PARTS else name for name in names if not name.startswith("%")]
        what = f"misses the {new.cache} cache"
        if rows and (line := _line(second.compile_id, rows, records)):
            yield f"{what}: the graph is another one than in the first run, from {line} on", _CONSTANT
        elif parts or new.reason or new.parts:
            why = f"its key differs in {', '.join(parts)}" if parts else new.reason
            yield f"{what}: {why or 'its key is the same, and nothing was stored'}", None


def _line(compile_id: str, rows: Sequence[str], records: Sequence[Record]) -> str | None:
    """The first line of the program that one of these values of a graph comes from, with its text."""
    for graph in records:
        if isinstance(graph, AutogradGraph) and graph.compile_id == compile_id:
            for node in graph.nodes:
                if node.name in rows and node.line is not None:
                    line = graph.lines[node.line]
                    return f"{display_path(line.place.path, os.getcwd())}:{line.place.line} ({line.code})"
    return None


def caches_page(start: ColdStart) -> MeasuredPage:
    """The parts of the report: each function with its seconds and what it found, then what was not found and why."""
    cold, warm, *rest = map(seconds_in_words, start.seconds)
    table: list[tuple[str, Sequence[float], Sequence[str]]] = [
        ("whole program", start.wall, ()),
        ("compiling", start.seconds, ()),
    ]
    table += [(visible(f"{one.function} {place(one.site)}"), one.seconds, one.found) for one in start.functions]
    rows = [
        PageRow(label, [*map(seconds_in_words, seconds)], "; ".join(dict.fromkeys(found)), is_code=bool(found))
        for label, seconds, found in table
    ]
    problems = [
        (f"{position(one.site)} ", visible(". ".join(filter(None, (one.why, one.remedy and f"Instead: {one.remedy}")))))
        for one in start.problems
    ]
    dynamo = f"Of the {warm}, Dynamo took {seconds_in_words(start.traced)}: no cache saves its tracing."
    code: list[str] = []
    ending = ""
    if start.bundle is not None:
        ending = (
            f"{visible(start.bundle)} holds what was stored, {start.bundle_bytes or 0:,} bytes. A process with empty "
            f"caches that loaded it compiled for {rest[0]} instead of {cold}. To load it, write before the first call:"
        )
        code = [f"with open({start.bundle!r}, 'rb') as file:", "    torch.compiler.load_cache_artifacts(file.read())"]
    return MeasuredPage(
        "caches",
        f"{visible(start.program)} compiles for {cold} with empty caches, and for {warm} with those of the run before",
        ("", *("first", "second", "bundle")[: len(start.seconds)], "found"),
        rows,
        paragraphs=[*problems, ("", dynamo)],
        ending=ending,
        code=code,
    )


def write_caches_json(start: ColdStart, stream: TextIO) -> None:
    write_json({"schema": 1, **asdict(start)}, stream)
