"""Measured runs in words: the captured calls, ratios, differences of results, and observations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from breakscan.model.words import counted
from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import CallAspect, Detail, Observation, ObservationKind, OtherCalls
from breakscan.prove.protocol import CallModes, Description, Mismatch, ValueMismatch
from breakscan.prove.torch_state import CUDA, NUMPY, NUMPY_GAUSS, PYTHON_GAUSS, TORCH
from breakscan.report.printable import visible


def captured_words(callables: Mapping[str, int], backward: Collection[str]) -> str:
    """``3 calls of Model with their backward pass, 1 call of evaluate``. ``backward`` names those with one."""
    return ", ".join(
        f"{counted(count, 'call')} of {visible(name)}{_backward(count) if name in backward else ''}"
        for name, count in callables.items()
    )


def _backward(count: int) -> str:
    return f" with {'its' if count == 1 else 'their'} backward pass"


def number(value: float) -> str:
    """``4.71``; to the tenth from ten on."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def interval(ratio: Ratio) -> str:
    """``[4.71, 5.12]``."""
    return f"[{number(ratio.low)}, {number(ratio.high)}]"


def ratio_words(ratio: Ratio) -> str:
    """``4.90 [4.71, 5.12]``."""
    return f"{number(ratio.median)} {interval(ratio)}"


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


_ONE_PROCESS = "{names} was timed in one process alone, as another one failed"
_NOT_PROBED = "no outcomes of tests were recorded, and nothing was run with other inputs"
_NO_DEVICE = "{names} is left out"
_WORDS = {
    ObservationKind.ERROR: "{text}",
    ObservationKind.FAILS_WITH_CHANGE: "the program fails with it: {text}",
    ObservationKind.DOES_NOT_RUN: "the program does not run with it: {text}",
    ObservationKind.OTHER_CALLS: "cannot be compared: {calls}",
    ObservationKind.NOT_LOADED: "the rewritten code did not run: {names} was not loaded",
    ObservationKind.UNKNOWN_SETTINGS: "torch has no setting {names}",
    ObservationKind.SETTINGS_LOST: "the setting did not hold: the program sets {names} itself",
    ObservationKind.UNREPEATABLE: "cannot be compared: the program does not repeat itself: {detail}",
    ObservationKind.WARM_CACHE: (
        "cannot be compared: a compiler cache is warm on one side only ({first} files are in it before anything is "
        "compiled: the program chooses its folder itself)"
    ),
    ObservationKind.OTHER_VALUES: "cannot be compared: {details}",
    ObservationKind.OTHER_RANDOM_START: (
        "cannot be compared: random numbers are drawn otherwise before the first call: {generators}"
    ),
    ObservationKind.OTHER_START: "cannot be compared: other values before the first call: {some}",
    ObservationKind.NO_CODE: "it changes no code",
    ObservationKind.NOT_EXECUTED: "the rewritten code did not run: none of its changed lines was executed",
    ObservationKind.EAGER_DIFFERS: "eager, {detail}",
    ObservationKind.COMPILED_DIFFERS: "compiled, {detail}",
    ObservationKind.BREAK_STAYS: "the break at {text} is still there",
    ObservationKind.SOFTENS_NOTHING: (
        "it softens nothing: {first} breaks, {second} before, and {third} functions that run eager, {fourth} before"
    ),
    ObservationKind.MORE_BREAKS: "it breaks the graph {first} times, not {second}{now_at}",
    ObservationKind.MORE_EAGER: "{first} functions run eager, not {second}",
    ObservationKind.MORE_RECOMPILES: "it is compiled {more_times} ({text} changes)",
    ObservationKind.UNSTEADY: "it is compiled again and again while it is timed",
    ObservationKind.ORIGINAL_UNSTEADY: "the program as it is is compiled again and again while it is timed",
    ObservationKind.VALUES_NOT_TAKEN: "it cannot be given the values of eager runs: {detail}",
    ObservationKind.MAKES_OTHER_CALLS: "it makes {calls}",
    ObservationKind.PROGRAM_SETS: "the program sets {names} itself",
    ObservationKind.DIFFERS: "{detail}",
    ObservationKind.RECOMPILES_TO_LIMIT: "it is compiled again until torch falls back to eager{cause}",
    ObservationKind.RECOMPILES_EACH_CALL: "it is compiled again at every call{cause}",
    ObservationKind.RECOMPILES_WHILE_TIMED: "it is compiled again while it is timed{cause}",
    ObservationKind.COMPILES_WHILE_EAGER: "the program compiles something while it runs eager",
    ObservationKind.NEEDS_CUDA: "CUDA graphs need tensors on a CUDA device",
    ObservationKind.SAME_CHOICE: "torch.compile takes it for the same",
    ObservationKind.REMOVES_NO_BREAK: "it removes no break",
    ObservationKind.NO_CUDA_GRAPHS: "without tensors on a GPU there are no CUDA graphs",
    ObservationKind.NO_MODULE: "what is compiled is a function, not a module: its blocks are not known",
    ObservationKind.NO_BLOCKS: "there are no repeated blocks: two modules of a class in a ModuleList or Sequential",
    ObservationKind.NO_REST: "there is nothing beside the blocks",
    ObservationKind.NO_NESTED_REGIONS: "this torch has no torch.compiler.nested_compile_region",
    ObservationKind.BLOCKS_OF_TORCH: "the forward of the blocks is torch's own",
    ObservationKind.CONSTANT_SHAPES: "nothing is compiled again, so all shapes are constants already",
    ObservationKind.INTERRUPTED: "it was interrupted",
    ObservationKind.FAILED_LATER: "the program failed after the captured calls: {text}",
    ObservationKind.LEFT_OUT: "too many compiled callables: not captured were {names}",
    ObservationKind.NOT_CALLED: "compiled and not called until the program was stopped: {names}",
    ObservationKind.INCOMPLETE: (
        "the calls reach more objects than were looked at: not all state is the same in all runs"
    ),
    ObservationKind.NO_DOUBLE: "there is no reference in double precision: {text}",
    ObservationKind.ORIGINAL_DIFFERS: "compiled, the program as it is differs from eager already: {detail}",
    ObservationKind.CACHE_OF_PROGRAM: (
        "the program chooses the folder of its compiler caches itself, and they are not empty: the seconds of "
        "compiling, and after how many calls it pays, are too small"
    ),
    ObservationKind.NOT_PROBED: f"{_NOT_PROBED}: {{text}}",
    ObservationKind.PROBE_MAKES_OTHER_CALLS: f"{_NOT_PROBED}: a further process makes {{calls}}",
    ObservationKind.PROBE_HAS_OTHER_VALUES: f"{_NOT_PROBED}: in a further process, {{detail}}",
    ObservationKind.NOT_STRESSED: "not all other inputs could be run: {text}",
    ObservationKind.STRESS_UNREPEATABLE: (
        "not all other inputs were compared, as the program does not repeat itself with them: {detail}"
    ),
    ObservationKind.NOT_PUT_BACK: "the position of an iterator cannot be put back before a call: {some}",
    ObservationKind.NOT_COMPARED: "results were not compared, as the program does not repeat itself: {detail}",
    ObservationKind.ONE_PROCESS: f"{_ONE_PROCESS}: {{text}}",
    ObservationKind.ONE_PROCESS_UNSTEADY: f"{_ONE_PROCESS}: it is compiled again while it is timed",
    ObservationKind.ONE_PROCESS_OTHER_CALLS: f"{_ONE_PROCESS}: it makes {{calls}}",
    ObservationKind.ONE_PROCESS_OTHER_VALUES: f"{_ONE_PROCESS}: {{detail}}",
    ObservationKind.DEVICE_LACKS_CORES: (
        f"{_NO_DEVICE}: the cores are not enough, as there should be {{first}} for each device"
    ),
    ObservationKind.DEVICE_FAILS: f"{_NO_DEVICE}: the program does not run there: {{text}}",
    ObservationKind.DEVICE_MAKES_OTHER_CALLS: f"{_NO_DEVICE}: the program makes {{calls}}",
    ObservationKind.DEVICE_DIFFERS: f"{_NO_DEVICE}: results differ there: {{detail}}",
    ObservationKind.DEVICE_STARTS_OTHERWISE: f"{_NO_DEVICE}: the program has other values there: {{text}}",
}
_MOST_NAMED = 3


def observation_words(observation: Observation) -> str:
    """The observation as the end of a sentence without a full stop."""
    details = [detail_words(one) for one in observation.details]
    numbers = dict(zip(("first", "second", "third", "fourth"), observation.numbers, strict=False))
    return _WORDS[observation.kind].format(
        text=observation.text,
        names=", ".join(observation.names),
        some=_some(observation.names, ", "),
        generators=_some(tuple(map(generator_words, observation.names)), ", "),
        detail=details[0] if details else "",
        details=_some(details, "; "),
        calls=_calls(observation.calls) if observation.calls else "",
        cause=f": {observation.text} changes" if observation.text else "",
        now_at=f": now at {_some(observation.names, ', ')}, too" if observation.names else "",
        more_times=counted(observation.numbers[0], "more time", "more times") if observation.numbers else "",
        **numbers,
    )


def detail_words(detail: Detail) -> str:
    """A difference in words."""
    return difference_words(detail) if isinstance(detail, ResultDifference) else mismatch_words(detail)


def _some(names: Sequence[str], separator: str) -> str:
    rest = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return separator.join(names[:_MOST_NAMED]) + rest


def _calls(other: OtherCalls) -> str:
    """``other calls: 2 × f, not 3 × f``."""
    name = {
        CallAspect.CALLABLES: "other calls",
        CallAspect.MODES: "other modes",
        CallAspect.BACKWARD: "another backward",
    }[other.aspect]
    return f"{name}: {_aspect(other.aspect, other.here)}, not {_aspect(other.aspect, other.there)}"


def _aspect(aspect: CallAspect, of: Description) -> str:
    if aspect is CallAspect.CALLABLES:
        return ", ".join(f"{one.calls} × {one.name}" for one in of.callables)
    if aspect is CallAspect.MODES:
        return str([_modes(one) for one in of.modes])
    return str(list(of.backward))


def _modes(modes: CallModes) -> dict[str, object]:
    return {
        "grad mode": modes.grad,
        "inference mode": modes.inference,
        "autocast": {device: [one.enabled, one.dtype] for device, one in modes.autocast.items()},
        "default dtype": modes.default_dtype,
    }
