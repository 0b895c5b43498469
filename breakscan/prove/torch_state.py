"""torch, and the state that it has for the whole process: modes of calls, random generators, the device."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    import torch as torch
else:

    class _Torch:
        """Imports torch when it is used: the process that starts the workers does without it."""

        def __getattr__(self, name: str) -> object:
            import torch

            return getattr(torch, name)

    torch = _Torch()


@dataclass(frozen=True, slots=True)
class Modes:
    """``autocast`` holds whether it is on and its dtype, by device type."""

    grad: bool
    inference: bool
    autocast: dict[str, tuple[bool, torch.dtype]]
    autocast_cache: bool
    default_dtype: torch.dtype

    @staticmethod
    def now() -> Modes:
        """Returns the modes of the calling thread."""
        return Modes(
            grad=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            autocast={one: (torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in _device_types()},
            autocast_cache=torch.is_autocast_cache_enabled(),
            default_dtype=torch.get_default_dtype(),
        )

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Sets them while the block runs, and restores the former modes after it."""
        with default_dtype(self.default_dtype), contextlib.ExitStack() as stack:
            if torch.is_inference_mode_enabled() != self.inference:
                stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.grad))
            for one, (enabled, dtype) in self.autocast.items():
                if (torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) != (enabled, dtype):
                    stack.enter_context(torch.autocast(one, dtype, enabled, self.autocast_cache))
            yield

    def __str__(self) -> str:
        """The modes in words, which can be compared with those of another process."""
        casts = ", ".join(f"{dtype} on {device}" for device, (enabled, dtype) in self.autocast.items() if enabled)
        modes = f"grad mode {self.grad}, inference mode {self.inference}, autocast to {casts or 'nothing'}"
        return f"{modes}, default dtype {self.default_dtype}"


def _device_types() -> tuple[str, ...]:
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Sets torch's default dtype while the block runs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def eager_stance() -> contextlib.AbstractContextManager[object]:
    """Makes compiled callables run eager while the block runs."""
    stance: contextlib.AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


@contextlib.contextmanager
def as_if_compiling() -> Iterator[None]:
    """``torch.compiler.is_compiling()`` and ``is_dynamo_compiling()`` are true while the block runs, under whatever
    names they were imported."""
    asked: Any = torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling
    code = [one.__code__ for one in asked]
    for one in asked:
        one.__code__ = (lambda: True).__code__
    try:
        yield
    finally:
        for one, its in zip(asked, code, strict=True):
            one.__code__ = its


@contextlib.contextmanager
def plain_modes() -> Iterator[None]:
    """The modes in which results are compared: those of the program are off while the block runs."""
    with contextlib.ExitStack() as stack:
        for device in _device_types():
            stack.enter_context(torch.autocast(device, enabled=False))
        stack.enter_context(torch.no_grad())
        stack.enter_context(default_dtype(torch.float32))
        yield
    # Other processes need the memory of a GPU.
    torch.cuda.empty_cache()


@contextlib.contextmanager
def higher_precision(tensors: list[torch.Tensor], double: bool) -> Iterator[None]:
    """Turns autocast and TF32 off, and makes these tensors and the default dtype double, or at least float32."""
    dtype = torch.float64 if double else torch.float32
    backends: Any = torch.backends
    multiplies = (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn, backends.mkldnn.matmul)
    narrow = [one for one in tensors if one.is_floating_point() and one.element_size() < dtype.itemsize]
    held = [(one, one.data, one.grad if one.is_leaf else None) for one in narrow]
    with contextlib.ExitStack() as stack:
        for device in _device_types():
            stack.enter_context(torch.autocast(device, enabled=False))
        # The program may turn it on inside of its calls.
        enable = torch.set_autocast_enabled
        stack.enter_context(mock.patch("torch.set_autocast_enabled", lambda device, _: enable(device, False)))
        if torch.get_default_dtype().itemsize < dtype.itemsize:
            stack.enter_context(default_dtype(dtype))
        for one in multiplies:
            stack.callback(setattr, one, "fp32_precision", one.fp32_precision)
            one.fp32_precision = "ieee"
        try:
            for tensor, data, grad in held:
                tensor.grad = None
                tensor.data = data.to(dtype)
                # A backward pass adds to it.
                tensor.grad = None if grad is None else grad.detach().to(dtype, copy=True)
            yield
        finally:
            for tensor, data, _ in held:
                tensor.grad = None
                tensor.data = data
            for tensor, _, grad in held:
                tensor.grad = grad
            # Other processes need the memory.
            torch.cuda.empty_cache()


TORCH = "torch"
PYTHON = "random"
NUMPY = "numpy"
CUDA = "cuda:"
"""Followed by the number of the device."""
_BYTES = 8192
"""The size to which states of Python or NumPy are padded, so that all have one shape: the longest has 3.2 kB."""


@dataclass(frozen=True, slots=True)
class HeldGenerator:
    """The functions that read and write the state of a generator."""

    get_state: Callable[[], torch.Tensor]
    set_state: Callable[[torch.Tensor], object]


def held_generator(thing: object) -> HeldGenerator | None:
    """The generator that an object is; None if it is none, or none whose state can be set."""
    if isinstance(thing, torch.Generator):
        return HeldGenerator(thing.get_state, thing.set_state)
    if isinstance(thing, random.Random) and not isinstance(thing, random.SystemRandom):
        return _pickled(thing.getstate, thing.setstate)
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is None:
        return None
    if isinstance(thing, numpy.Generator):
        thing = thing.bit_generator
    if isinstance(thing, numpy.BitGenerator):
        return _pickled(functools.partial(getattr, thing, "state"), functools.partial(setattr, thing, "state"))
    if isinstance(thing, numpy.RandomState):
        return _pickled(lambda: thing.get_state(legacy=False), thing.set_state)
    return None


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The values of a contiguous tensor on the CPU, also where NumPy is not installed."""
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)


def _pickled(get: Callable[[], object], put: Callable[..., object]) -> HeldGenerator:
    def get_state() -> torch.Tensor:
        written = pickle.dumps(get())
        return torch.frombuffer(bytearray(written.ljust(_BYTES, b"\0")), dtype=torch.uint8)

    return HeldGenerator(get_state, lambda state: put(pickle.loads(bytes_of(state))))


def _global_generators() -> dict[str, HeldGenerator]:
    found: dict[str, Any] = {TORCH: torch.default_generator, PYTHON: random.getstate.__self__}  # type: ignore[attr-defined]
    if (numpy := sys.modules.get("numpy.random")) is not None:
        found[NUMPY] = numpy.get_state.__self__
    if cuda_in_use():
        found |= {f"{CUDA}{number}": one for number, one in enumerate(torch.cuda.default_generators)}
    return {name: generator for name, one in found.items() if (generator := held_generator(one)) is not None}


def rng_state() -> dict[str, torch.Tensor]:
    """The state of all global generators."""
    return {name: generator.get_state() for name, generator in _global_generators().items()}


def set_rng_state(states: Mapping[str, torch.Tensor]) -> None:
    """Sets the generators that are named."""
    for name, generator in _global_generators().items():
        if name in states:
            generator.set_state(states[name])


def cuda_in_use() -> bool:
    """Return True if the program has used CUDA, which is whether it has had a tensor there. Where there is a GPU, the
    compiler initializes CUDA for any program, to keep the states of its generators."""
    cuda: Any = torch.cuda
    if not cuda.is_initialized():
        return False
    try:
        # What its allocator has handed out since it began.
        stats = map(cuda.memory_stats, range(cuda.device_count()))
        return any(one.get("allocation.all.allocated", 0) for one in stats)
    except RuntimeError:
        # An allocator of the program's own does not count.
        return True


def wait_for_device() -> None:
    """Waits until all work of CUDA devices is done."""
    cuda: Any = torch.cuda
    # To wait for a device without work costs less than to ask whether it is in use.
    if cuda.is_initialized():
        cuda.synchronize()


def mark_step() -> None:
    """A new step begins: CUDA graphs may reuse the memory of the outputs of the one before."""
    # A step that is timed does not look for it.
    import torch

    compiler: Any = torch.compiler
    compiler.cudagraph_mark_step_begin()
