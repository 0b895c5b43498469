"""What the names at the top level of files hold, and what imported names stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from breakscan.check.interpreter.values import (
    CONSTANT,
    UNKNOWN,
    Class,
    Function,
    Namespace,
    NoneValue,
    Tensor,
    Unknown,
    Value,
    literal_of,
)
from breakscan.check.project.imports import Project
from breakscan.check.project.index import BUILTINS, ClassInfo, FunctionInfo, GlobalName, ModuleIndex, canonical
from breakscan.rulebook.torch_facts.table import DTYPE_CLASS

_NUMBERS = frozenset({"inf", "nan", "pi", "e"})


class ModuleNames:
    """The global names of the files that one program reaches.

    ``read`` interprets the top level of a file: it fills the names given and returns those that hold in any program.
    """

    def __init__(self, project: Project, read: Callable[[ModuleIndex, dict[str, Value]], dict[str, Value]]) -> None:
        self._project = project
        self._read = read
        self._assigned: dict[ModuleIndex, dict[str, Value]] = {}
        self._imported: dict[tuple[ModuleIndex, str], Value] = {}

    def assigned(self, index: ModuleIndex) -> dict[str, Value]:
        """What the names hold that the top level of a file assigns."""
        known = self._assigned.get(index)
        if known is None:
            known = self._assigned[index] = {}
            names = self._read(index, known)
            known.update({name: _as_input(value) for name, value in names.items()})
        return known

    def look_up(self, name: str, index: ModuleIndex) -> Value:
        """The value of a name at the top level of a file."""
        if name in index.assigned:
            value = self.assigned(index).get(name)
            if value is not None and (not isinstance(value, NoneValue) or name not in index.imports):
                return value
        if name in index.functions:
            return Function(info=index.functions[name])
        if name in index.classes:
            return Class(info=index.classes[name], name=name)
        dotted = index.imports.get(name)
        if dotted is None and index.stars:
            dotted = self._project.star(index, name)
        if dotted is not None:
            return self.imported(dotted, index)
        return Namespace(name=name) if name in BUILTINS else UNKNOWN

    def imported(self, dotted: str, index: ModuleIndex) -> Value:
        """The value of a dotted name from another file, as a file sees it."""
        key = index, dotted
        if key not in self._imported:
            self._imported[key] = Namespace(name=dotted)  # for imports that lead back here
            self._imported[key] = self._import(dotted, index)
        return self._imported[key]

    def _import(self, dotted: str, index: ModuleIndex) -> Value:
        dotted = canonical(dotted)
        head, _, last = dotted.rpartition(".")
        if head in ("torch", "math", "numpy") and (last in DTYPE_CLASS or last in _NUMBERS):
            return CONSTANT
        found = self._project.find(dotted, index) if head or dotted in index.imports.values() else None
        if isinstance(found, FunctionInfo):
            return Function(info=found)
        if isinstance(found, ClassInfo):
            return Class(info=found, name=found.qualname)
        if isinstance(found, GlobalName):
            value = self.assigned(found.index).get(found.name, UNKNOWN)
            return value if not isinstance(value, Unknown) else Namespace(name=dotted)
        return Namespace(name=dotted)


def _as_input(value: Value) -> Value:
    """What compiled code gets of a global: any code may assign another constant later, and no tensor is its own."""
    if isinstance(value, Tensor) and value.intermediate:
        return replace(value, intermediate=False)
    return CONSTANT if literal_of(value) is not None else value
