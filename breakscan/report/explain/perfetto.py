"""A run as a trace for ``ui.perfetto.dev`` and ``chrome://tracing``: what was compiled and which graphs ran, on one
time line, a process for each rank.

The format is the JSON of Chrome's trace events: times and durations are in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from breakscan.explanation.breaks import part_words
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.recompiles import recompile_sentence
from breakscan.explanation.run_totals import CompileSpan, Timeline, timeline
from breakscan.model.words import place
from breakscan.report.explain.report import ExplainReport
from breakscan.report.explain.summary import outcome_line
from breakscan.report.printable import visible

_COMPILING, _RUNNING = 1, 2
"""Threads of the trace."""
_THREADS = {_COMPILING: "compiling", _RUNNING: "graphs"}
_Event = dict[str, Any]


def write_explain_perfetto(report: ExplainReport, stream: TextIO) -> None:
    """Writes one JSON object, ASCII only, an event a line."""
    explanation = report.explanation
    stream.write('{"traceEvents": [\n')
    for number, event in enumerate(_events(explanation)):
        stream.write(f"{',' if number else ''}{json.dumps(event)}\n")
    arguments = json.dumps({"report": visible(outcome_line(explanation))})
    stream.write(f'], "displayTimeUnit": "ms", "otherData": {arguments}}}\n')


def _events(explanation: Explanation) -> Iterator[_Event]:
    # A program without ranks has the time line of its explanation.
    alone = timeline(explanation.began, explanation.compiles, explanation.graphs, explanation.runs)
    timelines = explanation.timelines or {0: alone}
    first = min((one.began for one in timelines.values() if one.began is not None), default=0.0)
    why = {one.compile_id: recompile_sentence([one]) for one in explanation.recompiles}
    later_by_rank = {rank: (one.began or first) - first for rank, one in sorted(timelines.items())}
    for rank, later in later_by_rank.items():
        own = timelines[rank]
        yield from _names(rank, f"rank {rank}" if len(timelines) > 1 else "program")
        for span in own.compiles:
            yield _compilation(rank, span, later, why)
        for run in own.runs:
            yield _slice(rank, _RUNNING, _graph_name(own, run.graph), later + run.at, run.seconds, {})
    # Breaks that all ranks have are shown for the first rank.
    told_of = min(timelines)
    for site in explanation.breaks:
        longest = site.price.longest if site.price else None
        if longest is not None:
            meanwhile = "" if longest.for_rank is None else f": rank {longest.for_rank} compiled"
            name = f"long pass at {place(site.site)}{meanwhile}"
            yield _slice(told_of, _RUNNING, name, later_by_rank[told_of] + longest.at, longest.seconds, {})


def _names(rank: int, name: str) -> Iterator[_Event]:
    yield {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": name}}
    for thread, words in _THREADS.items():
        yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": words}}


def _compilation(rank: int, span: CompileSpan, later: float, why: Mapping[str, str]) -> _Event:
    reason = why.get(span.compile_id)
    arguments = {
        "compile_id": span.compile_id,
        "at": visible(place(span.site)),
        **({"compiled_again_because": visible(reason)} if reason else {}),
        "seconds_by_phase": {phase: round(seconds, 6) for phase, seconds in span.phases.items()},
    }
    return _slice(rank, _COMPILING, part_words(span), later + span.at, span.seconds, arguments)


def _graph_name(own: Timeline, graph: int) -> str:
    function = own.graphs[graph] if graph < len(own.graphs) else None
    return f"{function or 'a function'} (graph {graph})"


def _slice(rank: int, thread: int, name: str, at: float, seconds: float, arguments: Mapping[str, Any]) -> _Event:
    return {
        "ph": "X",
        "pid": rank,
        "tid": thread,
        "name": visible(name),
        "ts": round(at * 1e6, 3),
        "dur": round(seconds * 1e6, 3),
        "args": dict(arguments),
    }
