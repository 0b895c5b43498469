"""The graphs that were compiled, as reports show them."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.explain.compiled import Graph
from breakscan.explain.context import ExplainContext
from breakscan.record.records import GraphCompiled


def reported_graph(number: int, graph: GraphCompiled, lens: ExplainContext) -> Graph:
    """A graph without what running it took, and without what the backend made of it."""
    lines = (node.line for node in graph.nodes if node.line is not None)
    return Graph(
        number=number,
        compile_id=graph.compile_id or "",
        function=lens.function_of(graph.frame),
        site=lens.site_of(graph.frame),
        ops=graph.ops,
        devices=graph.devices,
        lines=tuple(dict.fromkeys(lens.sources.site(line.path, line.line) for line in lines)),
        ended_by=None,
        runs=None,
        seconds=None,
        device_seconds=None,
        compile_seconds=graph.seconds or None,
        generated=(),
        split_by_ddp=(),
    )


def traced_lines(graphs: Iterable[GraphCompiled], lens: ExplainContext) -> dict[str, list[int]]:
    """The lines that operations of graphs come from, by file."""
    lines: dict[str, set[int]] = {}
    for line in (node.line for graph in graphs for node in graph.nodes if node.line is not None):
        lines.setdefault(line.path, set()).add(line.line)
    return {lens.sources.show(path): sorted(found) for path, found in lines.items()}
