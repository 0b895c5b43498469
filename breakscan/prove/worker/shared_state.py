"""The state of the captured calls: put back before each run, and made the same in all processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from breakscan.prove.worker.call_result import outcome_of
from breakscan.prove.worker.captured_call import CapturedCall, CapturedCallable
from breakscan.prove.worker.protocol import StateDigests, ValueMismatch
from breakscan.prove.worker.random_state import set_rng_state
from breakscan.prove.worker.tensor_values import digests
from breakscan.prove.worker.torch_modes import eager_stance

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class SavedCallable:
    """The state of a callable in a file: which of its calls keep a state of their own, the generators of each call, and
    the values of each snapshot."""

    own: list[bool]
    rng: list[dict[str, Tensor]]
    values: list[dict[str, Tensor]]


class SharedState:
    """The state of all captured calls."""

    def __init__(self, callables: Sequence[CapturedCallable]) -> None:
        self._callables = callables

    def start(self) -> tuple[StateDigests, ...]:
        """Answers :class:`.protocol.DigestStart`."""
        return tuple(captured.start for captured in self._callables)

    def save(self, path: str) -> tuple[StateDigests, ...]:
        """Answers :class:`.protocol.SaveValues`.  Decides before which first calls run from a state of their own."""
        import torch

        for captured in self._callables:
            _settle(captured)
        torch.save(
            [
                (
                    [call.state is not None for call in captured.calls],
                    [call.rng for call in captured.calls],
                    [snapshot.values for snapshot in captured.snapshots()],
                )
                for captured in self._callables
            ],
            path,
        )
        return self.digests()

    def take(self, path: str) -> tuple[ValueMismatch, ...]:
        """Answers :class:`.protocol.TakeValues`."""
        problems: list[ValueMismatch] = []
        for captured, saved in zip(self._callables, _load(path), strict=False):
            for call, own in zip(captured.calls, saved.own, strict=False):
                call.state = call.state if own else None
            for snapshot, values in zip(captured.snapshots(), saved.values, strict=False):
                problems += snapshot.take_over(values)
            for call, rng in zip(captured.calls, saved.rng, strict=False):
                call.rng = {**call.rng, **rng}
        return tuple(dict.fromkeys(problems))

    def digests(self) -> tuple[StateDigests, ...]:
        """Answers :class:`.protocol.DigestCalls`."""
        found = []
        for captured in self._callables:
            for call in captured.calls:
                put_back(captured, call)
                values: dict[str, str] = {}
                for snapshot in captured.snapshots_of(call):
                    values.update(digests(snapshot.now().values))
                found.append(StateDigests(values, digests(call.rng)))
        return tuple(found)


def put_back(captured: CapturedCallable, call: CapturedCall) -> None:
    """Puts back the state that a call found."""
    for snapshot in captured.snapshots_of(call):
        snapshot.restore()
    set_rng_state(call.rng)


def put_values_back(captured: CapturedCallable) -> None:
    """Puts back the values of the state, and the inputs of all calls: attributes that the calls changed stay."""
    assert captured.state is not None
    captured.state.restore(values_only=True)
    for call in captured.calls:
        call.inputs.restore()


@contextlib.contextmanager
def ready(captured: CapturedCallable, call: CapturedCall) -> Iterator[None]:
    """The state and the modes that the call found; the state is put back again after the block."""
    put_back(captured, call)
    try:
        with call.modes.set():
            yield
    finally:
        put_back(captured, call)


def _settle(captured: CapturedCallable) -> None:
    """Drops the state that the first call found where it is like that of the later calls, or where the call cannot be
    repeated from it."""
    first = captured.calls[0]
    if first.state is None or captured.state is None:
        return
    if first.state.fits and first.state.is_other_than(captured.state):
        first.state.share(captured.state)
        with ready(captured, first), eager_stance():
            outcome = outcome_of(
                lambda: captured.original(*first.args, **first.kwargs),
                backward=False,
                snapshots=captured.snapshots_of(first),
                compare_state=False,
            )
        if outcome.result.error is None:
            return
    first.state = None


def _load(path: str) -> list[SavedCallable]:
    import torch

    return [SavedCallable(*saved) for saved in torch.load(path, map_location="cpu", weights_only=True)]
