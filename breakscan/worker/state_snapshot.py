"""What a callable can reach, kept so that it can be put back: tensors by value, containers by their contents.

The same walk in two processes that run the same program gives the same paths (``self.fc.weight``, ``args[0]``), by
which values are handed from one to the other.
"""

from __future__ import annotations

import functools
import hashlib
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

MOST_OBJECTS = 50_000
"""Objects that are looked at."""
PLAIN = (int, float, bool, str, bytes, complex, type(None))
_HOOKS = ("_forward_", "_backward_", "_state_dict_", "_load_state_", "_non_persistent", "_is_full", "_compiled_call")


class StateSnapshot:
    """All that can be reached from ``roots``, as it is now.  Where ``modules`` is given, modules found on the way are
    put there instead of being walked into.  ``lazy`` says that there are parameters without a shape, which cannot be
    put back once they have one."""

    def __init__(self, roots: Mapping[str, Any], modules: dict[str, Any] | None = None, *, keep: bool = True) -> None:
        self.tensors: dict[str, Any] = {}
        self.plains: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.complete = True
        self.lazy = False
        self._arrays: dict[str, Any] = {}
        self._generators: dict[str, Any] = {}
        self._grads: dict[str, Any] = {}
        self._undo: list[Callable[[], None]] = []
        self._alive: list[Any] = []
        self._modules = modules
        self._roots = roots
        self._walk(roots)
        if keep:
            self._keep()

    # -- walking ------------------------------------------------------------------------------------------------

    def _walk(self, roots: Mapping[str, Any]) -> None:
        seen: set[int] = set()
        queue = deque(roots.items())
        while queue:
            path, thing = queue.popleft()
            if isinstance(thing, PLAIN):
                self.plains[path] = thing
                continue
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            self._alive.append(thing)
            if len(seen) > MOST_OBJECTS:
                self.complete = False
                return
            queue.extend(self._inside(path, thing))

    def _inside(self, path: str, thing: Any) -> Iterable[tuple[str, Any]]:
        import torch

        if torch.nn.parameter.is_lazy(thing):
            self.lazy = True
            return []
        if isinstance(thing, torch.Tensor):
            self.tensors[path] = thing
            if thing.is_leaf and thing.requires_grad:
                self._grads[path] = thing.grad
                return [] if thing.grad is None else [(f"{path}.grad", thing.grad)]
            return []
        if isinstance(thing, torch.Generator):
            self._generators[path] = thing
            return []
        if isinstance(thing, torch.nn.Module):
            if self._modules is not None:
                self._modules[path] = thing
                return []
            return self._of_module(path, thing)
        if _is_array(thing):
            self._arrays[path] = thing
            return []
        if isinstance(thing, dict):
            self._undo.append(functools.partial(_refill_dict, thing, dict(thing)))
            return [(f"{path}[{_key(key, n)}]", value) for n, (key, value) in enumerate(thing.items())]
        if isinstance(thing, (list, deque)):
            self._undo.append(functools.partial(_refill_list, thing, list(thing)))
            return [(f"{path}[{n}]", value) for n, value in enumerate(thing)]
        if isinstance(thing, set):
            self._undo.append(functools.partial(_refill_set, thing, set(thing)))
            return []
        if isinstance(thing, tuple):
            return [(f"{path}[{n}]", value) for n, value in enumerate(thing)]
        if isinstance(thing, functools.partial):
            return [(f"{path}.func", thing.func), (f"{path}.args", thing.args), (f"{path}.keywords", thing.keywords)]
        if isinstance(thing, types.MethodType):
            return [(path, thing.__self__), (f"{path}()", thing.__func__)]
        if isinstance(thing, types.FunctionType):
            return self._of_function(path, thing)
        if _is_walked(thing):
            self._undo.append(functools.partial(_refill_dict, thing.__dict__, dict(thing.__dict__)))
            return [(f"{path}.{name}", value) for name, value in thing.__dict__.items()]
        return []

    def _of_module(self, path: str, module: Any) -> Iterator[tuple[str, Any]]:
        own = {name: value for name, value in vars(module).items() if not name.startswith(_HOOKS)}
        self._undo.append(functools.partial(_put_back, vars(module), dict(own)))
        for held in ("_parameters", "_buffers", "_modules"):
            inner = own.pop(held, {})
            self._undo.append(functools.partial(_refill_dict, inner, dict(inner)))
            yield from ((f"{path}.{name}", value) for name, value in inner.items())
        yield from ((f"{path}.{name}", value) for name, value in own.items())

    def _of_function(self, path: str, function: Any) -> Iterator[tuple[str, Any]]:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self._undo.append(functools.partial(setattr, cell, "cell_contents", value))
            yield f"{path}:{name}", value
        if not _is_users(function.__globals__.get("__name__")):
            return
        for name in sorted(_global_names(function.__code__)):
            if name in function.__globals__:
                value = function.__globals__[name]
                self._undo.append(functools.partial(function.__globals__.__setitem__, name, value))
                yield f"{function.__module__}.{name}", value

    # -- keeping and putting back -------------------------------------------------------------------------------

    def _keep(self) -> None:
        import torch

        for path, tensor in self.tensors.items():
            self.values[path] = plain_copy(tensor)
        for path, array in self._arrays.items():
            self.values[path] = torch.from_numpy(array.copy())
        for path, generator in self._generators.items():
            self.values[path] = generator.get_state()

    def restore(self, values_only: bool = False) -> None:
        """Puts back the values; and, but for ``values_only``, the contents of containers and attributes as well."""
        import torch

        if not values_only:
            self.refill()
        with torch.no_grad():
            for path, tensor in self.tensors.items():
                _write(tensor, self.values[path])
        for path, array in self._arrays.items():
            array[...] = self.values[path].numpy()
        for path, generator in self._generators.items():
            generator.set_state(self.values[path])
        for path, gradient in self._grads.items():
            self.tensors[path].grad = gradient

    def refill(self) -> None:
        """Puts back the contents of containers, and attributes, alone."""
        for undo in self._undo:
            undo()

    def take_over(self, values: Mapping[str, Any]) -> list[str]:
        """Takes the values of another process in the place of its own.  Returns what of them cannot be taken, in
        words."""
        problems: list[str] = []
        for path, value in values.items():
            own = self.values.get(path)
            if own is None:
                problems.append(f"{path} is not there")
            elif own.shape != value.shape:
                problems.append(f"{path} has shape {_shape(own)}, not {_shape(value)}")
            elif own.dtype != value.dtype:
                problems.append(f"{path} is {own.dtype}, not {value.dtype}")
            else:
                self.values[path] = value
        return problems

    def now(self) -> dict[str, Any]:
        """The values as they are at this moment."""
        import torch

        found = {path: plain_copy(tensor) for path, tensor in self.tensors.items()}
        found.update({path: torch.from_numpy(array.copy()) for path, array in self._arrays.items()})
        found.update({path: generator.get_state() for path, generator in self._generators.items()})
        return found

    def plains_now(self) -> dict[str, Any]:
        """Numbers, texts and their kin that can be reached at this moment."""
        return StateSnapshot(self._roots, None if self._modules is None else {}, keep=False).plains

    def share(self, other: StateSnapshot) -> None:
        """Keeps once what both have of the same tensors."""
        for path, tensor in self.tensors.items():
            if other.tensors.get(path) is tensor and _equal(self.values[path], other.values[path]):
                self.values[path] = other.values[path]

    def is_other_than(self, other: StateSnapshot) -> bool:
        """Whether more than gradients and tensors of floating point has changed: other code may run."""
        own, its = (one.values.keys() - {f"{path}.grad" for path in one.leaves()} for one in (self, other))
        return (
            self.plains != other.plains
            or own != its
            or any(
                not (self.values[path].is_floating_point() or _equal(self.values[path], other.values[path]))
                for path in own
            )
        )

    @property
    def fits(self) -> bool:
        """Whether the values can be put back: the tensors still have the shapes and dtypes that they had."""
        return not self.lazy and all(
            (tensor.shape, tensor.dtype) == (self.values[path].shape, self.values[path].dtype)
            for path, tensor in self.tensors.items()
        )

    def leaves(self) -> dict[str, Any]:
        """The tensors that gradients end in."""
        return {path: self.tensors[path] for path in self._grads}


def plain_copy(tensor: Any) -> Any:
    """The values of a tensor, whatever its kind, as a dense one of its own on the CPU."""
    import torch

    with torch.no_grad():
        held = tensor.detach()
        full = getattr(held, "full_tensor", None)
        if full is not None:
            held = full()
        if held.layout is not torch.strided:
            held = held.to_dense()
        if held.is_quantized:
            held = held.dequantize()
        copy = torch.empty(held.shape, dtype=held.dtype, device="cpu")
        return copy.copy_(held)


def digest(value: Any) -> str:
    """What tells two values apart, bit by bit."""
    import torch

    whole = value.contiguous()
    data = whole.flatten().view(torch.uint8).numpy() if whole.numel() else b""
    said = hashlib.blake2b(f"{tuple(whole.shape)} {whole.dtype}".encode(), digest_size=16)
    said.update(data)
    return said.hexdigest()


def digests(values: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each value."""
    return {path: digest(value) for path, value in values.items()}


def rng_state() -> dict[str, Any]:
    """The state of all global generators of random numbers, as plain tensors by name."""
    import torch

    def on_cpu(values: list[Any], dtype: Any) -> Any:
        # The program may have set another device for all new tensors.
        return torch.tensor(values, dtype=dtype, device="cpu")

    kind, inner, gauss = random.getstate()
    states = {
        "torch's CPU generator": torch.get_rng_state(),
        "random": on_cpu([*inner, kind], torch.int64),
        "random (gauss)": on_cpu([] if gauss is None else [gauss], torch.float64),
    }
    if numpy := _loaded_numpy():
        _, keys, position, has_gauss, cached = numpy.random.get_state()
        states["numpy.random"] = on_cpu([*map(int, keys), position, has_gauss], torch.int64)
        states["numpy.random (gauss)"] = on_cpu([cached], torch.float64)
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        for number in range(torch.cuda.device_count()):
            states[f"the generator of cuda:{number}"] = torch.cuda.get_rng_state(number)
    return states


def set_rng_state(states: Mapping[str, Any]) -> None:
    """Sets the generators that are named."""
    import torch

    torch.set_rng_state(states["torch's CPU generator"])
    *inner, kind = states["random"].tolist()
    gauss = states["random (gauss)"].tolist()
    random.setstate((kind, tuple(inner), gauss[0] if gauss else None))
    numpy = _loaded_numpy()
    if numpy and "numpy.random" in states:
        *keys, position, has_gauss = states["numpy.random"].tolist()
        cached = states["numpy.random (gauss)"].item()
        numpy.random.set_state(("MT19937", keys, position, has_gauss, cached))
    for name, state in states.items():
        if name.startswith("the generator of cuda:"):
            torch.cuda.set_rng_state(state, int(name.rpartition(":")[2]))


def _equal(one: Any, other: Any) -> bool:
    import torch

    return one is other or (one.dtype == other.dtype and torch.equal(one, other))


def _write(tensor: Any, value: Any) -> None:
    import torch

    # What is expanded has one element for many: writing one of them writes all.
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor, value = tensor.narrow(dim, 0, 1), value.narrow(dim, 0, 1)
    if tensor.is_inference():
        with torch.inference_mode():
            tensor.copy_(value)
    else:
        tensor.copy_(value)


def _refill_dict(held: Any, contents: dict[Any, Any]) -> None:
    if len(held) == len(contents) and all(held.get(key, held) is value for key, value in contents.items()):
        return
    held.clear()
    held.update(contents)


def _put_back(held: dict[str, Any], contents: dict[str, Any]) -> None:
    for name in [name for name in held if name not in contents and not name.startswith(_HOOKS)]:
        del held[name]
    held.update(contents)


def _refill_list(held: Any, contents: list[Any]) -> None:
    if len(held) != len(contents) or any(one is not other for one, other in zip(held, contents, strict=True)):
        held.clear()
        held.extend(contents)


def _refill_set(held: set[Any], contents: set[Any]) -> None:
    held.clear()
    held.update(contents)


def _key(key: Any, number: int) -> str:
    return repr(key) if isinstance(key, (str, int)) else f"key {number}"


def _shape(value: Any) -> str:
    return "×".join(map(str, value.shape)) or "()"


def _loaded_numpy() -> Any:
    numpy: Any = sys.modules.get("numpy")
    return numpy if getattr(numpy, "random", None) is not None else None


def _is_array(thing: Any) -> bool:
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(thing, numpy.ndarray) and thing.dtype.kind in "biufc"


def _is_users(module: str | None) -> bool:
    root = (module or "").partition(".")[0]
    return root not in sys.stdlib_module_names | {"torch", "numpy", "breakscan"} or root == "__main__"


def _is_walked(thing: Any) -> bool:
    if isinstance(thing, (type, types.ModuleType)) or not isinstance(getattr(thing, "__dict__", None), dict):
        return False
    module = type(thing).__module__
    return _is_users(module) or module.startswith("torch.optim")


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names
