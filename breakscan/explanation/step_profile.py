"""Where the time of a step goes, by a profile of a few steady steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from breakscan.explanation.context import ExplainContext
from breakscan.explanation.notices import Notice
from breakscan.model.words import duration
from breakscan.recording.records import CompileCalled, HookInstalled, Record, StepsProfiled

_NONE = Notice(
    "no-profile",
    "no steps were profiled: nothing compiled was called eight times more in one thread after it was compiled, or the "
    "program runs a profiler itself",
)


@dataclass(frozen=True, slots=True)
class StepProfile:
    """The means of a few steps, from one call of ``function`` to the next."""

    function: str
    means: StepsProfiled

    @property
    def lines(self) -> Iterator[str]:
        """The profile in words: parts of the host's time, host and device, the costliest call."""
        of = self.means
        rest = max(0.0, of.profiled - of.graphs - of.eager - of.entering - of.waiting)
        yield (
            f"A step, from one call of {self.function} to the next, takes {duration(of.seconds)}, with the profiler "
            f"{duration(of.profiled)}: on the host {duration(of.graphs)} in graphs, {duration(of.eager)} in "
            f"eager operations, {duration(of.entering)} in entering compiled code and guards, {duration(rest)} "
            "elsewhere"
        )
        if of.device is not None:
            # The profiler takes time of the host alone.
            yield (
                f"The device computes for {duration(of.device)} and waits "
                f"{duration(max(0.0, of.seconds - of.device))} for the host; the host waits "
                f"{duration(of.waiting)} for the device"
            )
        if of.calls:
            first = of.calls[0]
            yield (
                f"The costliest library call on the host is {first.name}: {duration(first.seconds)} a step, "
                f"{first.calls:.3g} calls"
            )


def step_profile(processes: Sequence[Sequence[Record]], context: ExplainContext) -> StepProfile | None:
    """The profile of the first process that has one."""
    for records in processes:
        if profile := next((one for one in records if isinstance(one, StepsProfiled)), None):
            called = (one for one in records if isinstance(one, CompileCalled) and one.key == profile.key)
            call = next(called, None)
            name = "a function" if call is None else context.function_of(call.code) if call.code else call.target
            return StepProfile(name, profile)
    return None


def profile_notices(processes: Sequence[Sequence[Record]]) -> Iterator[Notice]:
    """A notice where a profile was asked for, and there is none."""
    records = [one for process in processes for one in process]
    asked = any(isinstance(one, HookInstalled) and one.name == "profile" and one.available for one in records)
    if asked and not any(isinstance(one, StepsProfiled) for one in records):
        yield _NONE
