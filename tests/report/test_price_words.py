"""What was seen of the cost of breaks, in words that promise nothing."""

from dataclasses import replace

import pytest
from explain_results import BREAK, FRAME, PRICE, explanation, written

from breakscan.explanation.run_totals import Calls
from breakscan.model.findings import Verdict
from breakscan.report.explain.summary import calls_sentence

OUTER = BREAK.stack[0].function or ""
CALLS = Calls(OUTER, 10, 0.1, 0.04, 0.01)
"""Ten calls of 10 ms each, of which 6 ms lie outside graphs, 1 ms after breaks."""
SPLITS = replace(BREAK, verdict=Verdict.SPLITS)


def test_what_leads_to_a_function_that_runs_eager_is_all_outside_graphs() -> None:
    splits = calls_sentence(explanation(breaks=[SPLITS], frames=[], calls=(CALLS,))) or ""
    eager = calls_sentence(explanation(breaks=[BREAK], frames=[], calls=(CALLS,))) or ""
    assert splits.startswith(f"1.0 of 10.0 ms a call of {OUTER} pass between graphs")
    assert eager.startswith(f"6.0 of 10.0 ms a call of {OUTER} pass outside graphs")


@pytest.mark.parametrize(
    ("breaks", "calls"),
    [
        ([], CALLS),
        ([BREAK], replace(CALLS, graph_seconds=0.0)),
        ([BREAK], replace(CALLS, calls=1)),
        ([SPLITS], replace(CALLS, gap_seconds=0.0)),
    ],
    ids=["without breaks", "without graphs", "called once", "nothing after breaks"],
)
def test_nothing_is_said_without_breaks_graphs_or_time(breaks: list[object], calls: Calls) -> None:
    assert calls_sentence(explanation(breaks=breaks, frames=[], calls=(calls,))) is None


def test_a_wait_is_the_device_time_and_what_the_host_spends_more() -> None:
    """The host waits 5 ms for the graph before, which has to run anyhow; the device idles for 1 ms."""
    waits = replace(PRICE, passes=10, host_seconds=0.005, device_seconds=0.001, compile_seconds=0.0)
    assert waits.words == (
        "1.0 ms a pass between graphs on the device, 10 passes; the host spends 5.0 ms there and waits for the device"
    )
    assert "the host spends" not in replace(waits, host_seconds=0.00101).words
    assert replace(waits, host_seconds=0.0005).seconds == 0.0005, "no more than the host spends"
    assert replace(waits, device_seconds=None).words.startswith("5.0 ms a pass between graphs, 10 passes; the host wa")


def test_calls_that_run_eager_are_called_that() -> None:
    calls = replace(PRICE, passes=10, eager=True, waits=False, compile_seconds=0.0)
    assert calls.words == "1.2 ms a call eager, 10 calls"
    assert replace(calls, passes=1).words == "1.2 ms eager in the only call that was timed"
    assert "1.2 ms a call eager" in written("terminal", explanation(breaks=[], frames=[replace(FRAME, price=calls)]))
