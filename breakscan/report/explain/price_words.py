"""What breaks and recompiles cost, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakscan.explain.compiled import Calls, LongPass, Price
from breakscan.explain.explanation import BreakSite, Explanation, FrameStatus, Recompile
from breakscan.explain.run_costs import CostKind, run_costs
from breakscan.model.findings import Verdict
from breakscan.model.words import counted, duration, part_of, seconds_in_words

_MOST_NAMED = 3
_WORST_FIRST = (Verdict.RAISES, Verdict.EAGER, Verdict.SPLITS)
_WORTH_SAYING = 0.01
"""The part of the calls' time below which a saving is not worth a word."""
_ENOUGH = 8
"""Passes from which on it is worth a word how much they vary."""
_WIDE = 1.5
_NOTABLY = 1.05
"""How many times as long the host takes before that is worth a word."""
_LEAST_COST = 1e-4
"""Seconds in all of a run from which on a kind of cost is worth a word."""
_COST_WORDS = {
    CostKind.BREAKS: "graph breaks",
    CostKind.EAGER_FUNCTIONS: "functions that run eager",
    CostKind.RECOMPILES: "recompiles",
}
_OF_WHAT = {
    CostKind.BREAKS: "of the calls",
    CostKind.EAGER_FUNCTIONS: "of the calls",
    CostKind.RECOMPILES: "of compiling",
}
_LONG_COMPILE = 1.0
"""Seconds of compiling again from which on they are worth a word."""


def price_in_words(price: Price, calls: Sequence[Calls]) -> str:
    """``1.2 ms a pass, 340 passes, 41% of the time in calls; 0.9 s to compile what follows it``."""
    said = []
    if price.passes:
        said.append(_each_pass(price))
        spent = sum(call.seconds for call in calls)
        share = price.in_all / spent if spent else 0.0
        if share >= _WORTH_SAYING:
            said[0] += f", {min(share, 1.0):.0%} of the time in calls"
    if price.longest:
        said.append(_longest_pass(price.longest))
    if price.is_on_device and price.host_seconds > _NOTABLY * price.seconds:
        said.append(f"the host spends {duration(price.host_seconds)} there and waits for the device")
    elif price.waits:
        said.append("the host waits for the device there")
    if price.compile_seconds:
        said.append(f"{duration(price.compile_seconds)} to compile what follows it")
    return "; ".join(said)


def _each_pass(price: Price) -> str:
    if price.is_on_device:
        spent = f"{duration(price.seconds)} of the device's time"
        if price.passes == 1:
            return f"{spent} in the only pass that was timed"
        return f"{spent} a pass, {counted(price.passes, 'pass', 'passes')}"
    device = "" if price.device_seconds is None else f" ({duration(price.device_seconds)} on the device)"
    if price.passes == 1:
        return f"{duration(price.host_seconds)}{device} in the only pass that was timed"
    varies = price.passes >= _ENOUGH and price.high_seconds > _WIDE * price.low_seconds > 0
    spread = f", half of them {duration(price.low_seconds)} to {duration(price.high_seconds)}" if varies else ""
    return f"{duration(price.host_seconds)} a pass{device}, {counted(price.passes, 'pass', 'passes')}{spread}"


def _longest_pass(longest: LongPass) -> str:
    meanwhile = "" if longest.for_rank is None else f", in which rank {longest.for_rank} compiled"
    return f"not counted: one pass of {duration(longest.seconds)}{meanwhile}"


def ceiling_sentence(explanation: Explanation) -> str | None:
    """``Removing all of them could save at most 5.1 of 11.8 ms a call of Model.forward.``; None where there is nothing
    to save.

    Of a function that runs eager, or leads to one, it is all that is spent outside graphs, else what is spent behind
    breaks.  Of what the host waits for, only the device's own gaps count.  Where no graph runs at all, most of the time
    may be work that has to be done anyhow, and a bound would say nothing.
    """
    waits = [site.price for site in explanation.breaks if site.price and site.price.is_on_device]
    on_host = sum(price.passes * price.host_seconds for price in waits)
    eager = {frame.function for frame in explanation.frames if frame.status is FrameStatus.EAGER}
    given_up = [site for site in explanation.breaks if site.verdict is Verdict.EAGER]
    leads_there = eager | {caller.function for site in given_up for caller in site.stack}
    found = []
    for call in explanation.calls:
        saving = call.outside_seconds if call.name in leads_there else call.gap_seconds
        if len(explanation.calls) == 1:  # else it is not known which of them waits
            saving = max(0.0, saving - on_host) + min(saving, sum(price.in_all for price in waits))
        if call.calls > 1 and call.graph_seconds and saving > _WORTH_SAYING * call.seconds:
            found.append((saving, call))
    if not found or not (explanation.breaks or eager):
        return None
    found.sort(key=lambda pair: -pair[0])
    words = [
        f"{part_of(saving / call.calls, call.seconds / call.calls)} a call of {call.name}" for saving, call in found
    ]
    if rest := len(words) - _MOST_NAMED:
        words = [*words[:_MOST_NAMED], f"less of {counted(rest, 'other function')}"] if rest > 0 else words
    listed = ", and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    return f"Removing all of them could save at most {listed}."


def costs_sentence(explanation: Explanation) -> str | None:
    """``Recompiles cost most: 18 s of compiling; graph breaks 12 ms of the calls.``; None where
    there is nothing to compare."""
    costs = sorted(run_costs(explanation).items(), key=lambda cost: -cost[1])
    told = [(kind, seconds) for kind, seconds in costs if seconds >= _LEAST_COST]
    if len(told) < 2:
        return None
    (first, most), *others = told
    rest = " and ".join(f"{_COST_WORDS[kind]} {duration(seconds)} {_OF_WHAT[kind]}" for kind, seconds in others)
    return f"{_COST_WORDS[first].capitalize()} cost most: {duration(most)} {_OF_WHAT[first]}; {rest}."


def recompile_price(group: Iterable[Recompile], explanation: Explanation) -> str | None:
    """``Compiling again took 18 s of 35 s spent on compiling.``; None where that is not worth saying."""
    seconds = sum(recompile.seconds for recompile in group)
    if seconds < _LONG_COMPILE:
        return None
    whole = seconds_in_words(max(seconds, explanation.compile_seconds))
    return f"Compiling again took {seconds_in_words(seconds)} of {whole} spent on compiling."


def recompiling_time(explanation: Explanation) -> str | None:
    """``18 s``; None where that is not worth saying."""
    seconds = run_costs(explanation)[CostKind.RECOMPILES]
    return seconds_in_words(seconds) if seconds >= _LONG_COMPILE else None


def comparable_calls(explanation: Explanation) -> Sequence[Calls]:
    """The calls whose time prices may be held against; none where too few were steady.

    A pass counts if nothing was compiled after its graph, a call only if nothing was compiled in all of it.
    """
    priced = run_costs(explanation)[CostKind.BREAKS]
    outside = sum(call.outside_seconds for call in explanation.calls)
    return explanation.calls if priced <= outside else ()


def dearest_first(site: BreakSite) -> tuple[float, int, float]:
    """Sort key: by what a site cost in all passes, then the worst verdict first, then by what was compiled for it."""
    price = site.price
    return -price.in_all if price else 0.0, _WORST_FIRST.index(site.verdict), -price.compile_seconds if price else 0.0
