"""Measures one operator of torch: what ``measure_operators.py`` asks, in the process that it forked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import combinations, islice, product, repeat
from typing import Any
from unittest.mock import patch

import torch
from torch.testing._internal import common_methods_invocations
from torch.utils._pytree import tree_leaves

from breakscan.rulebook.torch_facts.operators import DTYPES
from tools.argument_probes import alike, may_draw
from tools.cost_probes import is_costly
from tools.operator_calls import (
    NOT_FINITE,
    ORDINARY,
    Call,
    Entry,
    kind_of,
    often,
    plain_calls,
    samples,
    short,
    tensors_in,
)
from tools.promotion import Operand, Priority, promoted, python_number
from tools.value_probes import keeps_values, keeps_vectors, raises, reads_values

COLUMNS = (
    *("result", "dtypes", "promotes", "shapes", "plain_shapes", "elementwise"),
    *("keeps_values", "keeps_vectors"),
    *("shares_storage", "returns_input", "writes", "draws_random", "reads_values", "not_read_in"),
    *("raises_for_values", "not_raised_in", "gradient", "costly", "alike"),
)
DTYPE_SAMPLES = 4


def facts_of(entry: Entry) -> Iterator[dict[str, Any]]:
    """The facts, those that are most likely to crash last."""
    torch.manual_seed(0)
    sampled = samples(entry)
    plain = plain_calls(entry, sampled)
    calls = [*plain, *sampled]
    yield {"draws_random": "sometimes" if may_draw(entry) else None}
    results = [(call, call.result()) for call in calls]
    good = [(call, result) for call, result in results if not isinstance(result, Exception)]
    if not good:
        return
    kinds = {kind_of(result) for _, result in good}
    result = kinds.pop() if len(kinds) == 1 else "varies" if kinds == {"tensor", "tensors"} else None
    yield {"result": result}
    if result is None or result in ("tensor", "tensors", "varies"):
        one = [(call, found) for call, found in good if isinstance(found, torch.Tensor)] or good
        dtypes = _dtypes([call for call, _ in one])
        yield {"dtypes": dtypes, "promotes": _promotes([call for call, _ in one], dtypes)}
        yield _shape_facts(one)
    ran = [call for call, _ in good]
    costs = [call for call in ran if call in plain], [call for call in ran if call not in plain]
    of_tensors = [(call, result) for call, result in good if isinstance(result, torch.Tensor)]
    effects = _effects(ran)
    yield effects
    if effects["draws_random"] == "never" and may_draw(entry):
        yield {"draws_random": "sometimes"}
    elementwise = _elementwise(of_tensors)
    yield {"elementwise": elementwise, "keeps_values": elementwise is not False and keeps_values(ran)}
    yield {"keeps_vectors": keeps_vectors(entry), "costly": is_costly(*costs), "alike": alike(entry, ran)}
    yield reads_values(ran)
    yield {"gradient": _gradient(ran)}
    yield {"raises_for_values": "sometimes"}  # stays if the process crashes
    yield raises(ran, plain)


def _without_seeds() -> Any:
    """Torch's own operators that draw are wrapped: they draw from a seed, and put the generator back."""
    return patch.object(
        common_methods_invocations,
        "wrapper_set_seed",
        lambda function, *args, **options: function(*args, **options),
    )


def _dtypes(calls: list[Call]) -> list[str | None] | None:
    chosen = [call for call in calls if call.has_elements(call.base)][:DTYPE_SAMPLES]
    if not chosen:
        return None
    found: list[str | None] = []
    for name in DTYPES:
        results = [call.cast(getattr(torch, name)).result() for call in chosen]
        seen = {" ".join(short(one.dtype) for one in tensors_in(r)) for r in results if not isinstance(r, Exception)}
        found.append("" if not seen else seen.pop() if len(seen) == 1 else None)
    return found


def _promotes(calls: list[Call], dtypes: list[str | None] | None) -> list[int] | None:
    """The positions whose promoted dtype explains the dtype of every result, as few as do."""
    if dtypes is None:
        return None
    by_dtype = dict(zip(DTYPES, dtypes, strict=True))
    runs: list[tuple[dict[int, Operand], str]] = []
    for call in [call for call in calls if call.has_elements(call.base)][:6]:
        for mixed in _mixed(call):
            result = mixed.result()
            operands = _operands(mixed)
            seen = [short(one.dtype) for one in tensors_in(result)]
            if operands is not None and seen and all(one in DTYPES for one in seen):
                runs.append((operands, " ".join(seen)))
    places = sorted({place for operands, _ in runs for place in operands})
    for count in range(1, len(places) + 1):
        for chosen in combinations(places, count):
            if runs and all(_explained(operands, chosen, by_dtype, seen) for operands, seen in runs):
                return list(chosen)
    return None


def _explained(
    operands: dict[int, Operand], chosen: tuple[int, ...], by_dtype: dict[str, str | None], seen: str
) -> bool:
    together = promoted([operand for place, operand in operands.items() if place in chosen])
    # Where inputs of that dtype are refused nothing is predicted, and so nothing is wrong: True ** flag.
    return together is not None and by_dtype.get(together) in ("", None, seen)


def _mixed(call: Call) -> Iterator[Call]:
    """The call with other dtypes, 0-d tensors and Python numbers at one position."""
    yield call
    places = [p for p, value in enumerate(call.args) if isinstance(value, torch.Tensor) and value.dtype is call.base]
    for name in DTYPES:
        yield call.cast(getattr(torch, name))
    if len(places) < 2 and not any(isinstance(value, int | float) for value in call.args):
        return
    for place, start in product(places, ("bool", "int16", "int64", "float16", "float32")):
        first = call.cast(getattr(torch, start))
        for name in ("bool", "uint8", "int32", "int64", "float32", "float64", "complex64"):
            yield _replaced(first, place, first.args[place].to(getattr(torch, name)))
            yield _replaced(first, place, torch.ones((), dtype=getattr(torch, name)))
        for number in (True, 2, 2.5):
            if len(places) > 1:
                yield _replaced(first, place, number)


def _replaced(call: Call, place: int, value: Any) -> Call:
    args = [value if p == place else old for p, old in enumerate(call.args)]
    return Call(call.function, args, call.options, call.base)


def _operands(call: Call) -> dict[int, Operand] | None:
    """The operands by position; None where a keyword holds a tensor, which has no position."""
    if any(isinstance(value, torch.Tensor) for value in tree_leaves(call.options)):
        return None
    found = {}
    for place, value in enumerate(call.args):
        leaves = [one for one in tree_leaves(value) if isinstance(one, torch.Tensor)]
        if isinstance(value, torch.Tensor):
            priority = Priority.DIMENSIONED if value.dim() else Priority.ZERO_DIM
            found[place] = Operand(short(value.dtype), priority)
        elif leaves and len({one.dtype for one in leaves}) == 1:
            found[place] = Operand(short(leaves[0].dtype))
        elif type(value) in (bool, int, float, complex):
            found[place] = python_number(value)
    return found


def _shape_facts(good: list[tuple[Call, Any]]) -> dict[str, Any]:
    other = [(change, change.result()) for call, _ in good for change in _reshaped(call)]
    good = [*good, *((call, result) for call, result in other if tensors_in(result))]
    plain = [(c, r) for c, r in good if not c.options and all(isinstance(value, torch.Tensor) for value in c.args)]
    wide = [r for c, r in good if any(value.dim() > 1 for value in c.tensors())]
    return {
        "shapes": _rules(good) if wide else None,
        "plain_shapes": _rules(plain) if any(value.dim() > 1 for c, _ in plain for value in c.tensors()) else None,
    }


def _reshaped(call: Call) -> Iterator[Call]:
    """The call with other shapes, which shows whose shape the result has: torch's samples are often all of one."""
    places = [place for place, value in enumerate(call.args) if isinstance(value, torch.Tensor) and value.dim()]
    if sum(bool(one.dim()) for one in call.tensors()) < 2:
        return
    for place in places:
        for value in (call.args[place][:1], call.args[place][None]):
            yield _replaced(call, place, value)


def _rules(good: list[tuple[Call, Any]]) -> list[str]:
    held: set[str] | None = None
    for call, result in good:
        tensors = call.tensors()
        first = call.args[0] if call.args and isinstance(call.args[0], torch.Tensor) else None
        for one in tensors_in(result):
            found = {"0-d"} if not one.dim() else {"1-d"} if one.dim() == 1 else set()
            if first is not None and one.shape == first.shape:
                found.add("first")
            if first is not None and one.dim() == first.dim():
                found.add("rank of first")
            if tensors and one.dim() == max(value.dim() for value in tensors):
                found.add("rank of broadcast")
            if tensors and one.shape == _broadcast(tensors):
                found.add("broadcast")
            held = found if held is None else held & found
    return sorted(held or ())


def _broadcast(tensors: list[torch.Tensor]) -> torch.Size | None:
    try:
        shape: torch.Size = torch.broadcast_shapes(*(value.shape for value in tensors))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None
    return shape


def _effects(calls: list[Call]) -> dict[str, Any]:
    """The memory that calls share with their inputs, their writes, and the random numbers that they draw."""
    shares: list[bool] = []
    same: list[bool] = []
    writes: set[int] = set()
    draws: list[bool] = []
    cast = (call.cast(getattr(torch, name)) for call in calls[:3] for name in DTYPES)
    for call in [*calls, *_strided(calls[:4]), *cast, *islice(_mixed(calls[0]), 60)]:
        fresh = call.fresh()
        given = fresh.tensors()
        versions = [value._version for value in given]
        values = [value.clone() for value in given]
        before = torch.get_rng_state()
        try:
            with _without_seeds():
                result = fresh.run()
        except Exception:  # what the operator refuses says nothing of its effects
            continue
        draws.append(not torch.equal(before, torch.get_rng_state()))
        # Some operators, such as `batch_norm`, write without counting it as a version.
        changed = [
            one._version != version or not _are_same(one, old)
            for one, version, old in zip(given, versions, values, strict=True)
        ]
        for place, value in [*enumerate(fresh.args), *_named(fresh)]:
            for one in tree_leaves(value):
                if any(one is tensor and is_changed for tensor, is_changed in zip(given, changed, strict=True)):
                    writes.add(place)
        made = tensors_in(result)
        if made and all(_address(one) for one in made):
            owned = {_address(value) for value in given}
            shares += [_address(one) in owned for one in made]
            same += [any(one is value for value in given) for one in made]
    return {
        "shares_storage": often(shares),
        "returns_input": often(same),
        "writes": sorted(writes) if draws else None,
        "draws_random": often(draws),
    }


def _named(call: Call) -> Iterator[tuple[int, Any]]:
    """The arguments that are given by name, with their positions."""
    if call.options:
        with suppress(ValueError):  # functions written in C have no signature, and their samples name no tensors
            names = list(inspect.signature(call.function).parameters)
            yield from ((names.index(name), value) for name, value in call.options.items() if name in names)


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two tensors hold the same values; NaN is equal to NaN."""
    if one.layout is not torch.strided or one.is_quantized or one.dtype is not other.dtype or one.shape != other.shape:
        return True
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr() if tensor.numel() else 0
    except (NotImplementedError, RuntimeError):
        return 0


def _strided(calls: list[Call]) -> Iterator[Call]:
    """The calls with inputs that are not contiguous."""
    for call in calls:
        yield call.with_tensors(
            lambda value: value.repeat_interleave(2, -1)[..., ::2] if value.dim() and not value.is_sparse else value
        )
        yield call.with_tensors(lambda value: value.mT.contiguous().mT if value.dim() > 1 else value)


def _expanded(shape: torch.Size, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.expand(shape).clone()


def _elementwise(good: list[tuple[Call, Any]]) -> bool | None:
    """True if elements keep to themselves: moving or replacing them moves or replaces their results."""
    tried = False
    for call, result in good:
        shape = _broadcast(call.tensors()) if call.tensors() else None
        if shape is None or result.shape != shape:
            return False
        if result.numel() < 3 or not result.dim():
            continue
        wide = call.with_tensors(partial(_expanded, shape))
        changes: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
            lambda value: value.flatten().flip(0).reshape(value.shape),
            lambda value: (
                value.flatten().clone().index_copy_(0, torch.tensor([0]), value.flatten()[1:2]).reshape(value.shape)
            ),
        )
        whole = wide.result()
        if isinstance(whole, Exception) or whole.shape != shape:
            continue
        for change in changes:
            changed = wide.with_tensors(change).result()
            if isinstance(changed, Exception):
                continue
            tried = True
            if changed.shape != shape:
                return False
            # Elements at the end of a tensor are computed without vector instructions, which rounds otherwise.
            if not torch.allclose(_comparable(changed), _comparable(change(whole)), rtol=1e-5, atol=1e-7):
                return False
    return True if tried else None


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.double().nan_to_num(nan=12345.0)


def _gradient(calls: list[Call]) -> str | None:
    flows = False
    finite_nan = other_nan = tried = False
    for call in calls:
        if not any(value.is_floating_point() for value in call.tensors()):
            continue
        for given, is_finite in _gradient_inputs(call):
            outcome = _backward(given)
            if outcome is None:
                continue
            tried = True
            if outcome == "none":
                continue
            flows = True
            if outcome == "nan":
                finite_nan |= is_finite
                other_nan |= not is_finite
    if not tried:
        return None
    if not flows:
        return "none"
    return "may be nan" if finite_nan else "zero if finite" if other_nan else "zero"


def _gradient_inputs(call: Call) -> Iterator[tuple[Call, bool]]:
    yield call, True
    for values, is_finite in ((ORDINARY, True), (NOT_FINITE, False)):
        count = sum(value.is_floating_point() for value in call.tensors())
        if not call.options and count == len(call.args) and count < 4:
            grid = torch.tensor(list(product(values if count < 3 else values[:6], repeat=count)))
            for columns in (grid.unbind(1), grid.flip(0).unbind(1)):
                yield Call(call.function, [one.clone() for one in columns], {}, call.base), is_finite
        for offset in range(4):
            place = iter(range(offset, 99))
            yield call.with_tensors(partial(_filled, values, place)), is_finite
        for value in values:
            yield call.with_tensors(partial(_filled, (value,), repeat(0))), is_finite


def _filled(values: tuple[float, ...], offsets: Iterator[int], tensor: torch.Tensor) -> torch.Tensor:
    offset = next(offsets)
    if not tensor.is_floating_point():
        return tensor
    places = torch.arange(tensor.numel()) * (2 * offset + 1) + offset
    return torch.tensor(values, dtype=tensor.dtype)[places % len(values)].reshape(tensor.shape)


def _backward(call: Call) -> str | None:
    """``none``, ``zero`` or ``nan``: what a gradient of zero becomes."""
    fresh = call.with_tensors(lambda v: v.detach().clone().requires_grad_(v.is_floating_point()))
    try:
        made = [one for one in tensors_in(fresh.run()) if one.requires_grad]
        if not made:
            return "none"
        leaves = [value for value in fresh.tensors() if value.requires_grad]
        found = torch.autograd.grad(made, leaves, [torch.zeros_like(one) for one in made], allow_unused=True)
    except Exception:  # values that the operator refuses, or no derivative
        return None
    return "nan" if any(one is not None and bool(one.isnan().any()) for one in found) else "zero"
