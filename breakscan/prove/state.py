"""The state that a callable can reach, kept so that it can be put back: tensors by value, containers by contents."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from breakscan.prove.object_walk import ObjectWalk, Position
from breakscan.prove.protocol import ValueMismatch
from breakscan.prove.torch_state import torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

MOST_POSITIONS = 1024
"""Elements of a tensor of integers that may hold positions."""
LARGE = 2**20
"""Bytes from which on sums are hashed."""
ROW = 2**13
"""Bytes that are summed up."""


def plain(tensor: Tensor) -> Tensor:
    """The values of a tensor of any kind, as a dense tensor, which may share memory with it."""
    with torch.no_grad():
        held = tensor.detach()
        full = getattr(held, "full_tensor", None)
        if full is not None:
            held = full()
        if held.layout is not torch.strided:
            held = held.to_dense()
        return held.dequantize() if held.is_quantized else held


def plain_copy(tensor: Tensor) -> Tensor:
    """The values of a tensor of any kind, as a dense tensor on the CPU with memory of its own."""
    held = plain(tensor)
    with torch.no_grad():
        return torch.empty(held.shape, dtype=held.dtype, device="cpu").copy_(held)


def digest(value: Tensor) -> str:
    """Equal for values that are equal bit by bit."""
    hashed = hashlib.blake2b(f"{tuple(value.shape)} {value.dtype}".encode(), digest_size=16)
    if value.numel():
        bits = _bits(value, torch.uint8)
        if bits.numel() > LARGE:
            # Sums of rows and of columns take a tenth of the time.
            count = bits.numel() // ROW * ROW
            rows = bits[:count].view(torch.int64).view(-1, ROW // 8)
            hashed.update(rows.sum(0).numpy().data)
            hashed.update(rows.sum(1).numpy().data)
            bits = bits[count:]
        hashed.update(bits.numpy().data)
    return hashed.hexdigest()


def digests(values: Mapping[str, Tensor]) -> dict[str, str]:
    """The digest of each value."""
    return {path: digest(value) for path, value in values.items()}


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Return True if two tensors on one device have the same shape, the same dtype and the same bits."""
    if one is other or (one.shape, one.dtype) != (other.shape, other.dtype):
        return one is other
    # Bytes take longer.
    unit = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(one.element_size(), torch.uint8)
    return not one.numel() or torch.equal(_bits(one, unit), _bits(other, unit))


def _bits(value: Tensor, unit: torch.dtype) -> Tensor:
    """A tensor that is not empty as integers."""
    return value.contiguous().flatten().view(unit)


def write_file(thing: object, path: str) -> None:
    """As ``torch.save``, without checksums, which take longer than the rest."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(thing, path)
    finally:
        torch.serialization.set_crc32_options(before)


def read_file(path: str) -> Any:
    """The content of a file that another process of breakscan has written.  Its tensors stay on disk."""
    return torch.load(path, mmap=True, weights_only=False)


def is_number(value: object) -> TypeGuard[bool | int | float]:
    """Return True if it is a number or a flag of Python's, not of a class of its own."""
    return type(value) in (bool, int, float)


def shape_of(shape: Iterable[int]) -> str:
    """``8×16``."""
    return "×".join(map(str, shape)) or "()"


def write_values(tensor: Tensor, value: Tensor) -> None:
    """Writes values into a tensor in place."""
    # An expanded tensor has one element for many: writing one of them writes all.
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor, value = tensor.narrow(dim, 0, 1), value.narrow(dim, 0, 1)
    if tensor.is_inference():
        with torch.inference_mode():
            tensor.copy_(value)
    else:
        tensor.copy_(value)


_Held = TypeVar("_Held")


@dataclass(frozen=True, slots=True)
class StateNow:
    """The state at a moment, by path: the values of tensors, arrays and generators that are other ones than in the
    snapshot, and plain values.  That a tensor requires a gradient is a plain value, too.

    ``gone`` are the tensors and arrays of the snapshot that can no longer be reached by their paths.  ``values`` has
    them, too, because other names may reach them.  ``replaced`` are the paths at which there is another object."""

    values: dict[str, Tensor]
    plains: dict[str, object]
    bound: dict[str, Tensor]
    gone: frozenset[str]
    replaced: frozenset[str]


class StateSnapshot:
    """All that can be reached from ``roots`` now; modules are put into ``modules`` instead, where that is given.
    ``values`` are put back: copies of tensors and arrays, states of generators."""

    def __init__(self, roots: Mapping[str, object], modules: dict[str, Module] | None = None) -> None:
        self._roots = roots
        self._into_modules = modules is None
        self.walk = walk = ObjectWalk(roots, modules)
        self.tensors, self.setters, self.files = walk.tensors, walk.setters, walk.files
        self.values = _values(walk)
        self.plains = _plains(walk)
        """Numbers, strings and other plain values."""

    @property
    def data(self) -> dict[str, Tensor]:
        """The values of tensors and arrays by path, without parameters, gradients and generators."""
        tensors = {path for path, one in self.tensors.items() if not isinstance(one, torch.nn.Parameter)}
        gradients = {f"{path}.grad" for path in self.walk.grads}
        paths = (tensors | self.walk.arrays.keys()) - gradients
        return {path: value for path, value in self.values.items() if path in paths}

    @contextlib.contextmanager
    def holding(self, values: Mapping[str, Tensor], plains: Mapping[str, object] | None = None) -> Iterator[None]:
        """Holds other values, which :meth:`restore` writes, while the block runs; plain ones are bound at once."""
        before = self.values, self.plains
        known = {path: value for path, value in (plains or {}).items() if path in self.setters}
        self.values, self.plains = {**self.values, **values}, {**self.plains, **known}
        for path, value in known.items():
            self.setters[path](value)
        try:
            yield
        finally:
            self.values, self.plains = before

    @contextlib.contextmanager
    def turned(self, paths: Iterable[str]) -> Iterator[None]:
        """These tensors require a gradient while the block runs if they did not, and the other way round."""
        grads = self.walk.grads
        turned = {path: self.tensors[path] for path in paths}
        self.walk.grads = {path: grad for path, grad in grads.items() if path not in turned}
        try:
            for path, tensor in turned.items():
                if tensor.requires_grad_(path not in grads).requires_grad:
                    self.walk.grads[path] = None
            yield
        finally:
            self.walk.grads = grads
            for path, tensor in turned.items():
                tensor.requires_grad_(path in grads).grad = grads.get(path)

    def nudge(self, seed: int) -> None:
        """Moves each element of the tensors by a unit of rounding; of narrow types none, as their units are coarse."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for path, tensor in self.tensors.items():
                value = self.values[path]
                if (value.is_floating_point() or value.is_complex()) and value.element_size() >= 4:
                    up = torch.randint(2, value.shape, generator=generator, device="cpu").to(value.dtype) * 2 - 1
                    write_values(tensor, value * (1 + torch.finfo(value.dtype).eps * up))

    def restore(self, values_only: bool = False) -> None:
        """Puts the values back, and the contents of containers and attributes unless ``values_only``."""
        for undo in () if values_only else self.walk.undo:
            undo()
        with torch.no_grad():
            for path, tensor in self.tensors.items():
                write_values(tensor, self.values[path])
        for path, array in self.walk.arrays.items():
            array[...] = self.values[path].numpy()
        for path, generator in self.walk.generators.items():
            generator.set_state(self.values[path])
        for path, gradient in self.walk.grads.items():
            self.tensors[path].grad = gradient
        now = {path: Position(count.__reduce__()[1][0]) for path, count in self.walk.counts.items()}
        self.plains = {**self.plains, **now}

    def advanced(self) -> list[Callable[[], object]]:
        """Puts all back.  Returns what puts back, in little time, what a call like the one before advances: contents
        of containers, attributes, and integers in small tensors."""
        found: list[Callable[[], object]] = [undo for undo in self.walk.undo if undo()]
        for path, tensor in self.tensors.items():
            value = self.values[path]
            if (
                not value.is_floating_point()
                and value.numel() <= MOST_POSITIONS
                and not same_bits(plain_copy(tensor), value)
            ):
                found.append(functools.partial(write_values, tensor, value.to(tensor.device)))
        self.restore()
        return found

    def take_over(self, values: Mapping[str, Tensor]) -> list[ValueMismatch]:
        """Takes the values of another process.  Returns those that do not fit; what is not named any longer is none."""
        problems: list[ValueMismatch] = []
        for path, value in values.items():
            own = self.values.get(path)
            if own is None:
                if path.startswith(("args", "kwargs")):
                    problems.append(ValueMismatch(path, "is not there"))
            elif own.shape != value.shape:
                problems.append(ValueMismatch(path, f"has shape {shape_of(own.shape)}, not {shape_of(value.shape)}"))
            elif own.dtype != value.dtype:
                problems.append(ValueMismatch(path, f"is {own.dtype}, not {value.dtype}"))
            else:
                self.values[path] = value
        return problems

    def now(self, gradients: bool = True) -> StateNow:
        """The state as it is at this moment: of the same objects, and of those that are bound to names since."""
        walk = self.walk_again()
        held, bound = (
            {
                path: thing
                for path, thing in {**one.tensors, **one.arrays}.items()
                if gradients or not path.endswith(".grad")
            }
            for one in (self.walk, walk)
        )
        anew = {path for path, thing in bound.items() if held.get(path) is not thing}
        values = _values(self.walk, held.keys() | self.walk.generators.keys(), self.values)
        values |= _values(walk, anew | walk.generators.keys(), self.values)
        gone = held.keys() - bound.keys() - walk.plains.keys() if walk.complete else ()
        new_tensors = {path: tensor for path, tensor in walk.tensors.items() if path in anew}
        own = {**self.walk.containers, **held}
        replaced = {path for path, thing in {**walk.containers, **bound}.items() if own.get(path, thing) is not thing}
        return StateNow(values, _plains(walk), new_tensors, frozenset(gone), frozenset(replaced))

    def plains_now(self) -> dict[str, object]:
        """The plain values that can be reached at this moment."""
        return _plains(self.walk_again())

    def walk_again(self) -> ObjectWalk:
        """The objects that can be reached at this moment."""
        return ObjectWalk(self._roots, None if self._into_modules else {})

    def share(self, other: StateSnapshot) -> None:
        """Keeps one copy of the values that both have of the same tensors."""
        for path, tensor in self.tensors.items():
            if other.tensors.get(path) is tensor and same_bits(self.values[path], other.values[path]):
                self.values[path] = other.values[path]

    def is_other_than(self, other: StateSnapshot) -> bool:
        """Return True if more than gradients and floating-point tensors has changed, so that other code may run."""
        own, its = (one.values.keys() - {f"{path}.grad" for path in one.leaves()} for one in (self, other))
        if self.plains != other.plains or own != its:
            return True
        exact = (path for path in own if not self.values[path].is_floating_point())
        return not all(same_bits(self.values[path], other.values[path]) for path in exact)

    @property
    def fits(self) -> bool:
        """Return True if the values can be put back: the tensors still have the shapes and dtypes that they had."""
        return not self.walk.lazy and all(
            (tensor.shape, tensor.dtype) == (self.values[path].shape, self.values[path].dtype)
            for path, tensor in self.tensors.items()
        )

    def leaves(self) -> dict[str, Tensor]:
        """The leaf tensors that require a gradient."""
        return {path: self.tensors[path] for path in self.walk.grads}


def _plains(walk: ObjectWalk) -> dict[str, object]:
    """The plain values, and which tensors require a gradient."""
    # Of the gradients themselves, the backward pass decides.
    requiring = [path for path, one in walk.tensors.items() if one.requires_grad and not path.endswith(".grad")]
    return {**walk.plains, **{f"{path}.requires_grad": True for path in requiring}}


def _values(
    walk: ObjectWalk, paths: Container[str] | None = None, unlike: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Copies of the values that a walk found, of all paths or of some; of those that are ``unlike`` others."""

    def of(found: Mapping[str, _Held]) -> Iterator[tuple[str, _Held]]:
        return ((path, thing) for path, thing in found.items() if paths is None or path in paths)

    values = {path: plain_copy(tensor) for path, tensor in of(walk.tensors) if not _is_same(tensor, unlike, path)}
    values.update({path: torch.from_numpy(array.copy()) for path, array in of(walk.arrays)})
    values.update({path: generator.get_state() for path, generator in of(walk.generators)})
    if unlike is None:
        return values
    return {path: value for path, value in values.items() if path in walk.tensors or not _is_same(value, unlike, path)}


def _is_same(tensor: Tensor, others: Mapping[str, Tensor] | None, path: str) -> bool:
    """Return True if a tensor has the bits of the other value at a path."""
    if others is None or path not in others:
        return False
    held = tensor.detach()
    if held.layout is not torch.strided or held.is_quantized or hasattr(held, "full_tensor"):
        held = plain_copy(held)
    # In higher precision, dtypes differ.
    return same_bits(held, others[path].to(held.device).to(held.dtype))
