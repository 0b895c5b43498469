"""A problem of a run, what it costs, and the lines that lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscan.model.findings import Origin


@dataclass(frozen=True, slots=True)
class Caller:
    """A line that the program went through, in the paths and names that reports show."""

    path: str
    line: int
    function: str | None
    origin: Origin


def users_line(stack: Sequence[Caller]) -> Caller | None:
    """The innermost line of the user's code in a stack whose outermost line comes first."""
    return next((caller for caller in reversed(stack) if caller.origin is Origin.USER), None)


@dataclass(frozen=True, slots=True)
class LongPass:
    """A pass that took much longer than the others: its seconds, and when it began, in seconds since the recording
    began.  ``for_rank`` is the rank that compiled meanwhile: this one waited for it."""

    seconds: float
    at: float
    for_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What a break costs each time that the program runs through it: the time between the graph before it and the
    next one, on the host and, where timed, on the device, and whether the host waits for the device there; and what
    it cost once, to compile the code after it.

    ``host_seconds`` and ``device_seconds`` are medians; half of the passes took between ``low_seconds`` and
    ``high_seconds`` on the host.  ``longest`` is None where no pass stands out.

    Where the host waits for the device, it waits for work that has to be done anyhow: then the break costs what the
    device does not spend on graphs there.
    """

    passes: int
    host_seconds: float
    device_seconds: float | None
    waits: bool
    compile_seconds: float
    low_seconds: float = 0.0
    high_seconds: float = 0.0
    longest: LongPass | None = None

    @property
    def is_on_device(self) -> bool:
        """Whether the device's time is what the break costs."""
        return self.waits and self.device_seconds is not None

    @property
    def seconds(self) -> float:
        """What one pass costs."""
        if self.waits and self.device_seconds is not None:
            return min(self.device_seconds, self.host_seconds)
        return self.host_seconds

    @property
    def in_all(self) -> float:
        """Seconds over all passes; 0 for a single one, which may have been disturbed."""
        return self.passes * self.seconds if self.passes > 1 else 0.0
