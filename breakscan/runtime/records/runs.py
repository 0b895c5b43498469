"""What ran, how often, and how long."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.runtime.records.source import StackFrame

DEFAULT_STANCE = "default"
"""Of ``torch.compiler.set_stance``: compiles where it must."""


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
    before.  The last record of a graph counts."""

    follows: int
    passes: int
    seconds: float
    timed_on_device: int
    device_seconds: float


@dataclass(frozen=True, slots=True)
class CallsRan:
    """Outermost calls of what ``torch.compile`` gave, those left out in which something was compiled.  ``key`` as in
    ``CompileCalled``; ``graph_seconds`` and ``gap_seconds`` (after graphs that a break ended) are parts of
    ``seconds``.  The last record of a key counts."""

    key: int
    calls: int
    seconds: float
    graph_seconds: float
    gap_seconds: float


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
