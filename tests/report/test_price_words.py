"""What breaks cost, in words that add up."""

from __future__ import annotations

from dataclasses import replace

from explain_results import BREAK, PRICE, explanation, written

from breakscan.explanation.run_totals import Calls
from breakscan.model.findings import Verdict
from breakscan.report.explain.summary import ceiling_sentence

STACK = BREAK.stack
OUTER = STACK[0].function or ""


def report(price: float, verdict: Verdict = Verdict.SPLITS) -> str:
    """Ten calls of 10 ms each, of which 6 ms lie outside graphs, 1 ms behind breaks."""
    site = replace(BREAK, verdict=verdict, price=replace(PRICE, passes=10, host_seconds=price, device_seconds=None))
    told = explanation(breaks=[site], frames=[], calls=(Calls(OUTER, 10, 0.1, 0.04, 0.01),))
    return " ".join(written("terminal", told).split())


def test_a_share_of_the_time_in_calls_is_told() -> None:
    assert "10 passes, 10% of the time in calls" in report(0.001)


def test_no_share_where_passes_took_longer_than_the_steady_calls() -> None:
    assert "7.0 ms a pass" in report(0.007)
    assert "of the time in calls" not in report(0.007)


def test_what_leads_to_a_function_that_runs_eager_can_save_all_outside_graphs() -> None:
    assert "at most 1.0 of 10.0 ms" in report(0.001)
    assert "at most 6.0 of 10.0 ms" in report(0.001, Verdict.EAGER)


def test_there_is_no_ceiling_without_breaks() -> None:
    assert ceiling_sentence(explanation(breaks=[], frames=[])) is None


def on_device(host: float, device: float | None, gaps: float = 0.05) -> str:
    """As :func:`report`, with a wait for the device at each of ten passes."""
    price = replace(PRICE, passes=10, host_seconds=host, device_seconds=device, waits=True)
    site = replace(BREAK, verdict=Verdict.SPLITS, price=price)
    told = explanation(breaks=[site], frames=[], calls=(Calls(OUTER, 10, 0.1, 0.04, gaps),))
    return " ".join(written("terminal", told).split())


def test_waiting_for_the_device_is_no_cost_of_the_break() -> None:
    """The host waits 5 ms for the graph before, which has to run anyhow; the device idles for 1 ms."""
    said = on_device(0.005, 0.001)
    assert "Costs: 1.0 ms of the device's time a pass, 10 passes, 10% of the time in calls" in said
    assert "the host spends 5.0 ms there and waits for the device" in said
    assert "could save at most 1.0 of 10.0 ms" in said


def test_where_the_device_was_not_timed_the_host_is_what_is_known() -> None:
    said = on_device(0.005, None)
    assert "Costs: 5.0 ms a pass, 10 passes, 50% of the time in calls" in said
    assert "could save at most 5.0 of 10.0 ms" in said


def test_a_pass_costs_no_more_than_the_host_spends_in_it() -> None:
    assert "Costs: 1.0 ms of the device's time a pass" in on_device(0.001, 0.004, gaps=0.01)


def test_there_is_no_ceiling_where_no_graph_runs() -> None:
    site = replace(BREAK, verdict=Verdict.EAGER, price=replace(PRICE, passes=10, host_seconds=0.01))
    calls = Calls(OUTER, 10, seconds=0.1, graph_seconds=0.0, gap_seconds=0.0)
    assert ceiling_sentence(explanation(breaks=[site], frames=[], calls=(calls,))) is None
    assert ceiling_sentence(explanation(breaks=[site], frames=[], calls=(replace(calls, graph_seconds=0.01),)))


def test_a_wait_is_told_only_where_the_host_spends_more_than_the_device() -> None:
    assert "the host spends" not in on_device(0.00501, 0.005)
    assert "the host waits for the device there" in on_device(0.00501, 0.005)
