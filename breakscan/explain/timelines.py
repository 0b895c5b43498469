"""When what was compiled and run, rank by rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from breakscan.explain.compiled import CompiledFrame, Graph, RunTotals
from breakscan.model.findings import Site


@dataclass(frozen=True, slots=True)
class CompileSpan:
    """One compilation: of which function, when it began, in seconds since the recording did, and how long it took."""

    compile_id: str
    function: str
    site: Site
    rest_only: bool
    at: float
    seconds: float
    phases: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What one rank compiled and ran.

    ``began`` is when its recording began, in seconds since the epoch; ``graphs`` are the functions of its graphs, by
    number; ``runs`` are the first runs of graphs.
    """

    began: float | None
    compiles: Sequence[CompileSpan]
    graphs: Sequence[str | None]
    runs: Sequence[RunTotals]


def timeline(
    began: float | None, compiles: Iterable[CompiledFrame], graphs: Iterable[Graph], runs: Sequence[RunTotals]
) -> Timeline:
    """That of one rank, without guards and kernels: a report holds those of all ranks."""
    spans = [
        CompileSpan(one.compile_id, one.function, one.site, one.rest_only, one.at, one.seconds, one.phases)
        for one in compiles
    ]
    return Timeline(began, spans, [graph.function for graph in graphs], runs)
