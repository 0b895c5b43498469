"""Measures one operator of torch: what ``measure_operators.py`` asks, in the process that it forked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, islice, product, repeat
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from breakscan.torch_facts.promotion import DTYPES, Operand, Priority, promoted, python_number

COLUMNS = (
    *("result", "dtypes", "promotes", "shapes", "plain_shapes", "elementwise", "accepts_zero_dim", "accepts_empty"),
    "keeps_layout",
    *("shares_storage", "returns_input", "writes", "draws_random", "reads_values", "raises_for_values", "gradient"),
)
SAMPLES = 12
DTYPE_SAMPLES = 4
BASES = (torch.float32, torch.int64, torch.bool, torch.complex64)
ORDINARY = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-4, -1e-4, 100.0, -100.0, 1e4, -1e4)
"""Finite values that gradients are tried at."""
NOT_FINITE = (float("inf"), float("-inf"), float("nan"), 0.0, 1.0)


@dataclass
class Entry:
    """An operator: its callables with torch's own samples, and the function or method as a user calls it."""

    name: str
    infos: list[tuple[Any, Any]] = field(default_factory=list)
    plain: Any = None
    order: tuple[int, ...] = ()
    """The places that the arguments of a sample have in the call, where torch's samples have them in another order."""


@dataclass
class Call:
    function: Callable[..., Any]
    args: list[Any]
    options: dict[str, Any]
    base: torch.dtype

    def with_tensors(self, change: Callable[[torch.Tensor], Any]) -> Call:
        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, torch.Tensor) else value

        return Call(self.function, tree_map(changed, self.args), tree_map(changed, self.options), self.base)

    def tensors(self) -> list[torch.Tensor]:
        return [v for v in tree_leaves((self.args, self.options)) if isinstance(v, torch.Tensor)]

    def has_elements(self, dtype: torch.dtype) -> bool:
        """Whether there is a tensor of a dtype, and each has a dimension and elements: with others some operators
        return before they choose a kernel, and so accept any dtype."""
        tensors = self.tensors()
        return any(value.dtype is dtype for value in tensors) and all(one.numel() and one.dim() for one in tensors)

    def fresh(self) -> Call:
        return self.with_tensors(lambda value: value.detach().clone())

    def cast(self, dtype: torch.dtype) -> Call:
        return self.with_tensors(lambda value: value.to(dtype) if value.dtype is self.base else value)

    def run(self) -> Any:
        return self.function(*self.args, **self.options)

    def result(self) -> Any:
        """What a call with copies of the inputs returns; an exception if it raises."""
        try:
            return self.fresh().run()
        except Exception as error:  # any function of torch may refuse, in any way
            return error


def kind_of(result: Any) -> str:
    if isinstance(result, torch.Tensor):
        return "tensor"
    if isinstance(result, tuple | list) and result and all(isinstance(one, torch.Tensor) for one in result):
        return "tensors"
    return "python" if isinstance(result, bool | int | float | complex) else "other"


def tensors_in(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result) if kind_of(result) == "tensors" else []


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def often(seen: list[bool]) -> str | None:
    return None if not seen else "always" if all(seen) else "sometimes" if any(seen) else "never"


def facts_of(entry: Entry) -> Iterator[dict[str, Any]]:
    """The facts, those that are most likely to crash last."""
    torch.manual_seed(0)
    sampled = _samples(entry)
    plain = _plain_calls(entry, sampled)
    calls = [*plain, *sampled]
    if not calls:
        return
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
    yield _effects([call for call, _ in good])
    yield _sizes(plain)
    yield {"elementwise": _elementwise([(c, r) for c, r in good if isinstance(r, torch.Tensor)])}
    yield {"keeps_layout": _keeps_layout([call for call, result in good if isinstance(result, torch.Tensor)])}
    yield {"reads_values": _reads_values([call for call, _ in good])}
    yield {"gradient": _gradient([call for call, _ in good])}
    yield {"raises_for_values": "sometimes"}  # stays if the process crashes
    yield {"raises_for_values": _raises([call for call, _ in good])}


def _samples(entry: Entry) -> list[Call]:
    found = []
    for function, info in entry.infos:
        base = next((dtype for dtype in BASES if dtype in info.dtypes), None)
        if base is None:
            continue
        try:
            for sample in islice(info.sample_inputs("cpu", base, requires_grad=False), SAMPLES):
                leaves = tree_leaves((sample.args, sample.kwargs))
                if any(isinstance(value, torch.dtype) for value in leaves) or sample.kwargs.get("inplace"):
                    continue
                given = [sample.input, *sample.args]
                order = entry.order if len(entry.order) == len(given) else range(len(given))
                found.append(Call(function, [given[place] for place in order], dict(sample.kwargs), base))
        except Exception:  # samples of some operators need what is not installed
            continue
    return found


def _plain_calls(entry: Entry, sampled: list[Call]) -> list[Call]:
    """Calls with nothing but tensors, as few as the operator takes."""
    function = entry.plain or (entry.infos[0][0] if entry.infos else None)
    if function is None:
        return []
    bases = [call.base for call in sampled] or list(BASES)
    for base, count in product(dict.fromkeys(bases), (1, 2, 3)):
        calls = [
            Call(function, [_made(shape, base, place) for place in range(count)], {}, base)
            for shape in ((3,), (2, 3), (2, 2, 2))
        ]
        if any(not isinstance(call.result(), Exception) for call in calls):
            return calls
    return []


def _made(shape: tuple[int, ...], dtype: torch.dtype, place: int) -> torch.Tensor:
    return (torch.rand(shape) * 2 + place).to(dtype)


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
    """What calls share with their inputs, write and draw."""
    shares: list[bool] = []
    same: list[bool] = []
    writes: set[int] = set()
    draws: list[bool] = []
    cast = (call.cast(getattr(torch, name)) for call in calls[:3] for name in DTYPES)
    for call in [*calls, *_strided(calls[:4]), *cast, *islice(_mixed(calls[0]), 60)]:
        fresh = call.fresh()
        given = fresh.tensors()
        versions = [value._version for value in given]
        before = torch.get_rng_state()
        try:
            result = fresh.run()
        except Exception:  # what the operator refuses says nothing of its effects
            continue
        draws.append(not torch.equal(before, torch.get_rng_state()))
        for place, value in enumerate(fresh.args):
            for one in tree_leaves(value):
                if isinstance(one, torch.Tensor) and any(
                    one is tensor and one._version != old for tensor, old in zip(given, versions, strict=True)
                ):
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


def _sizes(plain: list[Call]) -> dict[str, bool | None]:
    """Whether tensors without a dimension, and without elements, are taken."""
    if not plain:
        return {}
    zero, empty = (
        Call(call.function, [torch.ones(shape).to(call.base) for _ in call.args], {}, call.base).result()
        for call, shape in ((plain[0], ()), (plain[0], (0,)))
    )
    return {"accepts_zero_dim": not isinstance(zero, Exception), "accepts_empty": not isinstance(empty, Exception)}


def _expanded(shape: torch.Size, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.expand(shape).clone()


def _keeps_layout(calls: list[Call]) -> bool | None:
    """Whether the order of the dimensions in memory stays, tried with tensors that are transposed in memory."""
    seen: list[bool] = []
    for call in calls:
        shapes = {value.shape for value in call.tensors() if value.dim()}
        if "memory_format" in call.options or len(shapes) != 1 or sum(size > 1 for size in next(iter(shapes))) < 2:
            continue
        changed = call.fresh().with_tensors(_transposed_in_memory)
        strides = next(value.stride() for value in changed.tensors() if value.dim())
        try:
            result = changed.run()
        except Exception:  # any function of torch may refuse, in any way
            continue
        seen.append(isinstance(result, torch.Tensor) and result.shape in shapes and result.stride() == strides)
    return all(seen) if seen else None


def _transposed_in_memory(value: torch.Tensor) -> torch.Tensor:
    backwards = tuple(reversed(range(value.dim())))
    return value.permute(backwards).contiguous().permute(backwards)


def _elementwise(good: list[tuple[Call, Any]]) -> bool | None:
    """Whether elements keep to themselves: moving or replacing them moves or replaces their results."""
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
            # Elements at the end of a tensor are computed without vector instructions, which rounds otherwise.
            if not torch.allclose(_comparable(changed), _comparable(change(whole)), rtol=1e-5, atol=1e-7):
                return False
    return True if tried else None


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.double().nan_to_num(nan=12345.0)


def _reads_values(calls: list[Call]) -> str | None:
    seen: list[bool] = []
    for call in calls:
        mode = FakeTensorMode()
        try:
            fake = call.fresh().with_tensors(mode.from_tensor)
            with mode:
                fake.run()
            seen.append(False)
        except (DataDependentOutputException, DynamicOutputShapeException):
            seen.append(True)
        except Exception:  # no kernel for tensors without data: nothing is known
            continue
    return often(seen)


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


def _raises(calls: list[Call]) -> str | None:
    """Whether other values of the same shapes and dtypes raise."""
    if not any(call.tensors() for call in calls):
        return None
    for call in calls:
        for value in (1000, -1000, 0, -1, float("nan"), float("inf")):
            changed = call.with_tensors(partial(_full, value))
            try:
                changed.run()
            except NotImplementedError:
                continue
            except Exception:  # that it raises is what is asked
                return "sometimes"
    return "never"


def _full(value: float, tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point() and not tensor.is_complex() and (value != value or abs(value) > 1e9):
        return tensor.clone()
    if tensor.dtype is torch.uint8:
        value = abs(value) % 256
    return torch.full_like(tensor, value if tensor.dtype is not torch.int8 else max(-128, min(127, value)))
