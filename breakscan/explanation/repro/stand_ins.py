"""Expressions that make values of the recorded kinds: tensors of the same sizes, modules of the same classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from breakscan.explanation.function_values import FunctionValues
from breakscan.explanation.repro.needed_code import NeededCode, ProgramModule, ProgramModules
from breakscan.model.observations import NONE, NONE_ALONE, TensorSeen, ValueSeen, joined
from breakscan.source.outline import OutlineEntry

_PARAMETER = "torch.nn.parameter.Parameter"
_TORCHS_MODULES = "torch.nn.modules."
_LISTS = {"torch.nn.modules.container.ModuleList": "torch.nn.ModuleList([{}])",
          "torch.nn.modules.container.Sequential": "torch.nn.Sequential({})"}  # fmt: skip
_MODULE_DICT = "torch.nn.modules.container.ModuleDict"
_TRAINING = "training"
_BIAS = "bias"
_MADE_LATER = {_TRAINING, "weight"}
"""Recorded of torch's modules, and no argument of theirs."""
_NO_LITERALS = ("inf", "nan")
NOT_RECORDED: Final = "NOT_RECORDED"
"""The name of the placeholder."""


class End(Enum):
    """One of the values that a name had: in a changing size, the least or the largest."""

    LOW = 0
    HIGH = -1


class StandIns:
    """Writes expressions, and asks ``code`` for the classes that they need.  ``unknown`` are the values, by how the
    program reaches them, that the recording does not have."""

    def __init__(self, code: NeededCode, modules: ProgramModules, values: Sequence[FunctionValues]) -> None:
        self._code, self._modules = code, modules
        self._paths = tuple(dict.fromkeys(value.site.path for value in values))
        self._objects = _objects(values)
        self._making: set[str] = set()
        self.unknown: dict[str, None] = {}

    def expression(self, value: ValueSeen, end: End, path: str) -> str:
        """A stand-in for what the program reaches by ``path``."""
        kinds = [kind for kind in value.types if kind != NONE]
        if value.types == NONE_ALONE or (NONE in value.types and end is End.LOW):
            return "None"
        if value.tensor is not None:
            return self._tensor(value.tensor, end, path, parameter=_PARAMETER in kinds)
        if not kinds:
            return self._placeholder(path)
        kind = kinds[end.value]
        if kind in ("bool", "int", "float", "str"):
            return self._literal(value, kind, end, path)
        if kind in ("tuple", "list"):
            return self._sequence(value, kind, end, path)
        if kind == "dict":
            items = (f"{key!r}: {self.expression(v, end, f'{path}[{key!r}]')}" for key, v in value.entries.items())
            return f"{{{', '.join(items)}}}"
        if kind in ("torch.dtype", "torch.device") and value.texts:
            text = value.texts[end.value]
            return text if kind == "torch.dtype" else f"torch.device({text!r})"
        if kind in ("function", "builtin_function_or_method", "method", "type"):
            return self._named(value, end, path)
        if kind.startswith(_TORCHS_MODULES):
            return self._torchs_module(kind, value, end, path)
        return self._object(kind, value, end, path)

    def held(self, value: ValueSeen) -> Mapping[str, ValueSeen]:
        """The attributes of an object: those that were recorded of it, and of others of its class."""
        others = (self._objects.get(kind, {}) for kind in value.types)
        found: dict[str, ValueSeen] = {}
        for entries in (value.entries, *others):
            for name, seen in entries.items():
                found.setdefault(name, seen)
        return found

    def _tensor(self, seen: TensorSeen, end: End, path: str, *, parameter: bool) -> str:
        if seen.sizes is None or not all(seen.sizes) or not seen.dtypes:
            return self._placeholder(path)
        dtype = seen.dtypes[end.value]
        sizes = [size[end.value] for size in seen.sizes]
        device = seen.devices[end.value] if seen.devices else "cpu"
        strided = seen.contiguous == (False,) and len(sizes) > 1
        if strided:
            sizes[-2:] = reversed(sizes[-2:])
        where = f", device={device!r}" if device != "cpu" else ""
        grad = bool(seen.requires_grad and seen.requires_grad[end.value])
        made = _filled(dtype, sizes, where)
        made = f"{made}.transpose(-1, -2)" if strided else made
        if parameter:
            return f"torch.nn.Parameter({made}{'' if grad else ', requires_grad=False'})"
        return f"{made}.requires_grad_()" if grad else made

    def _literal(self, value: ValueSeen, kind: str, end: End, path: str) -> str:
        texts = [_literal(text) for text in value.texts or () if _is_literal(text, kind)]
        return _ordered(texts)[end.value] if texts else self._placeholder(path)

    def _sequence(self, value: ValueSeen, kind: str, end: End, path: str) -> str:
        if value.items is None:
            return self._placeholder(path)
        items = [self.expression(item, end, f"{path}[{number}]") for number, item in enumerate(value.items)]
        if kind == "list":
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def _named(self, value: ValueSeen, end: End, path: str) -> str:
        """A function or a class, by its name."""
        name = value.texts[end.value] if value.texts else ""
        if found := self._defined(name):
            module, scope = found
            if module.installed_as is None and "." not in scope.qualname:
                if value.types[end.value] == "type":
                    return self._code.class_of(module, scope).name
                self._code.function(module, scope, ())
                return scope.qualname
        package, _, rest = name.rpartition(".")
        if not package or "<" in name or package.startswith("__main__"):
            return self._placeholder(path)
        if package != "torch" and not package.startswith("torch."):
            self._code.imports(package, f"import {package}")
        return f"{package}.{rest}"

    def _torchs_module(self, kind: str, value: ValueSeen, end: End, path: str) -> str:
        entries = value.entries
        if kind in _LISTS or kind == _MODULE_DICT:
            children = {key: seen for key, seen in entries.items() if key not in (_TRAINING, "args", "modules")}
            made = {key: self.expression(seen, end, f"{path}[{key}]") for key, seen in children.items()}
            if kind in _LISTS:
                return _LISTS[kind].format(", ".join(made[key] for key in made if key.isdecimal()))
            return f"torch.nn.ModuleDict({{{', '.join(f'{key!r}: {text}' for key, text in made.items())}}})"
        given = (
            f"{name}={self._argument(seen, end, path, name)}"
            for name, seen in entries.items()
            # A bias is made without a word.
            if name not in _MADE_LATER and not (name == _BIAS and seen.tensor is not None)
        )
        return f"torch.nn.{kind.rpartition('.')[2]}({', '.join(given)}){_moved(entries.get('weight'), end)}"

    def _argument(self, seen: ValueSeen, end: End, path: str, name: str) -> str:
        """A module without a bias holds None, where False was given."""
        if seen.types == NONE_ALONE and name == _BIAS:
            return "False"
        return self.expression(seen, end, f"{path}.{name}")

    def _object(self, kind: str, value: ValueSeen, end: End, path: str) -> str:
        entries = self.held(value)
        if (found := self._defined(kind)) is None:
            if not entries:
                return self._placeholder(path)
            self._code.imports("types", "import types")
            given = ", ".join(f"{k}={self.expression(v, end, f'{path}.{k}')}" for k, v in entries.items())
            return f"types.SimpleNamespace({given})"
        copied = self._code.class_of(*found)
        if kind not in self._making and not copied.attributes:
            self._making.add(kind)
            copied.is_module = _TRAINING in entries
            for name, seen in entries.items():
                if name != _TRAINING:
                    copied.attributes[name] = self.expression(seen, end, f"{path}.{name}")
            self._making.discard(kind)
        return f"{copied.name}()"

    def _defined(self, qualified: str) -> tuple[ProgramModule, OutlineEntry] | None:
        """The file that defines a class or function, and where; None if none of those that were traced does."""
        parts = qualified.split(".")
        for split in range(1, len(parts)):
            name, inner = ".".join(parts[:split]), ".".join(p for p in parts[split:] if p != "<locals>")
            for path in self._paths:
                if name == "__main__" or _is_module(path, name):
                    module = self._modules.at(path)
                    if module is not None and (scope := module.scope(inner)) is not None:
                        return module, scope
        return None

    def _placeholder(self, path: str) -> str:
        self.unknown[path] = None
        return NOT_RECORDED


def with_part(value: ValueSeen, parts: Sequence[str | int], text: str) -> ValueSeen:
    """The value with another literal, or another size, at the end of a way into it."""
    if not parts:
        return replace(value, types=(type(ast.literal_eval(text)).__name__,), texts=(text,), tensor=None)
    first, rest = parts[0], parts[1:]
    if value.tensor is not None and first == "shape" and rest and isinstance(rest[0], int):
        sizes = list(value.tensor.sizes or ())
        if rest[0] < len(sizes) and text.isdecimal():
            sizes[rest[0]] = (int(text), int(text))
        return replace(value, tensor=replace(value.tensor, sizes=tuple(sizes) or None))
    if isinstance(first, int):
        items = value.items or ()
        new = tuple(with_part(one, rest, text) if number == first else one for number, one in enumerate(items))
        return replace(value, items=new or None)
    if first in value.entries:
        return replace(value, entries={**value.entries, first: with_part(value.entries[first], rest, text)})
    return value


def _objects(values: Iterable[FunctionValues]) -> dict[str, dict[str, ValueSeen]]:
    """The attributes of all objects of the run, by class: what one function does not read, another may."""
    found: dict[str, dict[str, ValueSeen]] = {}
    stack = [value for one in values for value in one.values.values()]
    while stack:
        value = stack.pop()
        stack += [*value.entries.values(), *(value.items or ())]
        for kind in value.types:
            if "." in kind and value.entries:
                known = found.setdefault(kind, {})
                for name, seen in value.entries.items():
                    known[name] = joined(known[name], seen) if name in known else seen
    return found


def _filled(dtype: str, sizes: Sequence[int], where: str) -> str:
    size = ", ".join(map(str, sizes)) if sizes else "()"
    if dtype == "float32":
        return f"torch.randn({size}{where})"
    if dtype in ("float16", "bfloat16", "float64", "complex64", "complex128"):
        return f"torch.randn({size}, dtype=torch.{dtype}{where})"
    if dtype == "bool":
        return f"(torch.rand({size}{where}) > 0.5)"
    if "int" in dtype:
        # A valid index, and a valid count.
        return f"torch.ones({size}, dtype=torch.{dtype}{where})"
    return f"torch.randn({size}{where}).to(torch.{dtype})"


def _moved(weight: ValueSeen | None, end: End) -> str:
    if weight is None or weight.tensor is None:
        return ""
    seen = weight.tensor
    to = [f"device={device!r}" for device in seen.devices[-1:] if device != "cpu"]
    to += [f"dtype=torch.{dtype}" for dtype in seen.dtypes[-1:] if dtype != "float32"]
    frozen = seen.requires_grad and not seen.requires_grad[end.value]
    moved = f".to({', '.join(to)})" if to else ""
    return f"{moved}.requires_grad_(False)" if frozen else moved


def _literal(text: str) -> str:
    return f"float({text!r})" if text.lstrip("-") in _NO_LITERALS else text


def _is_literal(text: str, kind: str) -> bool:
    if kind == "float" and text.lstrip("-") in _NO_LITERALS:
        return True
    try:
        return type(ast.literal_eval(text)).__name__ == kind
    except (ValueError, SyntaxError):
        return False


def _ordered(texts: Sequence[str]) -> list[str]:
    """Numbers by their size."""
    try:
        return sorted(texts, key=lambda text: float(ast.literal_eval(text)))
    except (ValueError, TypeError):
        return list(texts)


def _is_module(path: str, name: str) -> bool:
    plain = path.removesuffix(".py").removesuffix("/__init__")
    return f"/{plain}".endswith(f"/{name.replace('.', '/')}")
