"""Measures what an operator of torch makes of the values of its tensors: whether it reads, refuses or keeps them."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.utils._pytree import tree_leaves

from tools.operator_calls import NOT_FINITE, ORDINARY, Call, Entry, often, tensors_in

OTHER_VALUES = (1000, -1000, 0, -1, float("nan"), float("inf"))


def form(call: Call) -> str:
    """The kinds of arguments of a call: ``tn`` for ``x.sum(0)``.  See ``torch_facts/call_forms.py``."""
    return "".join(sorted(_letter(value) for value in (*call.args, *call.options.values())))


def _letter(value: Any) -> str:
    if any(isinstance(one, torch.Tensor) for one in tree_leaves(value)):
        return "t"
    return "s" if isinstance(value, str) else "n"


def reads_values(calls: list[Call]) -> dict[str, Any]:
    """Return if the host needs the values of a tensor; if sometimes, the calls for which it never does."""
    seen: dict[str, list[bool]] = {}
    for call in _with_elements(calls):
        reads = _is_seen_by_host(call) or _is_refused_without_data(call)
        if reads is not None:
            seen.setdefault(form(call), []).append(reads)
    found = often([one for of_form in seen.values() for one in of_form])
    return {"reads_values": found, "not_read_in": _never(seen) if found == "sometimes" else None}


def _with_elements(calls: list[Call]) -> list[Call]:
    return [call for call in calls if all(one.numel() for one in call.tensors())]


def _never(seen: dict[str, list[bool]]) -> list[str]:
    return sorted(name for name, of_form in seen.items() if not any(of_form))


def _takes_less(one: str, other: str) -> bool:
    return one.count("t") < other.count("t") or one.count("s") < other.count("s")


def _is_refused_without_data(call: Call) -> bool | None:
    mode = FakeTensorMode()
    try:
        fake = call.fresh().with_tensors(mode.from_tensor)
        with mode:
            fake.run()
    except (DataDependentOutputException, DynamicOutputShapeException):
        return True
    except Exception:  # no kernel for tensors without data: nothing is known
        return None
    return False


def _is_seen_by_host(call: Call) -> bool:
    """True if other values, but not the same ones in copies, change the shape of the result, a number or a list."""
    first, same, other = call.fresh(), call.fresh(), call.fresh()
    if not first.tensors():
        return False
    for tensor in other.tensors():
        tensor.detach().fill_(1)
    try:
        before, again, after = (_for_host(one.run()) for one in (first, same, other))
    except Exception:  # values, or tensors, that the operator refuses
        return False
    return bool(before == again and before != after)


def _for_host(result: Any) -> Any:
    if tensors_in(result):
        return [tuple(one.shape) for one in tensors_in(result) if not one.is_nested]
    if isinstance(result, bool | int | float | complex | list):
        return repr(result)
    return result.tolist() if type(result).__module__ == "numpy" else None


def raises(calls: list[Call], made: list[Call]) -> dict[str, Any]:
    """True if other values of the same shapes and dtypes raise; if so, the forms of calls for which none do.

    Of these only such count as lack a tensor or a text that those have for which some do: with a further number, some
    operators look for the same places in a tensor without checking them.  The ``made`` calls show that values raise,
    but are too small to show that none do.
    """
    seen: dict[str, list[bool]] = {}
    for call in _with_elements(calls):
        if call.tensors():
            seen.setdefault(form(call), []).append(any(_refuses(call, value) for value in OTHER_VALUES))
    if not seen:
        return {"raises_for_values": None, "not_raised_in": None}
    safe = _never(seen)
    refused = seen.keys() - safe
    if not refused:
        return {"raises_for_values": "never", "not_raised_in": None}
    sampled = {form(call) for call in calls if call not in made}
    kept = [name for name in safe if name in sampled and all(_takes_less(name, other) for other in refused)]
    return {"raises_for_values": "sometimes", "not_raised_in": kept}


def _refuses(call: Call, value: float) -> bool:
    changed = call.with_tensors(partial(_full, value))
    try:
        changed.run()
    except NotImplementedError:
        return False
    except Exception:  # that it raises is what is asked
        return True
    return False


def _full(value: float, tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point() and not tensor.is_complex() and (value != value or abs(value) > 1e9):
        return tensor.clone()
    if tensor.dtype is torch.uint8:
        value = abs(value) % 256
    return torch.full_like(tensor, value if tensor.dtype is not torch.int8 else max(-128, min(127, value)))


def keeps_values(calls: list[Call]) -> bool | None:
    """True if the result is the first tensor, or the same in another dtype."""
    tried = False
    for call in calls:
        for values in (ORDINARY, NOT_FINITE):
            given = _filled(call, values)
            first = given.args[0] if given.args else None
            if not isinstance(first, torch.Tensor):
                return False
            kept = first.clone()
            try:
                result = given.run()
            except Exception:  # values that the operator refuses
                continue
            if not _is_same(result, kept):
                return False
            tried = True
    return True if tried else None


def _filled(call: Call, values: tuple[float, ...]) -> Call:
    """The call with these values in the tensors of its dtype, and larger ones in each tensor behind the first."""
    place = count()

    def spread(tensor: torch.Tensor) -> torch.Tensor:
        further = next(place)
        if tensor.is_complex() or tensor.dtype is torch.bool or tensor.layout is not torch.strided:
            return tensor
        if not tensor.is_floating_point() and call.base.is_floating_point and not further:
            return tensor
        places = torch.arange(tensor.numel()) % len(values)
        return (torch.tensor(values)[places] + 1000 * further).to(tensor.dtype).reshape(tensor.shape)

    return call.with_tensors(spread).fresh()


def _is_same(result: Any, given: torch.Tensor) -> bool:
    if not isinstance(result, torch.Tensor) or result.layout is not torch.strided or result.shape != given.shape:
        return False
    expected = given.to(result.dtype)
    return torch.equal(result.isnan(), expected.isnan()) and torch.equal(result.nan_to_num(), expected.nan_to_num())


def keeps_vectors(entry: Entry) -> bool | None:
    """True if a call with nothing but a vector returns it, or a view of it that is the same."""
    if entry.plain is None:
        return None
    for dtype in (torch.float32, torch.int64, torch.bool):
        vector = torch.tensor([3.0, -2.0, 0.0, 1.0]).to(dtype)
        kept = vector.clone()
        try:
            result = entry.plain(vector)
        except Exception:  # it takes more, or no vector
            return None
        if not _is_same(result, kept) or result.dtype is not dtype or result.data_ptr() != vector.data_ptr():
            return False
    return True
