"""The values that functions start with, and Dynamo's stand-ins for them, as strings and numbers.  To describe them runs
no code of the program: no property, no ``__repr__``, no ``__torch_function__``.  It reads no data of a tensor, and asks
Dynamo nothing that it would guard on."""

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

from breakscan.model.observations import TENSOR, Range, TensorSeen, ValueSeen, joined_names
from breakscan.recording.hooks.around import PlainCallHook
from breakscan.recording.hooks.hook import OURS, Hook, Hooks, code_of, current_compile_id, held_by
from breakscan.recording.parsers.frames import is_resumed
from breakscan.recording.records import Code, FileSeen, LibrarySeen, Record, ValuesMet, ValuesSeen
from breakscan.source.regular_files import content_digest, read_regular_file

_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\](\w+?)(?:\.py$|[/\\])")


class ValueHook(Hook):
    """Records the values that functions start with when Dynamo traces them, as frames of their own or inlined."""

    name = "values"
    without = "the values of functions are missing, which check and fix --recording ask for"
    wraps = (
        "torch._dynamo.symbolic_convert:InstructionTranslator.__init__",
        "torch._dynamo.symbolic_convert:InliningInstructionTranslator.__init__",
    )
    needs = (
        "torch._C:DisableTorchFunction", "torch._dynamo.variables:TensorVariable",
        "torch._dynamo.variables:ListVariable", "torch._dynamo.variables:TupleVariable",
        "torch._dynamo.variables:ConstDictVariable", "torch._dynamo.variables:UserFunctionVariable",
        "torch._dynamo.variables.tensor:SymNodeVariable", "torch._dynamo.variables.lazy:LazyVariableTracker",
    )  # fmt: skip
    during_exports = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._pid = os.getpid()
        self._wanted: dict[str, bool] = {}
        self._known: dict[Code, ValuesSeen] = {}
        self._changed: dict[Code, None] = {}
        self._files: set[str] = set()
        self._libraries: set[str] = set()
        self._met: dict[str, set[int]] = {}

    def after(self, _: None, tracer: Any, *__: Any, **___: Any) -> None:
        """Adds the values that a function starts with, unless it is one of torch or Python."""
        self.hooks.of(PlainCallHook).traced(tracer)
        code: CodeType = tracer.f_code
        if not self._wants(code.co_filename) or is_resumed(code.co_name):
            return
        inlined = tracer.inline_depth > 0
        values = tracer.symbolic_locals if inlined else tracer.f_locals
        names = described(values, code.co_names, are_trackers=inlined)
        # To hold the code itself would keep alive what the program releases.
        at = code_of(code)
        known = self._known.get(at)
        if known is None:
            new = ValuesSeen(len(self._known), at, getattr(code, "co_qualname", None), names, inlined)
        else:
            new = replace(known, names=joined_names(known.names, names), inlined=known.inlined and inlined)
        if new != known:
            self._known[at] = new
            self._changed[at] = None
        self._met.setdefault(current_compile_id() or "", set()).add(new.number)

    def records(self) -> Iterator[Record]:
        if self._pid != os.getpid():
            # Its records go to a file of their own.
            self._pid = os.getpid()
            self._changed = dict.fromkeys(self._known)
            self._files, self._libraries = set(), set()
        changed, self._changed = self._changed, {}
        met, self._met = self._met, {}
        for at in changed:
            if at.path not in self._files:
                self._files.add(at.path)
                with suppress(OSError):
                    yield FileSeen(os.path.abspath(at.path), content_digest(read_regular_file(at.path)[0]))
                found = _PACKAGE.search(at.path)
                if found is not None and found[1] not in self._libraries:
                    self._libraries.add(found[1])
                    if (version := _version(found[1])) is not None:
                        yield LibrarySeen(found[1], version)
            yield self._known[at]
        for compile_id, numbers in met.items():
            yield ValuesMet(compile_id, tuple(sorted(numbers)))

    def _wants(self, path: str) -> bool:
        if path not in self._wanted:
            standard, *others = _left_out()
            is_standard = path.startswith(standard) and f"{os.sep}site-packages{os.sep}" not in path
            self._wanted[path] = not (path.startswith(("<", *others)) or is_standard)
        return self._wanted[path]


def _version(name: str) -> str | None:
    """The version that a package has itself, without running its code, else what is installed by its name."""
    held = getattr(sys.modules.get(name), "__dict__", {}).get("__version__")
    if type(held) is str:
        return held
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@cache
def _left_out() -> tuple[str, ...]:
    import torch

    return sysconfig.get_path("stdlib") + os.sep, str(Path(torch.__file__).parent) + os.sep, OURS


LONGEST_TEXT = 80
MOST_ITEMS = 16
MOST_DEEP = 3
MOST_VALUES = 300  # of one function, with those in containers and objects; each name has an equal share
FEWEST_VALUES = 8  # the least share of a name, however many there are
_UNDESCRIBED = ValueSeen(())


def described(values: Mapping[str, Any], names: Collection[str], *, are_trackers: bool) -> dict[str, ValueSeen]:
    """The values that a function starts with, or Dynamo's trackers for them; ``names`` are attributes that it reads."""
    import torch

    describe = _Describer.tracker if are_trackers else _Describer.value
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
            found = ((vars(getattr(key, "vt", key)).get("value"), item) for key, item in held["items"].items())
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
    """The attributes of these names that an object itself holds, also parameters, buffers and modules of a module."""
    parts = held_by(value)
    for name in names:
        for part in parts:
            if dict.__contains__(part, name):
                yield name, dict.__getitem__(part, name)
                break


def _qualified(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _function(value: Any) -> ValueSeen:
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
