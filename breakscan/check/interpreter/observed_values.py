"""The parameters of a function in a recorded run, as values of the interpretation."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from breakscan.check.interpreter.values import (
    CONSTANT,
    NONE,
    UNKNOWN,
    Constant,
    Container,
    Module,
    Namespace,
    NoneValue,
    PythonValue,
    Sure,
    Tensor,
    Unknown,
    Value,
    instance_of,
)
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.model.observations import NONE as NONE_TYPE
from breakscan.model.observations import FunctionSeen, TensorSeen, ValueSeen
from breakscan.rulebook.torch_facts.table import DTYPE_CLASS

_PYTHON = frozenset({"bool", "int", "float", "str"})
_TELLING = frozenset({"bool", "str", "float"})
"""Integers are sizes and counts as often as settings: another run has others."""
SETTING_UP = frozenset({"__init__", "__post_init__"})
_PARAMETER = "torch.nn.parameter.Parameter"
_MODULES = "torch.nn.modules."


def seen_of(info: FunctionInfo) -> FunctionSeen | None:
    """The observations of a function."""
    project = info.index.project
    return project.seen_in(info.index).get(info.qualname) if project is not None else None


def observed_parameters(info: FunctionInfo) -> dict[str, Value]:
    """The observed values of the names that a function starts with: its parameters, and those of the outer function."""
    seen = seen_of(info)
    if seen is None:
        return {}
    found = ((name, observed_value(value, info.index)) for name, value in seen.names.items())
    return {name: value for name, value in found if value is not None}


def seen_attribute(info: FunctionInfo, seen: FunctionSeen, node: ast.Attribute) -> ValueSeen | None:
    """The observed value of an attribute of a method's object, or of an object that it holds: ``self.config.flag``.

    It is the value at the start of the method: what some function sets later is left out.
    """
    path: list[str] = []
    owner: ast.expr = node
    while isinstance(owner, ast.Attribute):
        path.append(owner.attr)
        owner = owner.value
    known = seen.names.get(owner.id) if isinstance(owner, ast.Name) and owner.id == info.receiver else None
    if known is None or not _set_later(info).isdisjoint(path):
        return None
    while known is not None and path:
        known = known.entries.get(path.pop())
    return known


def _set_later(info: FunctionInfo) -> frozenset[str]:
    """The attributes that functions of the file, and of the files of its base classes, set after an object is made."""
    project = info.index.project
    assert project is not None
    assert info.owner is not None
    indices = {info.index, *(base.index for base in project.bases_of(info.owner))}
    return frozenset().union(*(project.once("set later", index, partial(_set_in, index)) for index in indices))


def _set_in(index: ModuleIndex) -> frozenset[str]:
    functions = (info for info in index.all_functions.values() if info.name not in SETTING_UP)
    return frozenset().union(*(info.stored_attributes for info in functions))


def observed_value(seen: ValueSeen, index: ModuleIndex) -> Value | None:
    """The value that a name had in all calls that were seen; None where they differ in kind or are unknown."""
    types = frozenset(seen.types) - {NONE_TYPE}
    if not types:
        return NONE if seen.types else None
    value = _of_types(types, seen, index)
    return value if value is None or len(types) == len(seen.types) else replace(value, maybe_none=True)


def _of_types(types: frozenset[str], seen: ValueSeen, index: ModuleIndex) -> Value | None:
    if seen.tensor is not None:
        return _tensor(types, seen.tensor)
    if types <= _PYTHON:
        return _constant(types, seen)
    if len(types) > 1:
        return None
    (name,) = types
    if name in ("list", "tuple"):
        if seen.items is None:
            return None
        return Container(elements=tuple(observed_value(item, index) or UNKNOWN for item in seen.items))
    if name == "dict":
        keys = ((key, observed_value(item, index) or UNKNOWN) for key, item in seen.entries.items())
        return Container(mapping=True, keys=tuple(sorted(keys, key=lambda entry: entry[0])))
    if name.startswith(_MODULES):
        return Module(name=f"torch.nn.{name.rpartition('.')[2]}")
    owner = index.class_named(name.removeprefix("__main__.").removeprefix(f"{index.name}."))
    return instance_of(owner) if owner is not None else None


def _tensor(types: frozenset[str], seen: TensorSeen) -> Tensor | None:
    if not all(name == _PARAMETER or name.startswith("torch.") for name in types):
        return None
    classes = {DTYPE_CLASS.get(dtype) for dtype in seen.dtypes}
    zero_dim = {rank == 0 for rank in seen.ranks}
    return Tensor(
        Sure.CERTAIN,
        dtype=classes.pop() if len(classes) == 1 else None,
        zero_dim=zero_dim.pop() if len(zero_dim) == 1 else None,
        one_dim=seen.ranks == (1,),
        parameter=types == {_PARAMETER},
    )


def _constant(types: frozenset[str], seen: ValueSeen) -> Constant | None:
    if seen.texts is None:
        # A number that is traced as a symbol may come out of a tensor.
        return None
    if len(seen.texts) != 1 or not types <= _TELLING:
        return CONSTANT
    try:
        literal = ast.literal_eval(seen.texts[0])
    except (ValueError, SyntaxError):  # ``nan`` and ``inf``
        return CONSTANT
    return Constant(literal=literal) if isinstance(literal, bool | str | float) else CONSTANT


def as_observed(value: Value, seen: Value) -> Value:
    """The value that the code shows, with what a run saw.  What the code proves stays: it may have changed since."""
    if isinstance(value, Container) and (value.elements or value.keys) and value.sure is Sure.CERTAIN:
        return value
    if isinstance(value, Tensor):
        if not isinstance(seen, Tensor):
            return value if value.sure is Sure.CERTAIN else seen
        if value.dtype and seen.dtype and value.dtype != seen.dtype and value.sure is Sure.CERTAIN:
            return value
        return replace(
            seen,
            intermediate=value.intermediate,
            array=value.array,
            parameter=value.parameter or seen.parameter,
            zero_dim=seen.zero_dim if value.zero_dim is None else value.zero_dim,
        )
    if isinstance(value, PythonValue) and isinstance(seen, Constant):
        is_open = isinstance(value, Constant) and (value.literal is None or value.by_default)
        return seen if is_open and seen.literal is not None else value
    if isinstance(value, Unknown | Namespace | NoneValue | PythonValue) or isinstance(seen, Tensor | NoneValue):
        return seen
    return value
