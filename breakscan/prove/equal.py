"""Decides whether the results of two runs are equal: outputs, gradients, changes of state, random numbers, exceptions.

Two tensors are equal in the sense of PyTorch's own accuracy harness (``torch._dynamo.utils.same``): each element is
within a tolerance, or the error against a run in double precision is at most a few times that of the baseline.  The
second rule looks at means, which one wrong element of many does not change: so the worst element must not be far off
either.  Between two eager runs both rules must hold; what is small beside the rest of its tensor may then be off by
the tolerance of the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from itertools import repeat
from typing import TYPE_CHECKING, ClassVar

from breakscan.prove.call_result import NO_GRADIENT, CallResult
from breakscan.prove.object_walk import CACHE_INFO
from breakscan.prove.state import shape_of
from breakscan.source.cores import usable_cores

if TYPE_CHECKING:
    from torch import Tensor


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
    ELEMENT = "element"
    """An element of a tensor of integers or bools differs."""
    ERROR = "error"
    """The error of an element is larger than allowed."""
    TEXT = "text"
    """A part that is not a tensor has another value, or only one of both is a tensor."""
    ALIAS = "alias"
    DRAWN = "drawn"


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """``was`` belongs to the result that counts as correct, ``now`` to the other one; None where there is nothing.

    ``path`` names the value (or a list of generators), ``at`` the worst element, ``size`` its error, ``allowed`` the
    tolerance.  ``call`` counts from 0; ``message`` is that of the exception.
    """

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
"""Relative and absolute, of compiled code."""
STRICT = {"torch.float64": 1e-12, "torch.float32": 1e-5, "torch.float16": 1e-3, "torch.bfloat16": 1e-2}
"""Of eager code against eager code."""
FARTHEST = 10.0
"""Times the worst element of the baseline."""
AT_ONCE = 2**17
"""Elements that a thread compares at once: in double precision they fit into a processor's cache."""
MOST_THREADS = usable_cores()

_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:e[+-]\d+)?|e[+-]\d+)")


@dataclass(frozen=True, slots=True)
class Strictness:
    """``eager`` says that both runs are eager.  Unless ``random``, the generators after the call may differ; unless
    ``values``, the computed values may; unless ``types``, a tensor may replace the Python number that it holds."""

    eager: bool
    random: bool = True
    values: bool = True
    types: bool = True

    EAGER: ClassVar[Strictness]
    COMPILED: ClassVar[Strictness]

    def but(self, *, random: bool = True, values: bool = True, types: bool = True) -> Strictness:
        """With fewer demands."""
        return replace(self, random=self.random and random, values=self.values and values, types=self.types and types)

    def tolerance(self, dtype: str) -> float:
        """Relative and absolute."""
        return (STRICT if self.eager else TOLERANCES).get(dtype, 1e-4)


Strictness.EAGER = Strictness(eager=True)
Strictness.COMPILED = Strictness(eager=False)


def differences(
    baseline: Sequence[CallResult],
    runs: Sequence[CallResult],
    double: Sequence[CallResult] | None,
    how: Strictness,
) -> list[ResultDifference]:
    """How the runs differ from the baseline, call by call; ``double`` are the results in double precision."""
    if len(baseline) != len(runs):
        return [ResultDifference(Part.CALLS, Change.CALL_COUNT, was=str(len(baseline)), now=str(len(runs)))]
    return [
        replace(difference, call=number)
        for number, (one, other) in enumerate(zip(baseline, runs, strict=True))
        for difference in _of_call(one, other, double[number] if double else CallResult(), how)
    ]


def _of_call(one: CallResult, other: CallResult, exact: CallResult, how: Strictness) -> Iterator[ResultDifference]:
    other = other if how.types else _with_numbers_of(one, other)
    if one.error != other.error:
        yield ResultDifference(Part.EXCEPTION, Change.RAISES, was=one.error, now=other.error, message=other.error_text)
        return
    if other.no_backward and not one.no_backward:
        yield ResultDifference(Part.GRADIENT, Change.NO_BACKWARD, message=other.no_backward)
    yield from _of_tensors(Part.OUTPUT, one.outputs, other.outputs, exact.outputs, how)
    # Compiled code runs the backward pass only where the program does.  Without one, gradients are those of the call.
    if how.eager or other.gradients or one.no_backward == NO_GRADIENT:
        yield from _of_tensors(Part.GRADIENT, one.gradients, other.gradients, exact.gradients, how)
    yield from _of_tensors(Part.STATE, one.changed, other.changed, exact.changed, how)
    yield from _of_others(one, other, how)
    if how.eager:
        yield from _of_texts(Part.OUTPUT, Change.ALIAS, one.aliases, other.aliases, lambda was, now: was == now)
    same = _same_text(how)
    # Compiled code goes around caches of functions.
    changes, other_changes = (
        {path: text for path, text in result.changes.items() if how.eager or not path.endswith(CACHE_INFO)}
        for result in (one, other)
    )
    yield from _of_texts(Part.STATE, Change.TEXT, changes, other_changes, same)
    if how.eager:
        yield from _of_texts(Part.OUTSIDE, Change.TEXT, one.outside, other.outside, _same_outside)
    if how.random:
        drawn = [name for name in one.rng if one.rng[name] != other.rng.get(name)]
        if drawn:
            yield ResultDifference(Part.RANDOM, Change.DRAWN, path=",".join(drawn))


NOISE = "*"
"""What is outside of the program and differs each time."""


def _same_outside(was: str | None, now: str | None) -> bool:
    return was == now or NOISE in (was, now)


def _with_numbers_of(one: CallResult, other: CallResult) -> CallResult:
    """The other result, with a number in place of each tensor that holds one where the first result has a number."""
    outputs = {
        path: repr(held.item()) for path, held in other.outputs.items() if path not in one.outputs and not held.ndim
    }
    # An attribute that was None and holds a tensor now is in both: as a tensor, and as a text that is gone.
    changed = {
        path: repr(held.item())
        for path, held in other.changed.items()
        if path in one.changes and path not in one.changed and not held.ndim
    }
    return replace(
        other,
        outputs={path: tensor for path, tensor in other.outputs.items() if path not in outputs},
        others={**other.others, **outputs},
        aliases={path: owner for path, owner in other.aliases.items() if path not in outputs},
        changed={path: tensor for path, tensor in other.changed.items() if path not in changed},
        changes={**other.changes, **changed},
    )


def _of_others(one: CallResult, other: CallResult, how: Strictness) -> Iterator[ResultDifference]:
    """Parts of the result that are not tensors, in one of both at least."""
    for difference in _of_texts(Part.OUTPUT, Change.TEXT, one.others, other.others, _same_text(how)):
        if difference.was is not None and difference.now is not None:
            yield difference
        elif difference.path not in one.outputs and difference.path not in other.outputs:
            yield replace(difference, change=Change.MISSING if difference.now is None else Change.NEW)


def _of_texts(
    part: Part,
    change: Change,
    one: Mapping[str, str],
    other: Mapping[str, str],
    same: Callable[[str | None, str | None], bool],
) -> Iterator[ResultDifference]:
    for path in dict.fromkeys([*one, *other]):
        was, now = one.get(path), other.get(path)
        if not same(was, now):
            yield ResultDifference(part, change, path, was, now)


def _same_text(how: Strictness) -> Callable[[str | None, str | None], bool]:
    """Compares values as text.  Python numbers that are made of tensors are rounded as those are."""
    tolerance = how.tolerance("torch.float32")

    def same(was: str | None, now: str | None) -> bool:
        if was == now or was is None or now is None or not (_FLOAT.fullmatch(was) and _FLOAT.fullmatch(now)):
            return was == now
        return math.isclose(float(was), float(now), rel_tol=tolerance, abs_tol=tolerance)

    return same


def _of_tensors(
    part: Part, one: Mapping[str, Tensor], other: Mapping[str, Tensor], exact: Mapping[str, Tensor], how: Strictness
) -> Iterator[ResultDifference]:
    for path in dict.fromkeys([*one, *other]):
        if path not in one or path not in other:
            yield ResultDifference(part, Change.NEW if path in other else Change.MISSING, path)
            continue
        difference = tensor_difference(part, path, one[path], other[path], exact.get(path), how)
        if difference is not None:
            yield difference


def tensor_difference(
    part: Part, path: str, one: Tensor, other: Tensor, exact: Tensor | None, how: Strictness
) -> ResultDifference | None:
    """How a tensor differs from that of the baseline; None where they are equal.  ``exact`` is the same in double
    precision."""
    import torch

    if one.dtype != other.dtype:
        return ResultDifference(part, Change.DTYPE, path, _dtype(one), _dtype(other))
    if one.shape != other.shape:
        return ResultDifference(part, Change.SHAPE, path, shape_of(one), shape_of(other))
    if not how.values or not one.numel() or torch.equal(one, other):
        return None
    if not (one.dtype.is_floating_point or one.dtype.is_complex):
        first = int((one != other).flatten().to(torch.uint8).argmax())
        return replace(_at(part, path, one, other, first), change=Change.ELEMENT)
    exact = exact if exact is not None and exact.shape == one.shape else None
    tolerance = how.tolerance(str(one.dtype))
    found = _Errors.between(one, other, exact if how.eager else None, tolerance)
    if exact is not None and not how.eager and not found.close:
        found = _Errors.between(one, other, exact, tolerance)
    if found.are_small(one, other, tolerance, both_rules=how.eager):
        return None
    return replace(_at(part, path, one, other, found.at), size=found.worst, allowed=tolerance)


def has_information(tensor: Tensor) -> bool:
    """Whether any element is neither zero nor infinite nor NaN: other code would hardly compute the same."""
    wide = _wide(tensor)
    return bool((wide.isfinite() & (wide != 0)).any())


@dataclass(slots=True)
class _FromExact:
    """How far one of the results is from the one in double precision: the sum of the squares, and the worst element."""

    squares: float = 0.0
    worst: float = 0.0

    @classmethod
    def between(cls, result: Tensor, exact: Tensor) -> _FromExact:
        import torch

        error = result - exact
        return cls(float(torch.linalg.vector_norm(error)) ** 2, float(torch.linalg.vector_norm(error, math.inf)))

    def __add__(self, other: _FromExact) -> _FromExact:
        return _FromExact(self.squares + other.squares, max(self.worst, other.worst))


@dataclass(slots=True)
class _Errors:
    """The errors of all elements of a result, or of a part of it.

    ``close`` says that each element is within the tolerance, ``worst`` is the largest error and ``at`` the place of its
    element.  ``of_one`` and ``of_other`` are the errors against the result in double precision; None without one, or if
    it or the baseline is not finite.
    """

    close: bool = True
    worst: float = -1.0
    at: int = 0
    of_one: _FromExact | None = None
    of_other: _FromExact | None = None

    @classmethod
    def between(cls, one: Tensor, other: Tensor, exact: Tensor | None, tolerance: float) -> _Errors:
        """The errors of ``other``; ``exact`` has the shape of ``one``."""
        import torch

        parts, others = (torch.split(tensor.flatten(), AT_ONCE) for tensor in (one, other))
        exacts = torch.split(exact.flatten(), AT_ONCE) if exact is not None else repeat(None)
        # Each thread of Python computes by itself.
        threads = torch.get_num_threads()
        if parts[1:]:
            torch.set_num_threads(1)
        try:
            with ThreadPoolExecutor(min(len(parts), MOST_THREADS)) as pool:
                errors = pool.map(cls._of_part, parts, others, exacts, repeat(tolerance))
                return reduce(cls._joined, (replace(part, at=n * AT_ONCE + part.at) for n, part in enumerate(errors)))
        finally:
            torch.set_num_threads(threads)

    @classmethod
    def _of_part(cls, one: Tensor, other: Tensor, exact: Tensor | None, tolerance: float) -> _Errors:
        a, b = _wide(one), _wide(other)
        error = _error(a, b)
        at = int(error.argmax())
        worst = float(error[at])
        # Where that does not decide, the tolerance is relative, too, unless the element is infinite.
        close = worst <= tolerance or bool((error <= tolerance + tolerance * a.abs().nan_to_num_(0.0, 0.0)).all())
        found = cls(close, worst, at)
        if exact is not None and bool(exact.isfinite().all()) and bool(a.isfinite().all()):
            true = exact.to(a.dtype)
            found.of_one, found.of_other = _FromExact.between(a, true), _FromExact.between(b, true)
        return found

    def _joined(self, after: _Errors) -> _Errors:
        """The errors of this part and the one after it."""
        first = self if self.worst >= after.worst else after
        joined = _Errors(self.close and after.close, first.worst, first.at)
        if self.of_one and self.of_other and after.of_one and after.of_other:
            joined.of_one, joined.of_other = self.of_one + after.of_one, self.of_other + after.of_other
        return joined

    def are_small(self, one: Tensor, other: Tensor, tolerance: float, both_rules: bool) -> bool:
        """Whether the results count as equal, by one of the rules or by both."""
        if self.of_one is None or self.of_other is None:
            return self.close
        near = _is_near(self.of_one, self.of_other, one, tolerance)
        if not both_rules:
            return self.close or near
        return near and (self.close or _is_close_in_scale(one, other, tolerance))


def _is_close_in_scale(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Whether each element is within a tolerance that is relative to the root mean square if the element is smaller.

    Where large terms cancel, as in gradients that are added up over calls, what is left is rounded like the terms.
    """
    import torch

    parts, others = (torch.split(tensor.flatten(), AT_ONCE) for tensor in (one, other))
    scale = math.sqrt(sum(float(_wide(part).abs().square().sum()) for part in parts) / one.numel())
    for part, other_part in zip(parts, others, strict=True):
        a = _wide(part)
        if not bool((_error(a, _wide(other_part)) <= tolerance + tolerance * a.abs().clamp(min=scale)).all()):
            return False
    return True


def _error(a: Tensor, b: Tensor) -> Tensor:
    """The error of each element: 0 for equal ones, NaN and infinities included, infinite for a NaN on one side."""
    error = (b - a).abs()
    if bool(error.isfinite().all()):
        return error
    error = error.where((a != b) & ~(a.isnan() & b.isnan()), error.new_zeros(()))
    return error.nan_to_num_(nan=math.inf, posinf=math.inf)


def _is_near(of_one: _FromExact, of_other: _FromExact, one: Tensor, tolerance: float) -> bool:
    """Whether the error against the exact run is about that of the baseline, in the mean and at the worst element."""
    half = str(one.dtype) in ("torch.float16", "torch.bfloat16")
    factor = 3.0 if half or one.numel() < 1000 else 2.0
    rms, other_rms = (math.sqrt(error.squares / one.numel()) for error in (of_one, of_other))
    mean = other_rms <= factor * rms + tolerance / 10
    worst = of_other.worst <= FARTHEST * of_one.worst + 10 * tolerance
    return mean and worst


def _wide(tensor: Tensor) -> Tensor:
    import torch

    return tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64)


def _at(part: Part, path: str, one: Tensor, other: Tensor, number: int) -> ResultDifference:
    """The difference at an element."""
    rest = number
    place: list[int] = []
    for size in reversed(one.shape):
        place.insert(0, rest % size)
        rest //= size
    was, now = (_number(tensor.flatten()[number].item()) for tensor in (one, other))
    return ResultDifference(part, Change.ERROR, path, was, now, tuple(place))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
