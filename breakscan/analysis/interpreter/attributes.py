"""Evaluates attribute access."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.analysis.interpreter.arguments import Arguments
from breakscan.analysis.interpreter.frame import Frame
from breakscan.analysis.interpreter.values import CONSTANT, SHAPE, Sort, Sure, Value, join_all, tensor
from breakscan.analysis.project.index import ClassInfo, canonical
from breakscan.rulebook.events import EventKind


def attribute_of(frame: Frame, node: ast.AST, owner: Value, name: str) -> Value:
    """The value of ``owner.name`` at a node."""
    if owner.choices:
        return join_all([attribute_of(frame, node, choice, name) for choice in owner.choices])
    if owner.sort is Sort.NAMESPACE and owner.bound is None:
        return frame.program.names.imported(canonical(f"{owner.name}.{name}"), frame.index)
    if owner.sort is Sort.TENSOR:
        if name in frame.program.rules.read_attributes:
            frame.emit(EventKind.READ, node, attribute=name, operand=owner, sure=owner.sure)
        return _tensor_attribute(frame, owner, name)
    if owner.owner is not None:
        return _instance_attribute(frame, node, owner, owner.owner, name)
    if owner.sort is Sort.MODULE:
        if name in ("weight", "bias"):
            return Value(Sort.TENSOR, Sure.LIKELY, parameter=True)
        return _module_attribute(owner, name)
    if owner.sort is Sort.INSTANCE and owner.name:
        return Value(Sort.NAMESPACE, owner.sure, name=f"{owner.name}.{name}", bound=owner)
    if owner.sort is Sort.CONTAINER:
        for key, value in owner.keys:
            if key == name:
                return value
    if name == "shape":
        return SHAPE
    return Value(Sort.NAMESPACE, Sure.POSSIBLE, name=f"?.{name}", bound=owner)


def _instance_attribute(frame: Frame, node: ast.AST, owner: Value, info: ClassInfo, name: str) -> Value:
    """The value of an attribute of an instance, or of a class, of the project."""
    found = frame.program.attributes.find(info, name)
    if isinstance(found, Value):
        return found
    if found is not None:
        if found.is_property:
            return frame.program.call_function(frame, node, found, Arguments([owner], {}))
        bound = None if found.is_static or owner.sort is Sort.CLASS else owner
        if "classmethod" in found.decorators:
            bound = Value(Sort.CLASS, owner=info, name=info.qualname)
        return Value(Sort.FUNCTION, function=found, bound=bound)
    if owner.sort is Sort.MODULE:
        return _module_attribute(owner, name)
    return Value(Sort.NAMESPACE, Sure.POSSIBLE, name=f"?.{name}", bound=replace(owner, name=None))


def _module_attribute(owner: Value, name: str) -> Value:
    """An attribute that every module has, or one of which nothing is known."""
    if name == "training":
        return CONSTANT
    return Value(Sort.NAMESPACE, Sure.LIKELY, name=f"torch.nn.Module.{name}", bound=owner)


def _tensor_attribute(frame: Frame, owner: Value, name: str) -> Value:
    kind = frame.api.attributes.get(name)
    if kind == "tensor":
        return replace(tensor(owner.sure, owner.dtype, owner.zero_dim), intermediate=owner.intermediate)
    if kind == "size":
        return SHAPE
    if kind == "python" or name in ("dtype", "device", "layout"):
        return CONSTANT
    if name == "grad":
        return Value(Sort.TENSOR, Sure.LIKELY, maybe_none=True)
    return Value(Sort.NAMESPACE, owner.sure, name=f"torch.Tensor.{name}", bound=owner)
