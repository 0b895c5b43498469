"""Measured runs in words: the captured calls, ratios, differences of results, and observations."""

from typing import Any

from breakscan.model.words import UNITS, clipped, counted, first_few
from breakscan.prove.bench import Bench
from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation
from breakscan.prove.proof import NotApplied, Tuning, Verification
from breakscan.prove.protocol import TimedStep
from breakscan.prove.torch_state import CUDA, NUMPY, TORCH
from breakscan.report.printable import picked, visible


def captured_words(run: Bench | Verification) -> str:
    """``3 calls of Model with their backward pass, 1 call of evaluate``."""
    said = []
    for name, count in run.callables.items():
        whose = f" with {'its' if count == 1 else 'their'} backward pass" if name in run.backward else ""
        said.append(f"{counted(count, 'call')} of {visible(name)}{whose}")
    return ", ".join(said)


def step_words(step: TimedStep | None) -> list[str]:
    if step is None:
        return []
    backward = [f"{'their' if step.calls > 1 else 'its'} backward pass"] if step.backward else []
    if step.loop is None:
        said = f"A step is one call of each callable{' with its backward pass' if backward else ''}"
        return [f"{said}: no loop of the program around it could be repeated to time what else is in one."]
    inside = [counted(step.calls, "call"), *backward, *(["the optimizer"] if step.optimizer else [])]
    return [f"A step is an iteration of the loop at {visible(step.loop)}: {', '.join(inside)}, and the code between."]


def run_fields(run: Bench | Verification) -> dict[str, Any]:
    """The fields that the JSON of all measured runs have."""
    return {
        "program": run.argv,
        **picked(run, "environment same interrupted"),
        "calls": [
            {"callable": name, "captured": count, "backward": name in run.backward}
            for name, count in run.callables.items()
        ],
        "step": run.step and picked(run.step, "loop calls backward optimizer"),
        "notes": list(map(observation_words, run.notes)),
    }


def not_applied_words(reason: NotApplied | tuple[str, ...] | None) -> str | None:
    """The reason that files were not written; None where all were."""
    return reason.value if isinstance(reason, NotApplied) else "; ".join(reason or ()) or None


def written_words(run: Verification | Tuning) -> str:
    """The files that were written or not, as sentences."""
    why = not_applied_words(run.not_applied)
    if run.applied:
        return f"Written: {', '.join(run.applied)}.{f' Not written: {why}.' if why else ''}"
    return f"Your files are unchanged{f': {why}' if why else ''}."


def number(value: float) -> str:
    """``4.71``; to the tenth from ten on."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def interval(ratio: Ratio) -> str:
    """``[4.71, 5.12]``."""
    return f"[{number(ratio.low)}, {number(ratio.high)}]"


def ratio_words(ratio: Ratio) -> str:
    """``4.90 [4.71, 5.12]``; ``too noisy [1.71, 5.12]`` where the median says nothing."""
    if ratio.disturbed:
        return "too noisy"
    return f"{'too noisy' if ratio.is_noisy else number(ratio.median)} {interval(ratio)}"


def times_words(ratio: Ratio) -> str:
    """The speed ratio: ``4.9×``, or ``at least 1.71×`` where the median says nothing."""
    return f"at least {number(ratio.low)}×" if ratio.is_noisy else f"{number(ratio.median)}×"


def steps(before: float | None, after: float | None) -> str:
    """The times of a step, ``11.8 → 7.9 ms``."""
    if before is None or after is None:
        return ""
    size, unit = next(((size, unit) for size, unit in UNITS if max(before, after) >= size), UNITS[-1])
    return f"{_digits(before / size)} → {_digits(after / size)} {unit}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


_LONGEST = 80


def difference_words(difference: ResultDifference) -> str:
    """``output differs by 0.03 at [2, 5] (0.03 for 0; allowed 0.0001) in call 2``."""
    if difference.change is Change.CALL_COUNT:
        return f"{difference.now} calls were compared with {difference.was}"
    where = f" in call {difference.call + 1}" if difference.call else ""
    return f"{_subject(difference)}{_predicate(difference)}{where}"


def generator_words(name: str) -> str:
    if name.startswith(CUDA):
        return f"the generator of {name}"
    return {TORCH: "torch's CPU generator", NUMPY: "numpy.random"}.get(name, name)


def _subject(difference: ResultDifference) -> str:
    if difference.part is Part.EXCEPTION:
        return "it "
    if difference.change in (Change.DRAWN, Change.NO_BACKWARD):
        return ""
    return f"{'the gradient of ' if difference.part is Part.GRADIENT else ''}{difference.path} "


def _predicate(difference: ResultDifference) -> str:
    change, is_state, was, now = difference.change, difference.part is Part.STATE, difference.was, difference.now
    place = f" at {list(difference.at)}" if difference.at else ""
    drawn = ", ".join(map(generator_words, difference.path.split(",")))
    if change is Change.RAISES:
        before = f"raises {was}" if was else "returns"
        after = f"raises {now} ({clipped(difference.message, _LONGEST)})" if now else "returns"
        return f"{after} where the original {before}"
    if change is Change.ERROR:
        return f"differs by {difference.size:.1g}{place} ({now} for {was}; allowed {difference.allowed:g})"
    if difference.part is Part.OUTSIDE:
        then, before = ("nothing new" if text is None else repr(clipped(text, _LONGEST)) for text in (now, was))
        return f"holds {then} after the call, not {before}"
    if is_state and (change is Change.TEXT or (change in (Change.NEW, Change.MISSING) and (was or now))):
        after = "unchanged" if now is None else clipped(now, _LONGEST)
        return f"is {after} after the call, not {clipped(was or 'unchanged', _LONGEST)}"
    return {
        Change.NO_BACKWARD: f"backward() fails: {clipped(difference.message, _LONGEST)}",
        Change.DRAWN: f"random numbers are drawn otherwise: {drawn}",
        Change.NEW: "is changed by the call" if is_state else "is new",
        Change.MISSING: "is not changed by the call" if is_state else "is missing",
        Change.SHAPE: f"has shape {now}, not {was}",
        Change.STRIDES: f"has strides {now}, not {was}",
        Change.ALIAS: f"shares its memory with {now or 'nothing'}, not {was or 'nothing'}",
        Change.ELEMENT: f"is {now}{place}, not {was}",
        Change.TIE: f"is {now}{place}, not {was}, a near tie that rounding decides",
        Change.NUMBER: f"is a {now} tensor, not the {was} that it holds",
    }.get(change, f"is {now or 'a tensor'}, not {was or 'a tensor'}")


_MOST_NAMED = 3


def observation_words(observation: Observation) -> str:
    """The observation as the end of a sentence without a full stop."""
    details = [one if isinstance(one, str) else difference_words(one) for one in observation.details]
    numbers = dict(zip(("first", "second", "third", "fourth"), observation.numbers, strict=False))
    return observation.kind.value.format(
        text=observation.text,
        names=", ".join(observation.names),
        some=first_few(observation.names, _MOST_NAMED),
        generators=first_few(tuple(map(generator_words, observation.names)), _MOST_NAMED),
        detail=details[0] if details else "",
        details=first_few(details, _MOST_NAMED, "; "),
        cause=f": {observation.text} changes" if observation.text else "",
        now_at=f": now at {first_few(observation.names, _MOST_NAMED)}, too" if observation.names else "",
        more_times=counted(observation.numbers[0], "more time", "more times") if observation.numbers else "",
        **numbers,
    )
