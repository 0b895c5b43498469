"""Words for how the result of a call differs from another one, and for values that cannot be taken over."""

from __future__ import annotations

from breakscan.prove.worker.difference import Change, Part, ResultDifference
from breakscan.prove.worker.protocol import Mismatch, ValueMismatch
from breakscan.prove.worker.random_state import CUDA, NUMPY, NUMPY_GAUSS, PYTHON_GAUSS, TORCH

_LONGEST = 80


def difference_words(difference: ResultDifference) -> str:
    """``output differs by 0.03 at [2, 5] (0.03 for 0; allowed 0.0001) in call 2``."""
    if difference.change is Change.CALL_COUNT:
        return f"{difference.now} calls were compared with {difference.was}"
    where = f" in call {difference.call + 1}" if difference.call else ""
    return f"{_subject(difference)}{_predicate(difference)}{where}"


def generator_words(name: str) -> str:
    """The name of a generator for people."""
    if name.startswith(CUDA):
        return f"the generator of {name}"
    return {
        TORCH: "torch's CPU generator",
        PYTHON_GAUSS: "random (gauss)",
        NUMPY: "numpy.random",
        NUMPY_GAUSS: "numpy.random (gauss)",
    }.get(name, name)


def mismatch_words(mismatch: ValueMismatch) -> str:
    """``args[0] has shape 4×16, not 8×16``."""
    name = generator_words(mismatch.path)
    if mismatch.kind is Mismatch.MISSING:
        return f"{name} is not there"
    if mismatch.kind is Mismatch.SHAPE:
        return f"{name} has shape {mismatch.here}, not {mismatch.there}"
    if mismatch.kind is Mismatch.DTYPE:
        return f"{name} is {mismatch.here}, not {mismatch.there}"
    return f"{name} differs after it was handed over"


def _subject(difference: ResultDifference) -> str:
    if difference.part is Part.EXCEPTION:
        return "it "
    if difference.change in (Change.DRAWN, Change.NO_BACKWARD):
        return ""
    return f"{'the gradient of ' if difference.part is Part.GRADIENT else ''}{difference.path} "


def _predicate(difference: ResultDifference) -> str:
    change, part, was, now = difference.change, difference.part, difference.was, difference.now
    if change is Change.RAISES:
        before = f"raises {was}" if was else "returns"
        after = f"raises {now} ({_short(difference.message)})" if now else "returns"
        return f"{after} where the original {before}"
    if change is Change.NO_BACKWARD:
        return f"backward() fails: {_short(difference.message)}"
    if change is Change.DRAWN:
        names = map(generator_words, difference.path.split(","))
        return f"random numbers are drawn otherwise: {', '.join(names)}"
    if change in (Change.MISSING, Change.NEW) and part is Part.STATE:
        return "is changed by the call" if change is Change.NEW else "is not changed by the call"
    if change in (Change.MISSING, Change.NEW):
        return f"is {change.value}"
    if change is Change.SHAPE:
        return f"has shape {now}, not {was}"
    if change is Change.ALIAS:
        return f"shares its memory with {now or 'nothing'}, not {was or 'nothing'}"
    return _value_words(difference)


def _value_words(difference: ResultDifference) -> str:
    was, now = difference.was, difference.now
    place = f" at {list(difference.at)}" if difference.at else ""
    if difference.change is Change.ELEMENT:
        return f"is {now}{place}, not {was}"
    if difference.change is Change.ERROR:
        return f"differs by {difference.size:.1g}{place} ({now} for {was}; allowed {difference.allowed:g})"
    if difference.change is Change.TEXT and difference.part is Part.STATE:
        after = "unchanged" if now is None else _short(now)
        return f"is {after} after the call, not {_short(was or 'unchanged')}"
    return f"is {now or 'a tensor'}, not {was or 'a tensor'}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
