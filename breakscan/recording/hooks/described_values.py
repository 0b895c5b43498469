"""Values of a program, and Dynamo's stand-ins for them, as strings and numbers.

Runs no code of the program: no property, no ``__repr__``, no ``__torch_function__``.  Reads no data of a tensor, and
asks Dynamo nothing that it would guard on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from types import FunctionType, MethodType
from typing import Any

from breakscan.model.observations import TENSOR, Range, TensorSeen, ValueSeen

LONGEST_TEXT = 80
MOST_ITEMS = 16
MOST_DEEP = 3
MOST_VALUES = 300
"""The most values of one function, those within containers and objects among them; each name has an equal share."""
FEWEST_VALUES = 8
"""The least share of a name, however many there are."""

_UNDESCRIBED = ValueSeen(())
_HELD_BY_MODULES = ("_parameters", "_buffers", "_modules")


def described(values: Mapping[str, Any], names: Collection[str]) -> dict[str, ValueSeen]:
    """The values that a function starts with; ``names`` are the attributes that it reads, of whatever object."""
    return _described(values, names, _Describer.value)


def described_trackers(trackers: Mapping[str, Any], names: Collection[str]) -> dict[str, ValueSeen]:
    """The same for variable trackers of Dynamo."""
    return _described(trackers, names, _Describer.tracker)


def _described(
    values: Mapping[str, Any], names: Collection[str], describe: Callable[[_Describer, Any, int], ValueSeen]
) -> dict[str, ValueSeen]:
    import torch

    most = max(FEWEST_VALUES, MOST_VALUES // max(len(values), 1))
    with torch._C.DisableTorchFunction():
        # The iterator of a comprehension is ``.0``.
        return {
            name: describe(_Describer(names, most), value, MOST_DEEP)
            for name, value in values.items()
            if not name.startswith(".")
        }


class _Describer:
    """Describes one value with at most ``most`` values."""

    def __init__(self, names: Collection[str], most: int) -> None:
        self._names = names
        self._left = most

    def value(self, value: Any, deep: int) -> ValueSeen:
        import torch

        if not self._room():
            return _UNDESCRIBED
        kind = type(value)
        if value is None or kind in (bool, int, float):
            return ValueSeen((kind.__name__,), None if value is None else (repr(value),))
        if kind is str:
            return ValueSeen(("str",), (repr(value),) if len(value) <= LONGEST_TEXT else None)
        if issubclass(kind, torch.Tensor):
            return _tensor(value)
        if kind in (tuple, list):
            return ValueSeen((kind.__name__,), items=self._items(value, self.value, deep))
        if kind is dict:
            return ValueSeen(("dict",), entries=self._entries(dict.items(value), self.value, deep))
        if kind in (FunctionType, MethodType):
            return _function(value)
        if kind is type:
            return ValueSeen(("type",), (_qualified(value),))
        if kind in (torch.dtype, torch.device):
            return ValueSeen((_qualified(kind),), (str(value),))
        entries = self._entries(_attributes(value, dict.fromkeys(self._names)), self.value, deep)
        return ValueSeen((_qualified(kind),), entries=entries)

    def tracker(self, tracker: Any, deep: int) -> ValueSeen:
        """Dynamo looks at a value when it is first asked about its tracker, and guards on it then: it is not asked."""
        if not self._room():
            return _UNDESCRIBED
        from torch._dynamo import variables
        from torch._dynamo.variables.lazy import LazyVariableTracker
        from torch._dynamo.variables.tensor import SymNodeVariable

        if issubclass(type(tracker), LazyVariableTracker):
            cache = object.__getattribute__(tracker, "_cache")
            if cache.vt is None:
                return self.value(cache.value, deep)
            tracker = cache.vt
        kind, held = type(tracker), vars(tracker)
        if issubclass(kind, variables.TensorVariable):
            return _traced_tensor(held)
        if issubclass(kind, SymNodeVariable):
            return ValueSeen(("int",) if "Int" in type(held["sym_num"]).__name__ else ("float",))
        if kind in (variables.ListVariable, variables.TupleVariable):
            name = "list" if kind is variables.ListVariable else "tuple"
            return ValueSeen((name,), items=self._items(held["items"], self.tracker, deep))
        if kind is variables.ConstDictVariable:
            found = ((_key(key), item) for key, item in held["items"].items())
            return ValueSeen(("dict",), entries=self._entries(found, self.tracker, deep))
        if issubclass(kind, variables.UserFunctionVariable) and type(held.get("fn")) is FunctionType:
            return _function(held["fn"])
        if "value" in held:
            return self.value(held["value"], deep)
        return _UNDESCRIBED

    def _room(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def _items(
        self, values: Collection[Any], describe: Callable[[Any, int], ValueSeen], deep: int
    ) -> tuple[ValueSeen, ...] | None:
        if not deep or len(values) > MOST_ITEMS:
            return None
        return tuple(describe(value, deep - 1) for value in values)

    def _entries(
        self, found: Iterable[tuple[Any, Any]], describe: Callable[[Any, int], ValueSeen], deep: int
    ) -> dict[str, ValueSeen]:
        """The described entries under short texts."""
        if not deep:
            return {}
        first = islice(found, MOST_VALUES)
        short = ((key, value) for key, value in first if type(key) is str and len(key) <= LONGEST_TEXT)
        return {key: describe(value, deep - 1) for key, value in short if self._left > 0}


def _attributes(value: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The attributes of these names that an object itself holds, parameters, buffers and modules of a module among
    them."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if type(held) is not dict:
        return
    parts = [held, *(part for key in _HELD_BY_MODULES if isinstance(part := held.get(key), dict))]
    for name in names:
        for part in parts:
            if dict.__contains__(part, name):
                yield name, dict.__getitem__(part, name)
                break


def _qualified(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _function(value: Any) -> ValueSeen:
    """A function or a method, by the name of its module and its own."""
    function = value.__func__ if type(value) is MethodType else value
    named = (f"{function.__module__}.{function.__qualname__}",) if type(function) is FunctionType else None
    return ValueSeen((type(value).__name__,), named)


def _tensor(value: Any) -> ValueSeen:
    import torch

    kind = type(value)
    if kind not in (torch.Tensor, torch.nn.Parameter):
        # Its sizes may be computed by code of the program.
        return ValueSeen((_qualified(kind),))
    contiguous = (value.is_contiguous(),) if value.layout is torch.strided else ()
    return _seen(kind, value.dtype, value.dim(), value.shape, value.device, value.requires_grad, contiguous)


def _traced_tensor(held: Mapping[str, Any]) -> ValueSeen:
    """The facts that a tracker holds of a tensor.  To ask for more could guard on its sizes."""
    import torch

    kind, dtype = held.get("class_type"), held.get("dtype")
    rank, device = held.get("ndim"), held.get("device")
    if kind not in (torch.Tensor, torch.nn.Parameter) or dtype is None or rank is None or device is None:
        return ValueSeen((_qualified(kind),)) if isinstance(kind, type) else _UNDESCRIBED
    sizes = held.get("_size")
    if sizes is None:
        sizes = getattr(held["proxy"].node.meta.get("example_value"), "shape", None)
    formats = held.get("is_contiguous")
    contiguous = () if formats is None else (torch.contiguous_format in formats,)
    return _seen(kind, dtype, rank, sizes, device, bool(held.get("requires_grad")), contiguous)


def _seen(
    kind: type, dtype: Any, rank: int, sizes: Any, device: Any, requires_grad: bool, contiguous: tuple[bool, ...]
) -> ValueSeen:
    import torch

    return ValueSeen(
        (TENSOR if kind is torch.Tensor else _qualified(kind),),
        tensor=TensorSeen(
            (str(dtype).removeprefix("torch."),),
            (rank,),
            None if sizes is None else tuple(map(_range, sizes)),
            (device.type,),
            (requires_grad,),
            contiguous,
        ),
    )


def _range(size: Any) -> Range:
    """A size that is traced as a symbol holds the one that it was traced with: to ask for that guards on nothing."""
    if type(size) is not int:
        size = getattr(getattr(size, "node", None), "_hint", None)
    return (size, size) if type(size) is int else ()


def _key(key: Any) -> Any:
    """The key of an entry of a dictionary, where Dynamo holds it."""
    return vars(getattr(key, "vt", key)).get("value")
