"""Facts about a measured program that the reader must know, as data: why a change is rejected, why a variant was not
measured, and notes.

``report/shared/observation_words.py`` puts them into words.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from enum import Enum

from breakscan import __version__
from breakscan.prove.devices import VISIBLE, Placement
from breakscan.prove.equal import ResultDifference
from breakscan.prove.protocol import Description, ValueMismatch

Detail = ResultDifference | ValueMismatch


class ObservationKind(str, Enum):
    """The kind of an observation, which decides its words."""

    ERROR = "error"

    # The program with a change cannot be compared with the program as it is.
    FAILS_WITH_CHANGE = "fails-with-change"
    DOES_NOT_RUN = "does-not-run"
    OTHER_CALLS = "other-calls"
    NOT_LOADED = "not-loaded"
    UNKNOWN_SETTINGS = "unknown-settings"
    SETTINGS_LOST = "settings-lost"
    UNREPEATABLE = "unrepeatable"
    WARM_CACHE = "warm-cache"
    OTHER_VALUES = "other-values"
    OTHER_RANDOM_START = "other-random-start"
    OTHER_START = "other-start"

    # It was compared.
    NO_CODE = "no-code"
    NOT_EXECUTED = "not-executed"
    EAGER_DIFFERS = "eager-differs"
    COMPILED_DIFFERS = "compiled-differs"
    BREAK_STAYS = "break-stays"
    SOFTENS_NOTHING = "softens-nothing"
    MORE_BREAKS = "more-breaks"
    MORE_EAGER = "more-eager"
    MORE_RECOMPILES = "more-recompiles"
    UNSTEADY = "unsteady"
    ORIGINAL_UNSTEADY = "original-unsteady"

    # A variant of bench was not measured, or differs.
    VALUES_NOT_TAKEN = "values-not-taken"
    MAKES_OTHER_CALLS = "makes-other-calls"
    PROGRAM_SETS = "program-sets"
    DIFFERS = "differs"
    RECOMPILES_TO_LIMIT = "recompiles-to-limit"
    RECOMPILES_EACH_CALL = "recompiles-each-call"
    RECOMPILES_WHILE_TIMED = "recompiles-while-timed"
    COMPILES_WHILE_EAGER = "compiles-while-eager"
    NEEDS_CUDA = "needs-cuda"
    SAME_CHOICE = "same-choice"
    REMOVES_NO_BREAK = "removes-no-break"
    NO_CUDA_GRAPHS = "no-cuda-graphs"
    NO_MODULE = "no-module"
    NO_BLOCKS = "no-blocks"
    NO_REST = "no-rest"
    NO_NESTED_REGIONS = "no-nested-regions"
    BLOCKS_OF_TORCH = "blocks-of-torch"
    CONSTANT_SHAPES = "constant-shapes"
    INTERRUPTED = "interrupted"

    # Notes.
    FAILED_LATER = "failed-later"
    LEFT_OUT = "left-out"
    NOT_CALLED = "not-called"
    INCOMPLETE = "incomplete"
    NO_DOUBLE = "no-double"
    ORIGINAL_DIFFERS = "original-differs"
    CACHE_OF_PROGRAM = "cache-of-program"
    NOT_PROBED = "not-probed"
    PROBE_MAKES_OTHER_CALLS = "probe-makes-other-calls"
    PROBE_HAS_OTHER_VALUES = "probe-has-other-values"
    NOT_STRESSED = "not-stressed"
    STRESS_UNREPEATABLE = "stress-unrepeatable"
    NOT_PUT_BACK = "not-put-back"
    NOT_COMPARED = "not-compared"
    ONE_PROCESS = "one-process"
    ONE_PROCESS_UNSTEADY = "one-process-unsteady"
    ONE_PROCESS_OTHER_CALLS = "one-process-other-calls"
    ONE_PROCESS_OTHER_VALUES = "one-process-other-values"
    DEVICE_LACKS_CORES = "device-lacks-cores"
    DEVICE_FAILS = "device-fails"
    DEVICE_MAKES_OTHER_CALLS = "device-makes-other-calls"
    DEVICE_DIFFERS = "device-differs"
    DEVICE_STARTS_OTHERWISE = "device-starts-otherwise"


class CallAspect(str, Enum):
    """The aspect in which the calls of two processes differ."""

    CALLABLES = "callables"
    MODES = "modes"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True)
class OtherCalls:
    """The calls of a process ``here`` differ from those ``there``."""

    aspect: CallAspect
    here: Description
    there: Description


@dataclass(frozen=True, slots=True)
class Observation:
    """``text`` is in the words of the program or of torch: an error, a place, the name of a value.  ``names`` are those
    of files, settings, callables, generators or values; ``numbers`` those that the words name, in order; ``details``
    differences, the first one first."""

    kind: ObservationKind
    text: str = ""
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    details: tuple[Detail, ...] = ()
    calls: OtherCalls | None = None


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
