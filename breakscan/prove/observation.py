"""Facts about a measured program that the reader must know, as data: why a change is rejected, why a variant was not
measured, and notes.

:func:`breakscan.report.measurements.observation_words` fills in their fields."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique

from breakscan import __version__
from breakscan.prove.equal import ResultDifference
from breakscan.prove.protocol import CapturedCalls, Description

Detail = ResultDifference | str


@unique
class ObservationKind(str, Enum):
    """The kind of an observation: what reports say, with the fields of the observation in braces."""

    ERROR = "{text}"

    # The program with a change cannot be compared with the program as it is.
    FAILS_WITH_CHANGE = "the program fails with it: {text}"
    DOES_NOT_RUN = "the program does not run with it: {text}"
    FAILS_WHILE_TIMED = "it fails while it is timed: {text}"
    ORIGINAL_FAILS = "cannot be timed: the program as it is fails while it is timed: {text}"
    OTHER_CALLS = "cannot be compared: {text}"
    NOT_LOADED = "the rewritten code did not run: {names} was not loaded"
    UNKNOWN_SETTINGS = "torch has no setting {names}"
    SETTINGS_LOST = "the setting did not hold: the program sets {names} itself"
    UNREPEATABLE = "cannot be compared: the program does not repeat itself: {detail}"
    OTHER_VALUES = "cannot be compared: {details}"
    OTHER_RANDOM_START = "cannot be compared: random numbers are drawn otherwise before the first call: {generators}"

    # It was compared.
    NO_CODE = "it changes no code"
    NOT_EXECUTED = "the rewritten code did not run: none of its changed lines was executed"
    EAGER_DIFFERS = "eager, {detail}"
    EXACT_DIFFERS = "in higher precision, {detail}"
    COMPILED_DIFFERS = "compiled, {detail}"
    WEIGHTS_CHANGE = "it holds weights constant, and the program changes them after a compiled call"
    BREAK_STAYS = "the break at {text} is still there"
    MORE_BREAKS = "it breaks the graph {first} times, not {second}{now_at}"
    MORE_EAGER = "{first} functions run eager, not {second}"
    MORE_RECOMPILES = "it is compiled {more_times} ({text} changes)"
    UNSTEADY = "it is compiled again and again while it is timed"
    ORIGINAL_UNSTEADY = "the program as it is is compiled again and again while it is timed"

    # A variant of bench was not measured, or differs.
    DIFFERS = "{detail}"
    RECOMPILES_TO_LIMIT = "it is compiled again until torch falls back to eager{cause}"
    RECOMPILES_EACH_CALL = "it is compiled again at every call{cause}"
    RECOMPILES_WHILE_TIMED = "it is compiled again while it is timed{cause}"
    COMPILES_WHILE_EAGER = "the program compiles something while it runs eager"
    NEEDS_CUDA = "CUDA graphs need tensors on a CUDA device"
    SAME_CHOICE = "torch.compile takes it for the same"
    INTERRUPTED = "it was interrupted"

    # Notes.
    FAILED_LATER = "the program failed after the captured calls: {text}"
    LEFT_OUT = "too many compiled callables: not captured were {names}"
    NOT_CALLED = "compiled and not called until the program was stopped: {names}"
    INCOMPLETE = "the calls reach more objects than were looked at: not all state is the same in all runs"
    NO_EXACT = "there is no reference in higher precision: {text}"
    VARIES = "not compared, as they differ from run to run of the program as it is: {some}"
    BUSY = (
        "other programs had the cores during some of the compiling: its seconds are too many, and it is not said when "
        "that pays"
    )
    NOT_PROBED = "no outcomes of tests were recorded, and no calls were varied: {text}{detail}"
    VARIED_UNREPEATABLE = "not all varied calls were compared, as the program does not repeat itself in them: {detail}"
    VARIED_CUT = "not all varied calls were compared: no time was left (--time)"
    NOT_PUT_BACK = "the position of an iterator cannot be put back before a call: {some}"
    NOT_COMPARED = "results were not compared, as the program does not repeat itself: {detail}"
    ONE_PROCESS = "{names} was timed in one process alone, as another one failed: {text}"


@dataclass(frozen=True, slots=True)
class Observation:
    """``text`` is in the words of the program or of torch: an error, a place, the name of a value.  ``names`` are those
    of files, settings, callables, generators or values; ``numbers`` and ``details``, differences, are in order."""

    kind: ObservationKind
    text: str = ""
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    details: tuple[Detail, ...] = ()


class NothingToMeasure(Exception):
    """The program itself cannot be measured. The message gives the reason."""


def require_calls(about: Description) -> None:
    """Raises NothingToMeasure if no call was captured, or if a call fails without the compiler."""
    error = about.error
    if about.failed_in:
        raise NothingToMeasure(f"the program fails without torch.compile, too, in {about.failed_in}: {error}")
    if about.callables:
        return
    if error:
        why = "`breakscan explain` shows where and why"
        raise NothingToMeasure(f"the program failed before it called anything compiled: {error}; {why}")
    if about.not_called:
        names = ", ".join(about.not_called)
        raise NothingToMeasure(f"the program called nothing that it had compiled ({names} was never called)")
    raise NothingToMeasure("the program compiles nothing: torch.compile was not called (--compile module:name asks)")


def notes_of(about: Description) -> list[Observation]:
    """Returns what the reader must know about the captured calls."""
    notes = [
        (about.error, Observation(ObservationKind.FAILED_LATER, about.error or "")),
        (about.left_out, Observation(ObservationKind.LEFT_OUT, names=about.left_out)),
        (about.not_called, Observation(ObservationKind.NOT_CALLED, names=about.not_called)),
        (not about.complete, Observation(ObservationKind.INCOMPLETE)),
        (about.iterators, Observation(ObservationKind.NOT_PUT_BACK, names=about.iterators)),
    ]
    return [note for is_needed, note in notes if is_needed]


def environment_of(about: Description | None, device: str | None) -> dict[str, str]:
    """The setup that the figures were measured with; ``device`` is that of the compiled graphs, where one is known."""
    devices = about.devices if about else ()
    return {
        "breakscan": __version__,
        "torch": str(about.torch if about else None),
        "python": platform.python_version(),
        "device": device or ", ".join(devices) or "cpu",
        "machine": platform.machine(),
    }


def other_calls(about: Description, baseline: Description) -> str | None:
    """The first difference of the calls of a process from those of the baseline: ``other calls: 2 × f, not 3 × f``."""
    aspects: tuple[tuple[str, Callable[[CapturedCalls], str]], ...] = (
        ("other calls", lambda one: f"{one.calls} × {one.name}"),
        ("other modes", lambda one: "; ".join(one.modes)),
        ("another backward", lambda one: str(one.backward)),
    )
    for aspect, words in aspects:
        here, there = (", ".join(map(words, each.callables)) for each in (about, baseline))
        if here != there:
            return f"{aspect}: {here}, not {there}"
    return None
