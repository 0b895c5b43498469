"""The state that a callable can reach: all that can be reached from some objects, with a path for each, kept so that it
can be put back: tensors by value, containers by contents.

The same walk in two processes that run the same program gives the same paths (``self.fc.weight``, ``args[0]``), by
which values are handed from one process to the other."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import io
import itertools
import linecache
import logging
import operator
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, TypeGuard, TypeVar, cast

from breakscan.prove.torch_state import HeldGenerator, bytes_of, held_generator, torch

INPUTS = ("args", "kwargs")
"""The beginnings of the paths of inputs."""
MOST_OBJECTS = 50_000
"""Objects that are looked at."""
PLAIN = (int, float, bool, str, bytes, complex, type(None))
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_HOOKS = ("_state_dict_", "_load_state_", "_non_persistent", "_is_full", "_compiled_call")
"""Attributes of modules that calls do not use."""
OF_DYNAMO = ("_torchdynamo", "_isolate_recompiles")
"""The beginnings of the names of attributes that ``torch.compile`` sets."""
_OPTIMIZER = "torch.optim.optimizer.Optimizer"
_STATEFUL = frozenset({
    _OPTIMIZER, "torch.optim.lr_scheduler.LRScheduler", "torch.amp.grad_scaler.GradScaler", "_thread._local",
    "_weakrefset.WeakSet", "argparse.Namespace", "collections.ChainMap", "collections.UserDict", "collections.UserList",
    "queue.Queue", "types.SimpleNamespace", "weakref.WeakKeyDictionary", "weakref.WeakValueDictionary",
})  # fmt: skip
"""Classes of libraries whose objects hold state of the program."""
CACHE_INFO = ".cache_info()"
INFERENCE = ".is_inference()"
UNREAD = (CACHE_INFO, INFERENCE)
"""The ends of the paths of what eager and compiled code need not have alike, and only some of the programs read."""


class Position(int):
    """That of an iterator that cannot be put back: how far it moves can be compared."""


_MISSING = object()


class ObjectWalk:
    """All that can be reached from ``roots``.  Where ``modules`` is given, modules are put there and not walked into.
    ``complete`` is False where the walk ended early, ``lazy`` True where a parameter has no shape."""

    def __init__(self, roots: Mapping[str, object], modules: dict[str, torch.nn.Module] | None) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.plains: dict[str, object] = {}
        self.arrays: dict[str, Any] = {}
        self.generators: dict[str, HeldGenerator] = {}
        self.grads: dict[str, torch.Tensor | None] = {}
        self.held: list[tuple[str, object]] = []
        """All of these objects, with each path: an id stays unique as long as an object lives."""
        self.containers: dict[str, object] = {}
        """The lists, dictionaries and the like, which other names may hold, too."""
        self.undo: list[Callable[[], bool]] = []
        """Each puts one container back, and returns whether it had changed."""
        self.setters: dict[str, Callable[[object], object]] = {}
        """Binds another object in place of a plain value, by its path."""
        self.layers: dict[str, torch.nn.Module] = {}
        self.files: list[IO[Any]] = []
        self.counts: dict[str, itertools.count[int]] = {}
        self.iterators: list[str] = []
        """Objects with a position that cannot be put back."""
        self.complete = True
        self.lazy = False
        self.modules = modules
        self._names = {"forward", "__call__"}
        """The names that the code found so far uses."""
        self._methods: dict[str, dict[str, object]] = {}
        """The methods of each class that no code found so far names."""
        self._walk(roots)

    def _walk(self, roots: Mapping[str, object]) -> None:
        plain = (*PLAIN, torch.dtype, torch.device, torch.layout, torch.memory_format, Enum)
        seen: set[int] = set()
        queue = deque(roots.items())
        while queue or self._named_methods(queue):
            path, thing = queue.popleft()
            if isinstance(thing, plain):
                self.plains[path] = thing
                continue
            self.held.append((path, thing))
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            if len(seen) > MOST_OBJECTS:
                self.complete = False
                return
            queue.extend(self._inside(path, thing))

    def _named_methods(self, queue: deque[tuple[str, object]]) -> bool:
        """Queues the methods that code found since names.  Returns whether there are any."""
        for path, methods in self._methods.items():
            queue.extend((f"{path}.{name}", methods.pop(name)) for name in sorted(methods.keys() & self._names))
        return bool(queue)

    def _inside(self, path: str, thing: Any) -> Iterable[tuple[str, object]]:
        if torch.nn.parameter.is_lazy(thing):
            self.lazy = True
            return []
        if isinstance(thing, torch.Tensor):
            return self._of_tensor(path, thing)
        if (generator := held_generator(thing)) is not None:
            self.generators[path] = generator
        if isinstance(thing, torch.nn.Module):
            if self.modules is not None:
                self.modules[path] = thing
                return []
            return self._of_module(path, thing)
        if _is_array(thing):
            self.arrays[path] = thing
            return []
        if isinstance(thing, (dict, list, deque, set, tuple)):
            return self._of_container(path, thing)
        if isinstance(thing, functools.partial):
            return [(f"{path}.func", thing.func), (f"{path}.args", thing.args), (f"{path}.keywords", thing.keywords)]
        if isinstance(thing, types.MethodType):
            return [(path, thing.__self__), (f"{path}()", thing.__func__)]
        if isinstance(thing, types.FunctionType):
            return self._of_function(path, thing)
        if isinstance(thing, type):
            return self._of_class(thing)
        if isinstance(thing, types.ModuleType):
            return []
        if isinstance(thing, weakref.ref):
            return [(f"{path}()", thing())]
        if isinstance(thing, logging.Logger):
            inside = [(f"{path}.handlers[{n}]", one) for n, one in enumerate(thing.handlers)]
            return [*inside, *([(f"{path}.parent", thing.parent)] if thing.propagate else [])]
        if hasattr(thing, "cache_info") and hasattr(thing, "__wrapped__"):
            # What a cache holds cannot be put back, but how much it holds can be compared.
            if _asks_caches():
                self.plains[f"{path}{CACHE_INFO}"] = thing.cache_info()[2:]
            if not thing.cache_info().currsize:
                self._keep(lambda: thing.cache_info().currsize, lambda _: thing.cache_clear(), operator.eq)
            return [(path, thing.__wrapped__)]
        if _is_walked(thing):
            return [_class_of(thing), *self._of_object(path, thing)]
        if isinstance(thing, (io.StringIO, io.BytesIO)):
            self._of_buffer(path, thing)
        elif isinstance(thing, Iterator) and not isinstance(thing, io.IOBase):
            self._of_iterator(path, thing)
        else:
            # A writer of CSV holds a method of its file.
            held = [thing, *(getattr(one, "__self__", None) for one in gc.get_referents(thing))]
            self.files += [cast("IO[Any]", one) for one in held if isinstance(one, io.IOBase)]
        return []

    def _of_object(self, path: str, thing: Any) -> Iterator[tuple[str, object]]:
        held = getattr(thing, "__dict__", None)
        if isinstance(held, dict):
            self._keep_contents(held)
            # Defaults only give new groups of parameters their values, with which they share tensors.
            unread = f"{path}.defaults" if _OPTIMIZER in _bases(type(thing)) else None
            yield from (one for one in self._items(held, lambda name: f"{path}.{name}") if one[0] != unread)
        for name in slots_of(type(thing)):
            if (value := getattr(thing, name, _MISSING)) is not _MISSING:
                # A frozen dataclass refuses it otherwise.
                put = functools.partial(object.__setattr__, thing, name)
                self._bound(f"{path}.{name}", functools.partial(getattr, thing, name), put)
                yield f"{path}.{name}", value

    def _bound(self, path: str, get: Callable[[], object], put: Callable[..., object]) -> None:
        self._keep(get, put, operator.is_)
        self.setters[path] = put

    def _keep(self, get: Callable[[], Any], put: Callable[[Any], object], is_same: Callable[[Any, Any], bool]) -> None:
        """The value that ``get`` returns is to be put back."""
        content = get()

        def undo() -> bool:
            with contextlib.suppress(AttributeError, KeyError, ValueError):
                if is_same(get(), content):
                    return False
            put(content)
            return True

        self.undo.append(undo)

    def _keep_contents(self, held: dict[Any, Any] | list[Any] | deque[Any] | set[Any]) -> None:
        copy = next((kind for kind in (dict, set) if isinstance(held, kind)), list)

        def fill(contents: Any) -> None:
            held.clear()
            (held.extend if isinstance(held, (list, deque)) else held.update)(contents)

        self._keep(functools.partial(copy, held), fill, _holds_same)

    def _keep_names(
        self,
        held: Mapping[str, object],
        is_state: Callable[[str, object], bool],
        put: Callable[[str, object], object],
        drop: Callable[[str], object],
    ) -> dict[str, Any]:
        """The names of an object or a class that are state, with what they hold."""

        def get() -> dict[str, object]:
            return {name: value for name, value in held.items() if is_state(name, value)}

        def put_back(contents: Mapping[str, object]) -> None:
            for name in get().keys() - contents.keys():
                drop(name)
            for name, value in contents.items():
                if held.get(name, _MISSING) is not value:
                    put(name, value)

        self._keep(get, put_back, _holds_same)
        return get()

    def _items(self, held: dict[Any, Any], path_of: Callable[[Any], str]) -> Iterator[tuple[str, object]]:
        """The items of a dictionary by path."""
        for key, value in held.items():
            path = path_of(key)
            self.setters[path] = functools.partial(held.__setitem__, key)
            yield path, value

    def _of_buffer(self, path: str, buffer: Any) -> None:
        def write(content: str | bytes) -> None:
            buffer.seek(0)
            buffer.truncate()
            buffer.write(content)

        if not buffer.closed:
            self.plains[f"{path}.getvalue()"] = buffer.getvalue()
            self._keep(buffer.getvalue, write, operator.eq)

    def _of_iterator(self, path: str, thing: Any) -> None:
        if isinstance(thing, itertools.count) and type(thing.__reduce__()[1][0]) is int:
            self.counts[path] = thing
            self.plains[path] = Position(thing.__reduce__()[1][0])
        if not hasattr(thing, "__setstate__"):
            self.iterators.append(path)
            return
        position = thing.__reduce__()[2:]
        self.plains[path] = repr(position)
        # An iterator that has ended has no position.
        if position:
            self._keep(lambda: thing.__reduce__()[2:], lambda kept: thing.__setstate__(*kept), operator.eq)

    def _of_tensor(self, path: str, tensor: torch.Tensor) -> Iterable[tuple[str, object]]:
        self.tensors[path] = tensor
        if not (tensor.is_leaf and tensor.requires_grad):
            return []
        self.grads[path] = tensor.grad
        return [] if tensor.grad is None else [(f"{path}.grad", tensor.grad)]

    def _of_container(
        self, path: str, held: dict[Any, Any] | list[Any] | deque[Any] | set[Any] | tuple[Any, ...]
    ) -> Iterable[tuple[str, object]]:
        if not isinstance(held, tuple):
            self.containers[path] = held
            self._keep_contents(held)
        if isinstance(held, dict):
            numbers = {id(key): n for n, key in enumerate(held)}
            names = {n: repr(key) if isinstance(key, (str, int)) else f"key {n}" for n, key in enumerate(held)}
            return self._items(held, lambda key: f"{path}[{names[numbers[id(key)]]}]")
        if isinstance(held, set):
            # Their order differs between processes.
            self.plains[path] = tuple(
                sorted(repr(one) if isinstance(one, PLAIN) else type(one).__qualname__ for one in held)
            )
            return []
        return [(f"{path}[{n}]", value) for n, value in enumerate(held)]

    def _of_module(self, path: str, module: torch.nn.Module) -> Iterator[tuple[str, object]]:
        self.layers[path] = module
        held = vars(module)
        own: dict[str, Any] = self._keep_names(
            held, lambda name, _: not name.startswith(_HOOKS), held.__setitem__, held.__delitem__
        )
        # Without hooks, a module has ten empty dictionaries for them.
        kinds = {name: value for name, value in own.items() if name.startswith(("_forward_", "_backward_"))}
        unhooked = {name: value for name, value in kinds.items() if isinstance(value, dict) and not value}
        for value in unhooked.values():
            self._keep_contents(value)
        for inside in ("_parameters", "_buffers", "_modules"):
            inner = own.pop(inside, {})
            self._keep_contents(inner)
            yield from ((f"{path}.{name}", value) for name, value in inner.items())
        saved = {*held.get("_parameters", ()), *held.get("_buffers", ())}
        saved.difference_update(held.get("_non_persistent_buffers_set", ()))
        self.plains[f"{path}.state_dict()"] = tuple(sorted(saved))
        for name, value in own.items():
            if name not in unhooked:
                self.setters[f"{path}.{name}"] = functools.partial(held.__setitem__, name)
                yield f"{path}.{name}", value
        yield _class_of(module)

    def _of_class(self, cls: type) -> Iterator[tuple[str, object]]:
        """The values that a class of the user's and its bases hold."""
        for one in cls.__mro__:
            path = f"{one.__module__}.{one.__qualname__}"
            if not _is_users(one.__module__) or path in self._methods:
                continue
            put, drop = (functools.partial(of, one) for of in (setattr, delattr))
            # Neither methods nor descriptors.
            values = self._keep_names(
                vars(one), lambda name, its: not (name.startswith("__") or hasattr(type(its), "__get__")), put, drop
            )
            for name, value in values.items():
                self.setters[f"{path}.{name}"] = functools.partial(setattr, one, name)
                yield f"{path}.{name}", value
            inner = {
                name: getattr(value, "__func__", None) or getattr(value, "fget", value)
                for name, value in vars(one).items()
            }
            self._methods[path] = {name: one for name, one in inner.items() if isinstance(one, types.FunctionType)}

    def _of_function(self, path: str, function: types.FunctionType) -> Iterator[tuple[str, object]]:
        for name, cell in cells_of(function):
            get, put = (functools.partial(of, cell, "cell_contents") for of in (getattr, setattr))
            self._bound(f"{path}:{name}", get, put)
            yield f"{path}:{name}", cell.cell_contents
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        yield from ((f"{path}.__defaults__[{n}]", one) for n, one in enumerate(defaults) if not isinstance(one, PLAIN))
        self._keep_contents(function.__dict__)
        own = {name: value for name, value in function.__dict__.items() if not name.startswith(OF_DYNAMO)}
        yield from self._items(own, lambda name: f"{path}.{name}")
        if not _is_users(function.__globals__.get("__name__")):
            return
        names = _global_names(function.__code__)
        self._names |= names
        yield from self._of_globals(function.__globals__, function.__module__, names)

    def _of_globals(self, held: dict[str, Any], module: str, names: Set[str]) -> Iterator[tuple[str, object]]:
        """The globals of a module that code names; of the modules among them what the same code names."""
        # Modules may name each other.
        found = {module: held}
        queue = deque([module])
        while queue:
            module = queue.popleft()
            held = found[module]
            for name in sorted(names & held.keys()):
                value = held[name]
                get, put = (functools.partial(of, name) for of in (held.__getitem__, held.__setitem__))
                self._bound(f"{module}.{name}", get, put)
                if isinstance(value, types.ModuleType):
                    if value.__name__ not in found and is_own(value.__name__):
                        found[value.__name__] = vars(value)
                        queue.append(value.__name__)
                elif not isinstance(value, type) or is_own(value.__module__, module):
                    yield f"{module}.{name}", value


def _class_of(thing: object) -> tuple[str, object]:
    cls = type(thing)
    return f"{cls.__module__}.{cls.__qualname__}", cls


def _holds_same(one: Any, other: Any) -> bool:
    """Return True if two containers of a kind hold the same objects."""
    if isinstance(one, set):
        return bool(one == other)
    if isinstance(one, dict):
        # A class of the program may have a `get` of its own.
        return len(one) == len(other) and all(dict.get(one, key, one) is value for key, value in other.items())
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _is_array(thing: object) -> bool:
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(thing, numpy.ndarray) and thing.dtype.kind in "biufc"


def _is_users(module: str | None) -> bool:
    root = (module or "").partition(".")[0]
    return root not in sys.stdlib_module_names | {"torch", "numpy", "breakscan"} or root == "__main__"


def is_own(module: str | None, *others: str) -> bool:
    """Return True if a module is one of ``others``, or the user's own and not of an installed package."""
    if module in others:
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return _is_users(module) and not _INSTALLED.intersection(Path(file).parts)


def _asks_caches() -> bool:
    """Return True if the program's own code asks a cache of a function how much it holds."""
    files = [getattr(module, "__file__", None) or "" for name, module in [*sys.modules.items()] if is_own(name)]
    return any("cache_info" in line for file in files for line in linecache.getlines(file))


def _is_walked(thing: object) -> bool:
    cls = type(thing)
    if not (isinstance(getattr(thing, "__dict__", None), dict) or any(slots_of(cls))):
        return False
    return _is_users(cls.__module__) or not _STATEFUL.isdisjoint(_bases(cls))


def _bases(cls: type) -> Iterator[str]:
    """The names of a class and its bases."""
    return (f"{one.__module__}.{one.__qualname__}" for one in cls.__mro__)


def cells_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The cells of a closure that hold something, with their names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):
            _ = cell.cell_contents
            yield name, cell


def slots_of(cls: type) -> Iterator[str]:
    """The names of the slots of a class and its bases."""
    for base in cls.__mro__:
        names = vars(base).get("__slots__", ())
        yield from (name for name in ((names,) if isinstance(names, str) else names) if not name.startswith("__"))


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


MOST_POSITIONS = 1024
"""Elements of a tensor of integers that may hold positions."""
LARGE = 2**20
"""Bytes from which on sums are hashed."""
ROW = 2**13
"""Bytes that are summed up."""


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor of any kind, as a dense tensor, which may share memory with it."""
    with torch.no_grad():
        held = tensor.detach()
        full = getattr(held, "full_tensor", None)
        if full is not None:
            held = full()
        if held.layout is not torch.strided:
            held = held.to_dense()
        return held.dequantize() if held.is_quantized else held


def plain_copy(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor of any kind, as a dense tensor on the CPU with memory of its own."""
    held = plain(tensor)
    with torch.no_grad():
        return torch.empty(held.shape, dtype=held.dtype, device="cpu").copy_(held)


def digest(value: torch.Tensor) -> str:
    """Equal for values that are equal bit by bit.  It ends with the shape."""
    hashed = hashlib.blake2b(f"{tuple(value.shape)} {value.dtype}".encode(), digest_size=16)
    if value.numel():
        bits = _bits(value, torch.uint8)
        if bits.numel() > LARGE:
            # Sums of rows and of columns take a tenth of the time.
            count = bits.numel() // ROW * ROW
            rows = bits[:count].view(torch.int64).view(-1, ROW // 8)
            hashed.update(bytes_of(rows.sum(0)))
            hashed.update(bytes_of(rows.sum(1)))
            bits = bits[count:]
        hashed.update(bytes_of(bits))
    return f"{hashed.hexdigest()} {shape_of(value.shape)}"


def digests(values: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """The digest of each value."""
    return {path: digest(value) for path, value in values.items()}


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if two tensors on one device have the same shape, the same dtype and the same bits."""
    if one is other or (one.shape, one.dtype) != (other.shape, other.dtype):
        return one is other
    # Bytes take longer.
    unit = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(one.element_size(), torch.uint8)
    return not one.numel() or torch.equal(_bits(one, unit), _bits(other, unit))


def _bits(value: torch.Tensor, unit: torch.dtype) -> torch.Tensor:
    """A tensor that is not empty as integers."""
    return value.contiguous().flatten().view(unit)


def write_file(thing: object, path: str) -> None:
    """As ``torch.save``, without checksums, which take longer than the rest."""
    from torch.utils.serialization import config

    with config.patch("save.compute_crc32", False):  # type: ignore[attr-defined]
        torch.save(thing, path)


def read_file(path: str) -> Any:
    """The content of a file that another process of breakscan has written.  Its tensors stay on disk."""
    return torch.load(path, mmap=True, weights_only=False)


def is_number(value: object) -> TypeGuard[bool | int | float]:
    """Return True if it is a number or a flag of Python's, not of a class of its own."""
    return type(value) in (bool, int, float)


def shape_of(shape: Iterable[int]) -> str:
    """``8×16``."""
    return "×".join(map(str, shape)) or "()"


def write_values(tensor: torch.Tensor, value: torch.Tensor) -> None:
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

    values: dict[str, torch.Tensor]
    plains: dict[str, object]
    bound: dict[str, torch.Tensor]
    gone: frozenset[str]
    replaced: frozenset[str]


class StateSnapshot:
    """All that can be reached from ``roots`` now; modules are put into ``modules`` instead, where that is given.
    ``values`` are put back: copies of tensors and arrays, states of generators."""

    def __init__(self, roots: Mapping[str, object], modules: dict[str, torch.nn.Module] | None = None) -> None:
        self._roots = roots
        self._into_modules = modules is None
        self.walk = walk = ObjectWalk(roots, modules)
        self.tensors, self.setters, self.files = walk.tensors, walk.setters, walk.files
        self.values = _values(walk)
        self.plains = _plains(walk)
        """Numbers, strings and other plain values."""
        self._own: Set[str] = set()

    @property
    def data(self) -> dict[str, torch.Tensor]:
        """The values of tensors and arrays by path, without parameters, gradients and generators, and without those
        that only this process has."""
        tensors = {path for path, one in self.tensors.items() if not isinstance(one, torch.nn.Parameter)}
        gradients = {f"{path}.grad" for path in self.walk.grads}
        paths = ((tensors | self.walk.arrays.keys()) - gradients) - self._own
        return {path: value for path, value in self.values.items() if path in paths}

    @contextlib.contextmanager
    def holding(self, values: Mapping[str, torch.Tensor], plains: Mapping[str, object] | None = None) -> Iterator[None]:
        """Holds other values, which :meth:`restore` writes, while the block runs; plain ones are bound at once."""
        before = self.values, self.plains
        known = {path: value for path, value in (plains or {}).items() if path in self.setters}
        self.values, self.plains = {**self.values, **values}, {**self.plains, **known}
        for path, value in known.items():
            self.setters[path](value)
        with torch.no_grad():
            # With a change, a number may be a tensor.
            for path, tensor in self.tensors.items():
                if not tensor.ndim and is_number(number := (plains or {}).get(path)):
                    tensor.fill_(number)
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

    def take_over(self, values: Mapping[str, torch.Tensor]) -> list[str]:
        """Takes the values of another process.  Returns those that do not fit; what is not named any longer is none."""
        problems: list[str] = []
        self._own = self.values.keys() - values.keys()
        for path, value in values.items():
            own = self.values.get(path)
            if own is None:
                if path.startswith(INPUTS):
                    problems.append(f"{path} is not there")
            elif own.shape != value.shape:
                problems.append(f"{path} has shape {shape_of(own.shape)}, not {shape_of(value.shape)}")
            elif own.dtype != value.dtype:
                problems.append(f"{path} is {own.dtype}, not {value.dtype}")
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

    def leaves(self) -> dict[str, torch.Tensor]:
        """The leaf tensors that require a gradient."""
        return {path: self.tensors[path] for path in self.walk.grads}


def _plains(walk: ObjectWalk) -> dict[str, object]:
    """The plain values, and which tensors require a gradient."""
    # Of the gradients themselves, the backward pass decides.
    requiring = [path for path, one in walk.tensors.items() if one.requires_grad and not path.endswith(".grad")]
    inference = [path for path, one in walk.tensors.items() if one.is_inference()]
    flags = {**dict.fromkeys(requiring, ".requires_grad"), **dict.fromkeys(inference, INFERENCE)}
    return {**walk.plains, **{f"{path}{flag}": True for path, flag in flags.items()}}


def _values(
    walk: ObjectWalk, paths: Container[str] | None = None, unlike: Mapping[str, torch.Tensor] | None = None
) -> dict[str, torch.Tensor]:
    """Copies of the values that a walk found, of all paths or of some; of those that are ``unlike`` others."""

    def of(found: Mapping[str, _Held]) -> Iterator[tuple[str, _Held]]:
        return ((path, thing) for path, thing in found.items() if paths is None or path in paths)

    values = {path: plain_copy(tensor) for path, tensor in of(walk.tensors) if not _is_same(tensor, unlike, path)}
    values.update({path: torch.from_numpy(array.copy()) for path, array in of(walk.arrays)})
    values.update({path: generator.get_state() for path, generator in of(walk.generators)})
    if unlike is None:
        return values
    return {path: value for path, value in values.items() if path in walk.tensors or not _is_same(value, unlike, path)}


def _is_same(tensor: torch.Tensor, others: Mapping[str, torch.Tensor] | None, path: str) -> bool:
    """Return True if a tensor has the bits of the other value at a path."""
    if others is None or path not in others:
        return False
    held = tensor.detach()
    if held.layout is not torch.strided or held.is_quantized or hasattr(held, "full_tensor"):
        held = plain_copy(held)
    # In higher precision, dtypes differ.
    return same_bits(held, others[path].to(held.device).to(held.dtype))
