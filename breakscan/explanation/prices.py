"""The costs of breaks, as far as they are seen: adds to an explanation what ran, and the price of each site, which
``docs/explain.md`` describes.  Where one break follows another with no operation between them, the first carries the
time of both.  Where the code after a break falls back to eager for another break, that one carries the time.  Where the
function that ``torch.compile`` was given falls back to eager, its price is the calls' time outside graphs and other
breaks."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from breakscan.explanation.breaks import BreakSite, BreakSites, Key
from breakscan.explanation.context import ExplainContext
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import Ending, FrameStatus, UncompiledFrame
from breakscan.explanation.graphs import Graph
from breakscan.explanation.run_totals import NOT_RUN, Ran, what_ran
from breakscan.model.problem import Price
from breakscan.model.words import grouped
from breakscan.recording.parsers.frames import is_resumed
from breakscan.recording.records import (
    BreakSeen,
    Code,
    CompileStarted,
    CompileTimed,
    GraphCompiled,
    GraphRan,
    Record,
    StackFrame,
    Usual,
)

_READS_DATA = (1, 2, 3)  # the families of rules about what depends on the values of a tensor


def with_prices(
    explanation: Explanation,
    breaks: Sequence[Sequence[BreakSeen]],
    endings: Sequence[Ending],
    keys: BreakSites,
    context: ExplainContext,
) -> Explanation:
    """The explanation with runs, calls and prices.  ``breaks`` are those of each process."""
    ran = what_ran(context)
    links = _Links(context.processes, breaks)
    ended_by = [links.break_after(graph) for graph in ran.graphs]
    reading = {(site.site, site.gb_type) for site in explanation.breaks if _reads_data(site)}
    frames = _priced_frames(explanation.frames, ran, reading, explanation.devices, context)
    gaps: dict[Key, list[_Gap]] = defaultdict(list)
    paid_by = links.paid_by(endings)
    for number, seen in enumerate(ended_by):
        if seen is not None:
            gap = _Gap(len(seen.stack), ran.graphs[number].devices, ran.of_graph.get(number, NOT_RUN))
            gaps[keys.key(paid_by.get(id(seen), seen))].append(gap)
    compiling: dict[Key, float] = defaultdict(float)
    for compile_id, before in links.before.items():
        compiling[keys.key(before)] += links.seconds[compile_id]
    sites = []
    for site in explanation.breaks:
        key = site.site, site.gb_type
        whole = [f.price for f in frames if f.price and (f.break_site, f.gb_type) == key]
        sites.append(replace(site, price=_price(site, gaps[key], whole, compiling[key], explanation.devices)))
    return replace(
        explanation,
        breaks=sites,
        frames=frames,
        graphs=[
            _with_runs(graph, ran, ended_by[graph.number], keys) if graph.number < len(ended_by) else graph
            for graph in explanation.graphs
        ],
        calls=list(ran.calls.values()),
    )


@dataclass(frozen=True, slots=True)
class _Gap:
    """The gaps after one graph.  ``depth`` is how far from the function that was compiled the break lies."""

    depth: int
    devices: tuple[str, ...]
    ran: GraphRan


def _price(
    site: BreakSite, gaps: Sequence[_Gap], whole: Sequence[Price], compiling: float, devices: Sequence[str]
) -> Price | None:
    # A call that breaks within ends the graph of its caller, and a separate one: one pass, two gaps.
    ran = [gap for gap in gaps if gap.ran.passes]
    nearest = min((gap.depth for gap in ran), default=0)
    passes = sum(gap.ran.passes for gap in ran if gap.depth == nearest) + sum(price.passes for price in whole)
    if not passes and not compiling:
        return None
    each = [(gap.ran.gap, gap.ran.passes) for gap in ran]
    each += [(Usual(price.host_seconds, price.low_seconds, price.high_seconds), price.passes) for price in whole]
    host = {name: sum(getattr(one, name) * times for one, times in each) for name in ("seconds", "low", "high")}
    timed = [(gap.ran.gap_on_device.seconds, gap.ran.passes) for gap in ran if gap.ran.gaps_on_device]
    timed += [(price.device_seconds, price.passes) for price in whole if price.device_seconds is not None]
    device = sum(seconds * times for seconds, times in timed)
    lies_on = {name for gap in gaps for name in gap.devices} or set(devices)
    return Price(
        passes=passes,
        host_seconds=host["seconds"] / passes if passes else 0.0,
        device_seconds=device / passes if timed and len(timed) == len(each) else None,
        waits=any(price.waits for price in whole) or (_reads_data(site) and _any_runs_ahead(lies_on)),
        compile_seconds=compiling,
        low_seconds=host["low"] / passes if passes else 0.0,
        high_seconds=host["high"] / passes if passes else 0.0,
        eager=bool(whole),
    )


def _reads_data(site: BreakSite) -> bool:
    return site.rule is not None and site.rule.family in _READS_DATA


def _with_runs(graph: Graph, ran: Ran, seen: BreakSeen | None, keys: BreakSites) -> Graph:
    graph = replace(graph, ended_by=keys.key(seen)[0] if seen else None)
    record = ran.of_graph.get(graph.number)
    if record is None:
        return graph
    timed = record.timed_on_device
    device_seconds = record.device_seconds / timed * record.runs if timed else None
    return replace(graph, runs=record.runs, seconds=record.seconds, device_seconds=device_seconds)


def _any_runs_ahead(devices: Iterable[str]) -> bool:
    """Return whether the host has to wait for what one of the devices computes."""
    return any(not name.startswith(("cpu", "meta")) for name in devices)


def _priced_frames(
    frames: Iterable[UncompiledFrame],
    ran: Ran,
    reading: Collection[Key],
    devices: Sequence[str],
    context: ExplainContext,
) -> list[UncompiledFrame]:
    """The frames with their prices: of a compiled function that runs eager, the time of its calls without the graphs
    and breaks in it.  Each is priced once.  At the breaks of ``reading``, the host reads tensors."""
    totals = {
        (context.function_of(code), context.site_of(code)): (total, ran.on_device.get(code))
        for code, total in ran.calls.items()
        if isinstance(code, Code)
    }
    priced = []
    for frame in frames:
        if frame.status is FrameStatus.EAGER and not frame.rest_only:
            total, device_seconds = totals.pop((frame.function, frame.site), (None, None))
            if total and total.calls:
                seconds = max(0.0, total.outside_seconds - total.gap_seconds) / total.calls
                ahead = device_seconds is not None or _any_runs_ahead(devices)
                waits = ahead and (frame.break_site, frame.gb_type) in reading
                price = Price(total.calls, seconds, device_seconds, waits, 0.0, seconds, seconds, eager=True)
                frame = replace(frame, price=price)
        priced.append(frame)
    return priced


class _Links:
    """The break that ended each graph, and the break before each rest of a function.  The first call of the code after
    a break comes from the line of the break: the stack above a compilation names it."""

    def __init__(self, processes: Sequence[Sequence[Record]], breaks: Sequence[Sequence[BreakSeen]]) -> None:
        self._of_compile: dict[str, list[BreakSeen]] = {}
        self.before: dict[str, BreakSeen] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        for records, found in zip(processes, breaks, strict=True):
            at_line: dict[tuple[str, str, int], BreakSeen] = {}
            own = grouped((seen.compile_id, seen) for seen in found if seen.compile_id is not None)
            self._of_compile.update(own)
            for record in records:
                if isinstance(record, CompileStarted):
                    if is_resumed(record.code.name) and record.stack:
                        caller = record.stack[-1]
                        if before := at_line.get((caller.path, caller.name, caller.line)):
                            self.before[record.compile_id] = before
                    for seen in own.get(record.compile_id, ()):
                        at_line[
                            seen.frame.path, seen.frame.name, (seen.stack[0] if seen.stack else seen.frame).line
                        ] = seen
                elif isinstance(record, CompileTimed):
                    self.seconds[record.compile_id] += record.seconds

    def break_after(self, graph: GraphCompiled) -> BreakSeen | None:
        """The break that ended the graph.  Lines distinguish breaks of one compilation, but not compilations."""
        found = self._of_compile.get(graph.compile_id or "", ())
        if not graph.ended_by or not found:
            return None
        return next((seen for seen in found if _place(seen.stack) == _place(graph.ended_by)), found[-1])

    def paid_by(self, endings: Iterable[Ending]) -> dict[int, BreakSeen]:
        """Map the ``id`` of a break to the one for which all the code after it falls back to eager."""
        return {
            id(self.before[ending.cause.compile_id]): ending.cause
            for ending in endings
            if ending.cause and ending.cause.compile_id in self.before
        }


def _place(stack: Sequence[StackFrame]) -> tuple[str, int] | None:
    return (stack[-1].path, stack[-1].line) if stack else None


def run_costs(explanation: Explanation) -> Mapping[str, float]:
    """The seconds of the whole run that were seen of each kind of cost: of recompiles those of compiling, of the others
    those of calls.  A function that runs eager because of a break is part of what was seen of that break."""
    eager = (frame.price for frame in explanation.frames if frame.break_site is None)
    return {
        "breaks": sum(site.price.cost or 0.0 for site in explanation.breaks if site.price),
        "eager-functions": sum(price.cost or 0.0 for price in eager if price),
        "recompiles": sum(recompile.seconds for recompile in explanation.recompiles),
    }
