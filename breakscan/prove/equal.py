"""Decides whether the results of two runs are equal: outputs, gradients, changes of state, random numbers, exceptions.

Floating-point numbers are rounded, most of all by TF32 and bfloat16, and atomic additions round them otherwise each
time.  So a tensor may be as far from that of the unchanged program as further runs of it are (its noise), or as far
from a run in higher precision as that of the unchanged program is itself, by the rules of PyTorch's own accuracy
harness (``torch._dynamo.utils.same``); where both programs run in higher precision, they must agree."""

from __future__ import annotations

import contextlib
import functools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, cast

from breakscan.prove.call_result import NO_GRADIENT, NUMBERS, SAMPLE, CallResult, sample_positions
from breakscan.prove.state import UNREAD, shape_of
from breakscan.prove.torch_state import cuda_in_use, torch


class Part(str, Enum):
    """The part of a result that differs."""

    OUTPUT = "output"
    GRADIENT = "gradient"
    STATE = "state"
    RANDOM = "random"
    EXCEPTION = "exception"
    OUTSIDE = "outside"
    """A file, or a variable of the environment."""
    CALLS = "calls"


class Change(str, Enum):
    """The kind of a difference."""

    CALL_COUNT = "call-count"
    RAISES = "raises"
    NO_BACKWARD = "no-backward"
    MISSING = "missing"
    NEW = "new"
    DTYPE = "dtype"
    SHAPE = "shape"
    STRIDES = "strides"
    ELEMENT = "element"
    """An element of a tensor of integers or bools differs."""
    TIE = "tie"
    """As many of them differ as rounding alone makes the unchanged program decide otherwise."""
    ERROR = "error"
    """The error of an element is larger than allowed."""
    NUMBER = "number"
    """A tensor replaces the Python number that it holds."""
    TEXT = "text"
    """A part that is not a tensor has another value, or only one of both is a tensor."""
    ALIAS = "alias"
    DRAWN = "drawn"


FORMER = "its former value"
"""With this, a part of the state that is changed in place shares its memory."""
NOTED = (Change.TIE, Change.NUMBER)
"""Differences that a reader must know of, and that are no error."""
VALUES = (*NOTED, Change.ERROR, Change.ELEMENT)
"""Differences of values of the same shape and dtype."""
MEMORY = (Change.ALIAS, Change.STRIDES)
STRUCTURE = frozenset({Change.RAISES, Change.NO_BACKWARD, Change.DTYPE, Change.SHAPE, *MEMORY})
"""Differences that other random numbers do not explain."""


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """``was`` belongs to the result that counts as correct, ``now`` to the other one; None where there is nothing.
    ``path`` names the value (or a list of generators), ``at`` the worst element, ``size`` its error, ``allowed`` the
    tolerance.  ``call`` counts from 0; ``message`` is that of the exception."""

    part: Part
    change: Change
    path: str = ""
    was: str | None = None
    now: str | None = None
    at: tuple[int, ...] = ()
    size: float | None = None
    allowed: float | None = None
    message: str = ""
    call: int = 0


TOLERANCES = {"torch.float64": 1e-7, "torch.float32": 1e-4, "torch.float16": 1e-3, "torch.bfloat16": 1e-2}
"""Of compiled code.  Relative to an element, or to the root mean square of its tensor if that is larger: where large
terms cancel, what is left is rounded like the terms."""
STRICT = {"torch.float64": 1e-9, "torch.float32": 1e-5, "torch.float16": 1e-3, "torch.bfloat16": 1e-2}
"""Of eager code against eager code."""
SMALLEST = {"torch.float64": 1e-13}
"""Absolute, 1e-7 of other dtypes: less is rounding of zero."""
FARTHEST = 10.0
"""Times the worst element of the unchanged program."""
FLIPPED = 0.05
"""The largest part of integers or bools that rounding may decide."""
AT_ONCE = 2**20
"""Elements that are compared at once, as double precision needs memory."""
LARGE = 2**16
"""Elements from which on a tensor is compared on a GPU."""
_TENSORS = {Part.OUTPUT: "outputs", Part.GRADIENT: "gradients", Part.STATE: "changed"}


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of a tensor from another: the root mean square error, and the worst with the number of its element.
    ``close`` says that each error is within the tolerance.  The error of an integer or a bool is 0 or 1."""

    rms: float = 0.0
    worst: float = 0.0
    at: int = 0
    close: bool = True

    @classmethod
    def between(cls, one: torch.Tensor, other: torch.Tensor, relative: float = 0.0, absolute: float = 0.0) -> Distance:
        """The distance of ``other`` from ``one``, which has the same shape."""
        one, other = _on_gpu(one), _on_gpu(other)
        if one.device != other.device:
            one, other = one.cpu(), other.cpu()
        if not one.numel() or (one.dtype == other.dtype and torch.equal(one, other)):
            return cls()
        is_rounded, scale = _is_rounded(one), root_mean_square(one) if relative else 0.0
        squares, worst, at, close = 0.0, -1.0, 0, True
        parts, others = (torch.split(tensor.flatten(), AT_ONCE) for tensor in (one, other))
        for number, (a, b) in enumerate(zip(parts, others, strict=True)):
            error = _error(a, b) if is_rounded else (a != b).to(torch.float32)
            largest = float(error.max())
            squares += float(torch.linalg.vector_norm(error, dtype=torch.float64)) ** 2
            if largest > worst:
                worst, at = largest, number * AT_ONCE + int(error.argmax())
            if largest > (absolute + relative * scale if is_rounded else 0.0):
                allowed = absolute + relative * _wide(a).abs().nan_to_num_(0.0, 0.0).clamp_(min=scale)
                close = close and is_rounded and bool((error <= allowed).all())
        return cls(math.sqrt(squares / one.numel()), worst, at, close)

    def is_like(self, usual: Distance | None, one: torch.Tensor) -> bool:
        """Return whether it is no larger than a usual distance, in the mean and at the worst element."""
        if usual is None:
            return False
        count = one.numel()
        half = str(one.dtype) in ("torch.float16", "torch.bfloat16")
        # A few elements may be close by chance.
        factor = FARTHEST if count <= 10 else 3.0 if half or count < 1000 else 2.0
        return self.rms <= factor * usual.rms and self.worst <= FARTHEST * usual.worst


class Noise(NamedTuple):
    """The distance of a value of the unchanged program from itself in further runs: eager, compiled, or ``exact``."""

    part: Part
    path: str
    rms: float
    worst: float
    exact: bool = False


class Expected:
    """The results of the unchanged program, call by call, with which others are compared; ``exact`` are those in
    higher precision.  Noise is by path: that of all calls counts for each."""

    def __init__(self, results: Sequence[CallResult], exact: Sequence[CallResult] | None = None) -> None:
        self.results = results
        self._exact = exact or [CallResult() for _ in results]
        self.moves = False
        """True if parts of results may be at other places, as the code that reads them has changed, too."""
        self.seen: dict[tuple[Part, str], Distance] = {}
        """The distances of what was compared last."""
        self.is_loose = False
        """Something of it differs by more than float32 rounds, which noise, a narrow type or larger values allow."""
        self._noise: dict[tuple[Part, str], Distance] = {}
        self._exact_noise: dict[tuple[Part, str], Distance] = {}
        self._own: dict[tuple[Part, str], Distance] = {}
        """The distances of the results from those in higher precision."""
        self._zero: set[tuple[Part, str]] = set()
        """Values that are nothing but rounding, as higher precision shows."""
        relative = []
        for _, part, path, one, exactly in _pairs(results, self._exact):
            own, size = Distance.between(exactly, one), root_mean_square(one)
            if _is_rounded(one) and root_mean_square(exactly) < 0.1 * own.rms:
                self._zero.add((part, path))
            elif _is_rounded(one) and own.rms > size / 2:
                # Other random numbers are drawn in higher precision, or too much rests on rounding.
                continue
            elif _is_rounded(one) and size:
                relative.append(own.rms / size)
            _widen(self._own, part, path, own)
        # How much of its distance the program has left in higher precision, where some code may still round to float32.
        self._left = min(1.0, STRICT["torch.float32"] / max(statistics.median(relative or [0.0]), 1e-9))

    def know(self, noise: Iterable[Noise]) -> None:
        """Replaces the noise."""
        self._noise, self._exact_noise = {}, {}
        for part, path, rms, worst, exact in noise:
            _widen(self._exact_noise if exact else self._noise, part, path, Distance(rms, worst))

    def distances(self, exact: bool = False) -> list[Noise]:
        """The distances of what was compared last, in higher precision if ``exact``."""
        return [Noise(part, path, one.rms, one.worst, exact) for (part, path), one in self.seen.items() if one.worst]

    @functools.cached_property
    def sizes(self) -> Mapping[tuple[Part, str], float]:
        """The largest root mean square of each tensor."""
        sizes: dict[tuple[Part, str], float] = {}
        for _, part, path, one, _ in _pairs(self.results, self.results):
            sizes[part, path] = max(sizes.get((part, path), 0.0), root_mean_square(one))
        return sizes

    def of_other_call(self, result: CallResult) -> Expected:
        """The same for another call of the unchanged program, whose values are as inexact for their size."""
        other = Expected([result])
        other.moves = self.moves
        for (part, path), usual in (*self._own.items(), *self._noise.items()):
            tensor = _tensors(result, part).get(path)
            if tensor is not None and (size := self.sizes.get((part, path))):
                factor = root_mean_square(tensor) / size
                _widen(other._noise, part, path, Distance(usual.rms * factor, usual.worst * factor))
        return other

    def drowns(self, part: Part, path: str) -> bool:
        """Return whether the distance of a value that was compared last is of its size."""
        noise = self.seen.get((part, path), Distance()).rms
        return (part, path) not in self._zero and noise > 0.1 * self.sizes[part, path]

    def differences(self, runs: Sequence[CallResult], eager: bool) -> list[ResultDifference]:
        """The differences of results of another program, or of the compiled one unless ``eager``."""
        self.seen, self.is_loose = {}, False
        if len(self.results) != len(runs):
            return [ResultDifference(Part.CALLS, Change.CALL_COUNT, was=str(len(self.results)), now=str(len(runs)))]
        return [
            replace(difference, call=number)
            for number, (one, other) in enumerate(zip(self.results, runs, strict=True))
            for difference in self._of_call(one, other, self._exact[number], eager)
        ]

    def differences_when_exact(self, runs: Sequence[CallResult]) -> list[ResultDifference]:
        """The differences of results of another program in higher precision: values alone, as it may change types."""
        found = []
        self.seen = {}
        for number, part, path, exactly, now in _pairs(self._exact, runs):
            one = self.results[number]
            plain = _tensors(one, part).get(path, exactly)
            is_double = str(plain.dtype) == "torch.float64" and not _is_number(one, part, path)
            tolerance = STRICT["torch.float64" if is_double else "torch.float32"]
            distance = Distance.between(exactly, now, tolerance, self._absolute(part, exactly, exactly, tolerance))
            _widen(self.seen, part, path, distance)
            own = self._own.get((part, path), Distance())
            left = Distance(own.rms * self._left, own.worst * self._left)
            is_usual = any(distance.is_like(one, exactly) for one in (left, self._exact_noise.get((part, path))))
            if not (distance.close or (_is_rounded(exactly) and is_usual)):
                found.append(replace(_at(part, path, one, exactly, now, distance, tolerance), call=number))
        return found

    def _absolute(self, part: Part, one: torch.Tensor, exact: torch.Tensor | None, tolerance: float) -> float:
        """The absolute tolerance, which only matters for what is nothing but rounding."""
        if exact is not None and str(exact.dtype) in ("torch.float64", "torch.complex128"):
            return SMALLEST.get(str(one.dtype), 1e-7)
        if part is Part.GRADIENT:
            return tolerance * max(size for (each, _), size in self.sizes.items() if each is part)
        return tolerance

    def _of_call(
        self, one: CallResult, other: CallResult, exact: CallResult, eager: bool
    ) -> Iterator[ResultDifference]:
        if one.error != other.error:
            error = other.error_text
            yield ResultDifference(Part.EXCEPTION, Change.RAISES, was=one.error, now=other.error, message=error)
            return
        if self.moves:
            other = _at_places_of(one, other)
        if other.no_backward and not one.no_backward:
            yield ResultDifference(Part.GRADIENT, Change.NO_BACKWARD, message=other.no_backward)
        # Compiled code runs the backward pass only where the program does, unless the call runs it itself.
        has_gradients = eager or other.gradients or one.no_backward == NO_GRADIENT
        # Where the backward pass of the unchanged program fails, as it may with other sizes, nothing shows.
        has_gradients = has_gradients and one.no_backward in (None, NO_GRADIENT)
        for part in (Part.OUTPUT, *([Part.GRADIENT] if has_gradients else []), Part.STATE):
            yield from self._of_part(part, one, other, exact, eager)
        for difference in _of_texts(one, other):
            # Compiled code goes around caches of functions.
            if eager or not difference.path.endswith(UNREAD):
                yield difference
        for path in one.outputs:
            # Numbers have no memory of their own.
            if one.others.get(path) == other.others.get(path):
                yield from _unlike(Part.OUTPUT, Change.ALIAS, path, one.aliases, other.aliases)
                yield from _unlike(Part.OUTPUT, Change.STRIDES, path, one.strides, other.strides)
        for path in filter(other.changed.__contains__, other.aliases):
            # A copy more is harmless.
            yield from _unlike(Part.STATE, Change.ALIAS, path, one.aliases, other.aliases)
        if eager:
            changed = {*one.changed, *one.changes, *other.changed, *other.changes}
            for path in sorted(one.replaced ^ other.replaced):
                # Where it is changed in place, others that hold it see that.
                if any(its == path or its.startswith(f"{path}[") for its in changed):
                    was, now = (None if path in each.replaced else FORMER for each in (one, other))
                    yield ResultDifference(Part.STATE, Change.ALIAS, path, was, now)
            for path in {**one.outside, **other.outside}:
                yield from _unlike(Part.OUTSIDE, Change.TEXT, path, one.outside, other.outside)
        if drawn := [name for name in one.rng if one.rng[name] != other.rng.get(name)]:
            yield ResultDifference(Part.RANDOM, Change.DRAWN, path=",".join(drawn))

    def _of_part(
        self, part: Part, one: CallResult, other: CallResult, exact: CallResult, eager: bool
    ) -> Iterator[ResultDifference]:
        was, now = _tensors(one, part), _tensors(other, part)
        for path in {**was, **now}:
            if path not in was or path not in now:
                # Of outputs, the texts have all paths.
                if part is not Part.OUTPUT:
                    change = Change.NEW if path in now else Change.MISSING
                    both = (each.get(path) for each in (was, now))
                    before, after = (None if it is None or it.ndim else _number(it.item()) for it in both)
                    yield ResultDifference(part, change, path, before, after)
                continue
            if _becomes_tensor(one, other, part, path):
                yield ResultDifference(part, Change.NUMBER, path, _texts(one, part)[path], _dtype(now[path]))
            elif was[path].dtype != now[path].dtype:
                # Python types say so themselves.
                if _texts(one, part).get(path) == _texts(other, part).get(path):
                    yield ResultDifference(part, Change.DTYPE, path, _dtype(was[path]), _dtype(now[path]))
                continue
            shape, other_shape = one.shape(path, was[path]), other.shape(path, now[path])
            if shape != other_shape:
                yield ResultDifference(part, Change.SHAPE, path, shape_of(shape), shape_of(other_shape))
            elif found := self._of_tensor(part, path, one, now[path], _tensors(exact, part).get(path), eager):
                yield found

    def _of_tensor(
        self, part: Part, path: str, result: CallResult, other: torch.Tensor, exact: torch.Tensor | None, eager: bool
    ) -> ResultDifference | None:
        """The difference of a tensor of the same shape; None where it counts as equal."""
        one = _tensors(result, part)[path]
        exact = exact if exact is not None and exact.shape == one.shape else None
        is_number = _is_number(result, part, path)
        # Python numbers are made of tensors, and rounded as those are.
        dtype = str((other if is_number else one).dtype)
        dtype = "torch.float32" if is_number and dtype == "torch.float64" else dtype
        tolerances = STRICT if eager else TOLERANCES
        tolerance = tolerances.get(dtype, tolerances["torch.float32"])
        distance = Distance.between(one, other, tolerance, self._absolute(part, one, exact, tolerance))
        _widen(self.seen, part, path, distance)
        if distance.worst and not self.is_loose:
            self.is_loose = not distance.worst <= STRICT["torch.float32"] * root_mean_square(one)
        if distance.close:
            return None
        own, noise = self._own.get((part, path)), self._noise.get((part, path))
        is_usual = distance.is_like(noise, one) or (
            exact is not None and own is not None and Distance.between(exact, other).is_like(own, one)
        )
        if is_usual and _is_rounded(one):
            return None
        found = _at(part, path, result, one, other, distance, tolerance)
        flipped = max((usual.rms**2 for usual in (own, noise) if usual is not None), default=1.0)
        is_tie = is_usual and part is Part.OUTPUT and flipped <= FLIPPED
        return replace(found, change=Change.TIE) if is_tie else found


def has_information(tensor: torch.Tensor) -> bool:
    """Return whether any element is neither zero nor infinite nor NaN: other code would hardly compute the same."""
    wide = _wide(tensor)
    return bool((wide.isfinite() & (wide != 0)).any())


def root_mean_square(tensor: torch.Tensor) -> float:
    """Of the finite elements."""
    squares = 0.0
    for part in map(_wide, torch.split(_on_gpu(tensor).flatten(), AT_ONCE)):
        norm = float(torch.linalg.vector_norm(part, dtype=part.dtype))
        squares += (norm if math.isfinite(norm) else float(part.abs().nan_to_num_(0.0, 0.0).double().norm())) ** 2
    return math.sqrt(squares / max(1, tensor.numel()))


def _on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """A large tensor on the GPU, if there is one with room: a CPU needs a minute for all gradients of a small GPT."""
    if tensor.numel() >= LARGE and cuda_in_use():
        with contextlib.suppress(torch.OutOfMemoryError):
            return tensor.to("cuda")
    return tensor


def _tensors(result: CallResult, part: Part) -> Mapping[str, torch.Tensor]:
    return cast("Mapping[str, torch.Tensor]", getattr(result, _TENSORS[part]))


def _pairs(
    results: Sequence[CallResult], runs: Sequence[CallResult]
) -> Iterator[tuple[int, Part, str, torch.Tensor, torch.Tensor]]:
    """The tensors that both have in the same shape, with the number of the call."""
    for number, (one, other) in enumerate(zip(results, runs, strict=False)):
        for part in _TENSORS:
            others = _tensors(other, part)
            for path, tensor in _tensors(one, part).items():
                if path in others and others[path].shape == tensor.shape:
                    yield number, part, path, tensor, others[path]


def _widen(distances: dict[tuple[Part, str], Distance], part: Part, path: str, distance: Distance) -> None:
    known = distances.get((part, path), Distance())
    if math.isfinite(distance.rms):
        distances[part, path] = Distance(max(known.rms, distance.rms), max(known.worst, distance.worst))


def _texts(result: CallResult, part: Part) -> Mapping[str, str]:
    return {Part.OUTPUT: result.others, Part.STATE: result.changes}.get(part, {})


def _is_number(result: CallResult, part: Part, path: str) -> bool:
    return _texts(result, part).get(path) in NUMBERS


def places_of(one: CallResult, other: CallResult) -> dict[str, str]:
    """The paths at which another result, of other parts, has those of the first one: equal tensors, at the same path if
    they can be, and texts.  Empty if one is missing."""
    places: dict[str, str] = {}
    for path, tensor in one.outputs.items() if one.others.keys() != other.others.keys() else ():
        left = (its for its in (path, *other.outputs) if its in other.outputs and its not in places.values())
        alike = (its for its in left if other.outputs[its].shape == tensor.shape)
        near = (its for its in alike if torch.allclose(_wide(other.outputs[its]), _wide(tensor), 0.01, 0.01, True))
        places[path] = next(near, "")
    texts = {path for path in one.others.keys() - places.keys() if not any(its.startswith(path) for its in places)}
    return {} if "" in places.values() or texts - other.others.keys() else places | {path: path for path in texts}


def _at_places_of(one: CallResult, other: CallResult) -> CallResult:
    """The other result with what it returns at the paths of the first one, and nothing else."""
    if not (places := places_of(one, other)):
        return other
    moved: dict[str, Any] = {"others": {path: text for path, text in one.others.items() if path not in places}}
    for kind in ("outputs", "others", "aliases", "strides"):
        held = getattr(other, kind)
        moved[kind] = moved.get(kind, {}) | {path: held[its] for path, its in places.items() if its in held}
    return replace(other, **moved)


def _of_texts(one: CallResult, other: CallResult) -> Iterator[ResultDifference]:
    """Differences of texts and types, unless those of tensors say so."""
    for part in (Part.OUTPUT, Part.STATE):
        was, now = _texts(one, part), _texts(other, part)
        for path in {**was, **now}:
            before, after = was.get(path), now.get(path)
            if before == after or _becomes_tensor(one, other, part, path):
                continue
            if part is Part.STATE and (path in one.changed) is not (path in other.changed):
                continue
            change = Change.NEW if before is None else Change.MISSING if after is None else Change.TEXT
            yield ResultDifference(part, Change.TEXT if part is Part.STATE else change, path, before, after)


def _unlike(
    part: Part, change: Change, path: str, one: Mapping[str, str], other: Mapping[str, str]
) -> Iterator[ResultDifference]:
    if one.get(path) != other.get(path):
        yield ResultDifference(part, change, path, one.get(path), other.get(path))


def _becomes_tensor(one: CallResult, other: CallResult, part: Part, path: str) -> bool:
    """Return whether a tensor without dimensions replaces a Python number."""
    tensor = _tensors(other, part).get(path)
    is_number = _is_number(one, part, path) and path in _tensors(one, part)
    return is_number and tensor is not None and not tensor.ndim and not _is_number(other, part, path)


def _is_rounded(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _error(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The error of each element: 0 for equal ones, NaN and infinities included, infinite for a NaN on one side."""
    error = (_wide(b) - _wide(a)).abs()
    if math.isfinite(float(error.max())):
        return error
    error = error.where((a != b) & ~(a.isnan() & b.isnan()), error.new_zeros(()))
    return error.nan_to_num_(nan=math.inf, posinf=math.inf)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype.is_complex:
        return tensor.to(torch.complex128)
    return tensor.to(torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else torch.float64)


def _at(
    part: Part,
    path: str,
    result: CallResult,
    one: torch.Tensor,
    other: torch.Tensor,
    distance: Distance,
    tolerance: float,
) -> ResultDifference:
    """The difference at the worst element of a value of the result."""
    rest, shape = distance.at, result.shape(path, one)
    if path in result.shapes:
        # After the sample come figures of the whole.
        rest, shape = (int(sample_positions(math.prod(shape))[rest]), shape) if rest < SAMPLE else (0, ())
    place = tuple(map(int, torch.unravel_index(torch.tensor(rest), shape)))
    was, now = (_number(tensor.flatten()[distance.at].item()) for tensor in (one, other))
    if not _is_rounded(one):
        return ResultDifference(part, Change.ELEMENT, path, was, now, place)
    return ResultDifference(part, Change.ERROR, path, was, now, place, distance.worst, tolerance)


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
