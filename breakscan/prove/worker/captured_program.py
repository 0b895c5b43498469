"""Decides whether the captured program can be measured, and compares it with another process."""

from __future__ import annotations

import platform

from breakscan import __version__
from breakscan.prove.worker.devices import VISIBLE, Placement
from breakscan.prove.worker.observation import CallAspect, Observation, ObservationKind, OtherCalls
from breakscan.prove.worker.protocol import Description


class NothingToMeasure(Exception):
    """The program itself cannot be measured. The message gives the reason."""


def require_calls(about: Description) -> None:
    """Raises NothingToMeasure if no call was captured, or if a call fails without the compiler."""
    error = about.run.error
    if about.run.failed_in:
        raise NothingToMeasure(f"the program fails without torch.compile, too, in {about.run.failed_in}: {error}")
    if about.callables:
        return
    if error:
        raise NothingToMeasure(f"the program failed before it called anything compiled: {error}")
    if about.not_called:
        names = ", ".join(about.not_called)
        raise NothingToMeasure(f"the program called nothing that it had compiled ({names} was never called)")
    raise NothingToMeasure("the program compiles nothing: torch.compile was not called (--compile module:name asks)")


def require_one_device(about: Description, placement: Placement | None) -> None:
    """Raises NothingToMeasure if a process does not run on its device alone: others may be timed on another one."""
    if placement is None:
        return
    if about.visible_devices != placement.visible:
        raise NothingToMeasure(f"the program sets {VISIBLE} itself, so --devices cannot choose its device")
    if not about.cuda_devices:
        raise NothingToMeasure("the program uses no CUDA device: --devices is for programs that run on one")
    if len(about.cuda_devices) > 1:
        names = ", ".join(f"cuda:{number}" for number in about.cuda_devices)
        raise NothingToMeasure(
            f"the program uses several devices ({names}) or an allocator of its own: --devices is for programs that "
            "run on one"
        )


def notes_of(about: Description) -> list[Observation]:
    """Returns what the reader must know about the captured calls."""
    found = []
    if about.run.error:
        found.append(Observation(ObservationKind.FAILED_LATER, about.run.error))
    if about.left_out:
        found.append(Observation(ObservationKind.LEFT_OUT, names=about.left_out))
    if about.not_called:
        found.append(Observation(ObservationKind.NOT_CALLED, names=about.not_called))
    if not about.complete:
        found.append(Observation(ObservationKind.INCOMPLETE))
    if about.iterators:
        found.append(Observation(ObservationKind.NOT_PUT_BACK, names=about.iterators))
    return found


def environment_of(about: Description | None, device: str | None) -> dict[str, str]:
    """What the figures were measured with; ``device`` is that of the compiled graphs, where one is known."""
    devices = about.devices if about else ()
    return {
        "breakscan": __version__,
        "torch": str(about.run.torch if about else None),
        "python": platform.python_version(),
        "device": device or ", ".join(devices) or "cpu",
        "machine": platform.machine(),
    }


def other_calls(about: Description, baseline: Description) -> OtherCalls | None:
    """Returns how the calls of a process differ from those of the baseline."""
    if about.callables != baseline.callables:
        return OtherCalls(CallAspect.CALLABLES, about, baseline)
    if about.modes != baseline.modes:
        return OtherCalls(CallAspect.MODES, about, baseline)
    if about.backward != baseline.backward:
        return OtherCalls(CallAspect.BACKWARD, about, baseline)
    return None
