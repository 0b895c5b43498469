"""The generators of random numbers that a program holds itself, of torch, of Python and of NumPy: states as tensors."""

from __future__ import annotations

import functools
import pickle
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_BYTES = 8192
"""What a state of Python or NumPy is padded to, so that two states of a generator have one shape. The longest, of a
Mersenne Twister, has 3.2 kB."""


@dataclass(frozen=True, slots=True)
class HeldGenerator:
    """How the state of a generator is read and written."""

    get_state: Callable[[], Tensor]
    set_state: Callable[[Tensor], object]


def held_generator(thing: object) -> HeldGenerator | None:
    """The generator that an object is; None if it is none, or none whose state can be set."""
    import torch

    if isinstance(thing, torch.Generator):
        return HeldGenerator(thing.get_state, thing.set_state)
    if isinstance(thing, random.Random) and not isinstance(thing, random.SystemRandom):
        return _pickled(thing.getstate, thing.setstate)
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return None
    if isinstance(thing, numpy.Generator):
        thing = thing.bit_generator
    if isinstance(thing, numpy.BitGenerator):
        return _pickled(functools.partial(getattr, thing, "state"), functools.partial(setattr, thing, "state"))
    if isinstance(thing, numpy.RandomState):
        return _pickled(lambda: thing.get_state(legacy=False), thing.set_state)
    return None


def _pickled(get: Callable[[], object], put: Callable[..., object]) -> HeldGenerator:
    import torch

    def get_state() -> Tensor:
        written = pickle.dumps(get())
        return torch.frombuffer(bytearray(written.ljust(_BYTES, b"\0")), dtype=torch.uint8)

    return HeldGenerator(get_state, lambda state: put(pickle.loads(state.numpy().tobytes())))
