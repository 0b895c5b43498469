"""Finds all that can be reached from some objects, with a path for each, and how to put containers back.

The same walk in two processes that run the same program gives the same paths (``self.fc.weight``, ``args[0]``), by
which values are handed from one process to the other."""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import itertools
import logging
import operator
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from breakscan.prove.torch_state import HeldGenerator, held_generator, torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

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


class Position(int):
    """That of an iterator that cannot be put back: how far it moves can be compared."""


_MISSING = object()


class ObjectWalk:
    """All that can be reached from ``roots``.  Where ``modules`` is given, modules are put there and not walked into.
    ``complete`` is False where the walk ended early, ``lazy`` True where a parameter has no shape."""

    def __init__(self, roots: Mapping[str, object], modules: dict[str, Module] | None) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.plains: dict[str, object] = {}
        self.arrays: dict[str, Any] = {}
        self.generators: dict[str, HeldGenerator] = {}
        self.grads: dict[str, Tensor | None] = {}
        self.containers: dict[str, object] = {}
        """The lists, dictionaries and the like, which other names may hold, too."""
        self.undo: list[Callable[[], bool]] = []
        """Each puts one container back, and returns whether it had changed."""
        self.setters: dict[str, Callable[[object], object]] = {}
        """Binds another object in place of a plain value, by its path."""
        self.layers: dict[str, Module] = {}
        self.files: list[IO[Any]] = []
        self.counts: dict[str, itertools.count[int]] = {}
        self.iterators: list[str] = []
        """Objects with a position that cannot be put back."""
        self.complete = True
        self.lazy = False
        self._alive: list[object] = []
        self._modules = modules
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
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            # An id stays unique as long as the object lives.
            self._alive.append(thing)
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
            if self._modules is not None:
                self._modules[path] = thing
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

    def _of_tensor(self, path: str, tensor: Tensor) -> Iterable[tuple[str, object]]:
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

    def _of_module(self, path: str, module: Module) -> Iterator[tuple[str, object]]:
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
            for name, value in self._keep_names(vars(one), _is_data, put, drop).items():
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


def _is_data(name: str, value: object) -> bool:
    """Return True if an attribute of a class is a value, and neither a method nor a descriptor."""
    return not name.startswith("__") and not hasattr(type(value), "__get__")


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
