"""The global generators of random numbers: their states as tensors, by name."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from breakscan.prove.worker.device import cuda_in_use

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TORCH = "torch"
PYTHON = "random"
PYTHON_GAUSS = "random.gauss"
NUMPY = "numpy"
NUMPY_GAUSS = "numpy.gauss"
CUDA = "cuda:"
"""Followed by the number of the device."""


def rng_state() -> dict[str, Tensor]:
    """The state of all global generators."""
    import torch

    def on_cpu(values: list[Any], dtype: torch.dtype) -> Tensor:
        # The program may have set another device for all new tensors.
        return torch.tensor(values, dtype=dtype, device="cpu")

    kind, inner, gauss = random.getstate()
    states = {
        TORCH: torch.get_rng_state(),
        PYTHON: on_cpu([*inner, kind], torch.int64),
        PYTHON_GAUSS: on_cpu([] if gauss is None else [gauss], torch.float64),
    }
    if numpy := _loaded_numpy():
        _, keys, position, has_gauss, cached = numpy.random.get_state()
        states[NUMPY] = on_cpu([*map(int, keys), position, has_gauss], torch.int64)
        states[NUMPY_GAUSS] = on_cpu([cached], torch.float64)
    if cuda_in_use():
        for number in range(torch.cuda.device_count()):
            states[f"{CUDA}{number}"] = torch.cuda.get_rng_state(number)
    return states


def set_rng_state(states: Mapping[str, Tensor]) -> None:
    """Sets the generators that are named."""
    import torch

    torch.set_rng_state(states[TORCH])
    *inner, kind = states[PYTHON].tolist()
    gauss = states[PYTHON_GAUSS].tolist()
    random.setstate((kind, tuple(inner), gauss[0] if gauss else None))
    numpy = _loaded_numpy()
    if numpy and NUMPY in states:
        *keys, position, has_gauss = states[NUMPY].tolist()
        cached = states[NUMPY_GAUSS].item()
        numpy.random.set_state(("MT19937", keys, position, has_gauss, cached))
    for name, state in states.items():
        if name.startswith(CUDA):
            torch.cuda.set_rng_state(state, int(name.removeprefix(CUDA)))


def _loaded_numpy() -> Any:
    numpy: Any = sys.modules.get("numpy")
    return numpy if getattr(numpy, "random", None) is not None else None
