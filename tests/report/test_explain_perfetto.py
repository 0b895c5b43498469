"""The trace of ``explain`` for Perfetto."""

from __future__ import annotations

import json
from typing import Any

import explain_results as made
import pytest

from breakscan.explanation.breaks import part_words
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.run_totals import CompileSpan, RunTotals, Timeline

SPAN = CompileSpan("0/1", "Block.forward", made.SITE, True, 2.0, 0.5, {"dynamo": 0.5})


def written(told: Explanation) -> Any:
    text = made.written("perfetto", told)
    assert text.isascii()
    return json.loads(text)


def slices(trace: Any, rank: int) -> list[tuple[str, int, float, float]]:
    events = (event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == rank)
    return [(event["name"], event["tid"], event["ts"], event["dur"]) for event in events]


def test_what_was_compiled_and_ran_in_microseconds() -> None:
    timeline = Timeline(1000.0, [SPAN], ["Block.forward", None], [RunTotals(0, 3.0, 0.001), RunTotals(1, 3.5, 0.002)])
    trace = written(made.explanation(breaks=(), timelines={0: timeline}))
    assert slices(trace, 0) == [
        ("the rest of Block.forward", 1, 2e6, 0.5e6),
        ("Block.forward (graph 0)", 2, 3e6, 1e3),
        ("a function (graph 1)", 2, 3.5e6, 2e3),
    ]
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"]
    assert names == ["program", "compiling", "graphs"]
    (compiled,) = (event for event in trace["traceEvents"] if event["name"] == "the rest of Block.forward")
    assert compiled["args"] == {
        "compile_id": "0/1",
        "at": "src/model.py:3",
        "compiled_again_because": "x.shape[0] was 32, then 31",
        "seconds_by_phase": {"dynamo": 0.5},
    }
    assert trace["otherData"]["report"].startswith("train.py finished with exit status 0")


def test_ranks_share_one_time_line() -> None:
    ranks = {rank: Timeline(1000.0 + rank, [SPAN], [], []) for rank in (0, 1)}
    trace = written(made.explanation(breaks=(made.BREAK,), timelines=ranks))
    assert [at for _, _, at, _ in slices(trace, 1)] == [3e6]
    assert ("long pass at src/model.py:3: rank 1 compiled", 2, 41.5e6, 3.8e6) in slices(trace, 0)
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert names == ["rank 0", "rank 1"]


def test_a_program_without_ranks_has_the_time_line_of_its_explanation() -> None:
    told = made.explanation(breaks=(), timelines={})
    assert [name for name, *_ in slices(written(told), 0)] == [
        *(part_words(one) for one in told.compiles),
        *(f"{told.graphs[run.graph].function or 'a function'} (graph {run.graph})" for run in told.runs),
    ]
    assert told.runs


@pytest.mark.parametrize("timelines", [{}, {0: Timeline(None, [], [], [])}])
def test_without_times_it_is_an_empty_trace(timelines: Any) -> None:
    trace = written(made.explanation(breaks=(), compiles=(), runs=(), timelines=timelines))
    assert not slices(trace, 0)
