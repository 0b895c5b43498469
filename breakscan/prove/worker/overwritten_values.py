"""Values that a call overwrites before anything reads them: memory that ``torch.empty`` left as it was, for example."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from breakscan.prove.worker.call_runs import run_call
from breakscan.prove.worker.captured_call import CapturedCallable
from breakscan.prove.worker.probe_runs import LONGEST_CALL
from breakscan.prove.worker.shared_state import put_back, ready
from breakscan.prove.worker.tensor_values import digests
from breakscan.prove.worker.time_limit import TimeLimitReached, time_limit
from breakscan.prove.worker.torch_modes import eager_stance

if TYPE_CHECKING:
    from torch import Tensor


TURNS = 4
"""Runs with other values."""


class OverwrittenValues:
    """Runs the first call of each callable eager with other values in place of some."""

    def __init__(self, callables: Sequence[CapturedCallable]) -> None:
        self._callables = callables

    def find(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Answers :class:`.protocol.FindOverwritten`."""
        found: set[str] = set()
        read: set[str] = set()
        for captured in self._callables:
            here = _paths(captured).intersection(names)
            if here:
                (found if _is_overwritten(captured, here) else read).update(here)
        return tuple(sorted(found - read))


def _paths(captured: CapturedCallable) -> set[str]:
    """The tensors and arrays that its first call can reach, without parameters."""
    return {path for snapshot in captured.snapshots_of(captured.calls[0]) for path in snapshot.data}


def _is_overwritten(captured: CapturedCallable, names: Collection[str]) -> bool:
    """Whether the first call computes the same, and leaves the same, whatever these values are."""
    held = [snapshot.data for snapshot in captured.snapshots_of(captured.calls[0])]
    own = [{path: value for path, value in data.items() if path in names} for data in held]
    try:
        with time_limit(LONGEST_CALL[False]):
            first = _effects(captured, own)
            return all(
                _effects(captured, [{path: _filled(value, turn) for path, value in data.items()} for data in own])
                == first
                for turn in range(TURNS)
            )
    except TimeLimitReached:
        return False
    finally:
        put_back(captured, captured.calls[0])


def _effects(captured: CapturedCallable, values: Sequence[Mapping[str, Tensor]]) -> tuple[object, ...]:
    """What the first call does with these values in its state and its inputs, as digests."""
    call = captured.calls[0]
    snapshots = captured.snapshots_of(call)
    with contextlib.ExitStack() as stack:
        for snapshot, others in zip(snapshots, values, strict=True):
            stack.enter_context(snapshot.holding(others))
        stack.enter_context(ready(captured, call))
        stack.enter_context(eager_stance())
        found = run_call(captured, call, captured.original, backward=True).result
        left = [digests(snapshot.now().values) for snapshot in snapshots]
    results = digests(found.outputs), digests(found.gradients)
    texts = found.error, found.error_text, found.no_backward, found.others, found.aliases, found.changes, found.rng
    return *left, *results, *texts


def _filled(value: Tensor, turn: int) -> Tensor:
    """The tensor with one number in place of its values, by which a test or an index differs from turn to turn."""
    import torch

    if value.dtype.is_floating_point or value.dtype.is_complex:
        numbers: tuple[float, ...] = 0.0, -math.inf, math.inf, math.nan
    elif value.dtype is torch.bool:
        numbers = False, True
    else:
        numbers = 0, torch.iinfo(value.dtype).min, torch.iinfo(value.dtype).max
    return torch.full_like(value, numbers[turn % len(numbers)])
