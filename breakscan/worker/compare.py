"""Whether two runs came to the same: results, gradients, what they changed, random numbers, exceptions.

Two tensors are equal in the sense of PyTorch's own accuracy harness (``torch._dynamo.utils.same``): element by element
within a tolerance, or else no further from the run in double precision than the reference is itself, a few times over.
That rule looks at means alone, which one wrong element of many does not move: so no element may be far out, either.
Between two eager runs both must hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TOLERANCES = {"torch.float64": 1e-7, "torch.float32": 1e-4, "torch.float16": 1e-3, "torch.bfloat16": 1e-2}
"""Relative and absolute, of compiled code."""
STRICT = {"torch.float64": 1e-12, "torch.float32": 1e-5, "torch.float16": 1e-3, "torch.bfloat16": 1e-2}
"""Of eager code against eager code."""
FARTHEST = 10.0
"""Times the reference's own worst element."""

_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:e[+-]\d+)?|e[+-]\d+)")

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """``what`` is ``outputs``, ``gradients``, ``state``, ``random numbers`` or ``exceptions``; ``text`` tells of it in
    words; ``size`` is the worst element's error, where there is one."""

    what: str
    text: str
    size: float | None = None


def load_outcomes(path: str) -> list[Plain]:
    """The outcomes that an arm wrote."""
    import torch

    loaded: list[Plain] = torch.load(path, map_location="cpu", weights_only=True)
    return loaded


def differences(
    reference: Sequence[Plain],
    runs: Sequence[Plain],
    double: Sequence[Plain] | None,
    *,
    strict: bool,
    random: bool = True,
    values: bool = True,
) -> list[ResultDifference]:
    """What differs from the reference, call by call.  ``strict`` is for eager runs; without ``random``, the generators
    behind the call may differ, without ``values`` what was computed may as well."""
    if len(reference) != len(runs):
        return [ResultDifference("outputs", f"{len(runs)} calls were compared with {len(reference)}")]
    found: list[ResultDifference] = []
    for number, (one, other) in enumerate(zip(reference, runs, strict=True)):
        exact = double[number] if double else None
        where = f" in call {number + 1}" if number else ""
        found += [
            ResultDifference(d.what, f"{d.text}{where}", d.size)
            for d in _of_call(one, other, exact, strict, random, values)
        ]
    return found


def _of_call(
    one: Plain, other: Plain, exact: Plain | None, strict: bool, random: bool, values: bool
) -> list[ResultDifference]:
    if one["error"] != other["error"]:
        was = f"raises {one['error']}" if one["error"] else "returns"
        now = f"raises {other['error']} ({_short(other['error_text'])})" if other["error"] else "returns"
        return [ResultDifference("exceptions", f"it {now} where the original {was}")]
    found: list[ResultDifference] = []
    if other["no_backward"] and not one["no_backward"]:
        found.append(ResultDifference("gradients", f"one cannot go back through it: {_short(other['no_backward'])}"))
    for kind, key in (("outputs", "outputs"), ("gradients", "gradients"), ("state", "changed")):
        # Compiled code is asked for gradients only where the program goes back.
        if key == "gradients" and not strict and not other[key]:
            continue
        found += _of_tensors(kind, one[key], other[key], (exact or {}).get(key, {}), strict, values)
    for path in dict.fromkeys([*one["others"], *other["others"]]):
        was, now = one["others"].get(path), other["others"].get(path)
        if _is_same(was, now, strict):
            continue
        if was is not None and now is not None:
            found.append(ResultDifference("outputs", f"{path} is {now or 'a tensor'}, not {was or 'a tensor'}"))
        elif path not in one["outputs"] and path not in other["outputs"]:
            found.append(ResultDifference("outputs", f"{path} is {'missing' if now is None else 'new'}"))
    if strict:
        for path in dict.fromkeys([*one["aliases"], *other["aliases"]]):
            if (was := one["aliases"].get(path)) != (now := other["aliases"].get(path)):
                words = "nothing" if now is None else now
                found.append(
                    ResultDifference("outputs", f"{path} shares its memory with {words}, not {was or 'nothing'}")
                )
    for path in dict.fromkeys([*one["changes"], *other["changes"]]):
        was, now = one["changes"].get(path), other["changes"].get(path)
        if not _is_same(was, now, strict):
            words = "unchanged" if now is None else _short(now)
            found.append(
                ResultDifference("state", f"{path} is {words} behind the call, not {_short(was or 'unchanged')}")
            )
    if random:
        drawn = [name for name in one["rng"] if one["rng"][name] != other["rng"].get(name)]
        if drawn:
            found.append(ResultDifference("random numbers", f"random numbers are drawn otherwise: {', '.join(drawn)}"))
    return found


def _of_tensors(
    kind: str, one: Plain, other: Plain, exact: Plain, strict: bool, values: bool
) -> list[ResultDifference]:
    found: list[ResultDifference] = []
    said = {"outputs": "", "gradients": "the gradient of ", "state": ""}[kind]
    for path in dict.fromkeys([*one, *other]):
        if path not in one or path not in other:
            is_new = path in other
            if kind == "state":
                words = "is changed by the call" if is_new else "is not changed by the call"
            else:
                words = "is new" if is_new else "is missing"
            found.append(ResultDifference(kind, f"{said}{path} {words}"))
            continue
        difference = tensor_difference(one[path], other[path], exact.get(path), strict=strict, values=values)
        if difference:
            found.append(ResultDifference(kind, f"{said}{path} {difference[0]}", difference[1]))
    return found


def tensor_difference(
    one: Any, other: Any, exact: Any | None, *, strict: bool, values: bool = True
) -> tuple[str, float | None] | None:
    """In which way a tensor differs from the reference, and by how much at most; None where they are equal.  ``exact``
    is the same in double precision."""
    import torch

    if one.dtype != other.dtype:
        return f"is {_dtype(other)}, not {_dtype(one)}", None
    if one.shape != other.shape:
        return f"has shape {_shape(other)}, not {_shape(one)}", None
    if not values or not one.numel() or torch.equal(one, other):
        return None
    if not (one.dtype.is_floating_point or one.dtype.is_complex):
        return _at(one, other, (one != other).to(torch.float64), 0.0)
    tolerance = (STRICT if strict else TOLERANCES).get(str(one.dtype), 1e-4)
    wide = torch.complex128 if one.dtype.is_complex else torch.float64
    a, b = one.to(wide), other.to(wide)
    error = (b - a).abs()
    same = (a == b) | (a.isnan() & b.isnan())
    error = torch.where(same, torch.zeros_like(error), error)
    error = torch.where(error.isnan(), torch.full_like(error, math.inf), error)
    finite = torch.where(a.isfinite(), a.abs(), torch.zeros_like(error))
    close = bool((error <= tolerance + tolerance * finite).all())
    if exact is not None and exact.shape == one.shape and bool(exact.isfinite().all()) and bool(a.isfinite().all()):
        of_one, of_other = (a - exact.to(wide)).abs(), (b - exact.to(wide)).abs()
        near = _is_near(of_one, of_other, one, tolerance)
        if (close and near) if strict else (close or near):
            return None
    elif close:
        return None
    return _at(one, other, error, tolerance)


def _is_near(of_one: Any, of_other: Any, one: Any, tolerance: float) -> bool:
    """Whether the error against the exact run is about that of the reference, in the mean and at the worst."""
    half = str(one.dtype) in ("torch.float16", "torch.bfloat16")
    factor = 3.0 if half or one.numel() < 1000 else 2.0
    mean = _rms(of_other) <= factor * _rms(of_one) + tolerance / 10
    worst = float(of_other.max()) <= FARTHEST * float(of_one.max()) + 10 * tolerance
    return mean and worst


def _rms(error: Any) -> float:
    return math.sqrt(float((error * error).mean()))


def _at(one: Any, other: Any, error: Any, tolerance: float) -> tuple[str, float | None]:
    """The worst element in words."""
    worst = int(error.flatten().argmax())
    place = []
    rest = worst
    for size in reversed(one.shape):
        place.append(rest % size)
        rest //= size
    was, now = one.flatten()[worst].item(), other.flatten()[worst].item()
    size = float(error.flatten()[worst])
    where = f" at {list(reversed(place))}" if place else ""
    if not (one.dtype.is_floating_point or one.dtype.is_complex):
        return f"is {now}{where}, not {was}", None
    return f"differs by {size:.1g}{where} ({_number(now)} for {_number(was)}; allowed {tolerance:g})", size


def _is_same(was: str | None, now: str | None, strict: bool) -> bool:
    """Of two values as text.  Numbers of Python that are made of tensors are rounded as those are."""
    if was == now or was is None or now is None or not (_FLOAT.fullmatch(was) and _FLOAT.fullmatch(now)):
        return was == now
    tolerance = (STRICT if strict else TOLERANCES)["torch.float32"]
    return math.isclose(float(was), float(now), rel_tol=tolerance, abs_tol=tolerance)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shape(tensor: Any) -> str:
    return "×".join(map(str, tensor.shape)) or "()"


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
