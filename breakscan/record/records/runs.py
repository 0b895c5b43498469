"""What ran, how often, and how long."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.records.source import StackFrame

DEFAULT_STANCE = "default"
"""Of ``torch.compiler.set_stance``: compiles where it must."""
EAGER_FIRST_STANCE = "eager_then_compile"
"""Runs the first call of everything eager, to see what changes before it compiles."""


@dataclass(frozen=True, slots=True)
class Usual:
    """What something took as a rule, in seconds: the median of the last times, and the quartiles.  One time that was
    disturbed, as by a wait for another process, does not change them."""

    seconds: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GraphRan:
    """How often a graph ran until now, and how long that took on the host.  ``device_seconds`` is the sum over
    ``timed_on_device`` of the runs.  The last record of a graph counts: each replaces those before it."""

    graph: int
    runs: int
    seconds: float
    timed_on_device: int
    device_seconds: float


@dataclass(frozen=True, slots=True)
class GapRan:
    """What lay between the end of a graph and the start of the next one, or the end of the call: eager code, and the
    compiled code's own overhead.  Gaps in which something was compiled are left out.  ``follows`` names the graph
    before; ``longest`` is the longest of all gaps, and ``longest_at`` when it began; ``usual_on_device`` is of those
    ``timed_on_device``.  The last record of a graph counts."""

    follows: int
    passes: int
    seconds: float
    usual: Usual
    longest: float
    longest_at: float
    timed_on_device: int
    usual_on_device: Usual


@dataclass(frozen=True, slots=True)
class CallsRan:
    """Outermost calls of what ``torch.compile`` gave, those left out in which something was compiled.  ``key`` as in
    ``CompileCalled``; ``in_graphs`` and ``in_gaps`` (after graphs that a break ended) are parts of ``usual``.  The last
    record of a key counts."""

    key: int
    calls: int
    seconds: float
    usual: Usual
    in_graphs: Usual
    in_gaps: Usual


@dataclass(frozen=True, slots=True)
class CallsOnDevice:
    """What ``timed`` of the calls of ``CallsRan`` spent on their device, outside graphs and not after graphs that a
    break ended.  The last record of a key counts."""

    key: int
    timed: int
    outside: Usual


@dataclass(frozen=True, slots=True)
class EagerCallsRan:
    """Those of the calls of ``CallsRan`` in which no graph ran.  ``stance`` is torch's during the calls, as
    ``torch.compiler.set_stance`` names it; ``stack`` is that of the first one.  The last record of a key and a stance
    counts."""

    key: int
    stance: str
    calls: int
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class RunsTraced:
    """The first runs of graphs, for a timeline: the numbers of the graphs, when each run started, how long it took."""

    graphs: tuple[int, ...]
    starts: tuple[float, ...]
    seconds: tuple[float, ...]
