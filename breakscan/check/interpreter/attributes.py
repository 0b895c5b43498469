"""Evaluates attribute access, and sizes that depend on what is in a tensor."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.frame import Frame
from breakscan.check.project.index import ClassInfo, canonical
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts.not_measured import FIRST_SIZE_BY_DATA


# Sizes that depend on what is in a tensor.  They matter where code is exported: compiled code is cut where such a
# tensor is made, and knows its size from there on.
def found_by_data(frame: Frame, name: str, given: Sequence[av.Value], result: av.Value) -> av.Value:
    """The result of a function of torch with this name, which is ``result`` otherwise."""
    alone = name == "where" and len(given) == 1
    if not frame.program.mode.exports or not (alone or name in FIRST_SIZE_BY_DATA):
        return result
    return _each_by_data(result)


def _each_by_data(value: av.Value) -> av.Value:
    if isinstance(value, av.Tensor):
        return replace(value, by_data=True)
    if isinstance(value, av.Container):
        elements = tuple(map(_each_by_data, value.elements)) if value.elements is not None else None
        element = _each_by_data(value.element) if value.element is not None else None
        return replace(value, elements=elements, element=element)
    return value


def keeps_size_by_data(name: str, given: Sequence[av.Value], keeps_shape: bool) -> bool:
    """True if the first size of what a method gives depends on data as that of its tensor does."""
    first = given[0] if given else None
    if not isinstance(first, av.Tensor) or not first.by_data:
        return False
    if name in ("view", "reshape"):
        return [av.literal_of(value) for value in given[1:]] == [-1]
    if name == "squeeze":
        return len(given) > 1 and isinstance(given[1], av.Constant) and given[1].literal in (-1, 1, 2)
    return keeps_shape or name == "flatten"


def taken_by_data(frame: Frame, owner: av.Tensor, indices: Sequence[ast.expr], values: Sequence[av.Value]) -> bool:
    """True if an index takes as many elements out of a tensor as data says."""
    first = values[0]
    if not frame.program.mode.exports or not isinstance(first, av.Tensor) or owner.array:
        return False
    return first.by_data or (first.dtype == "bool" and len(indices) == 1)


def size_of(owner: av.Tensor) -> av.Value:
    """The shape of a tensor, or the number of its elements."""
    return av.DataSize(owner.sure) if owner.by_data else av.SIZE


def attribute_of(frame: Frame, node: ast.AST, owner: av.Value, name: str) -> av.Value:
    """The value of ``owner.name`` at a node."""
    if isinstance(owner, av.Defined) and owner.choices:
        return av.join_all([attribute_of(frame, node, choice, name) for choice in owner.choices])
    if isinstance(owner, av.Namespace) and owner.bound is None:
        return frame.program.names.imported(canonical(f"{owner.name}.{name}"), frame.index)
    if isinstance(owner, av.Tensor):
        if name in frame.program.rules.read_attributes:
            frame.emit(EventKind.READ, node, attribute=name, operand=owner, sure=owner.sure)
        return _tensor_attribute(frame, owner, name)
    if isinstance(owner, av.ClassOrObject) and owner.info is not None:
        return _instance_attribute(frame, node, owner, owner.info, name)
    if isinstance(owner, av.Module):
        if name in ("weight", "bias"):
            return av.Tensor(av.Sure.LIKELY, parameter=True)
        return _module_attribute(owner, name)
    if isinstance(owner, av.Instance) and owner.name and owner != _CONTEXT:
        return av.Namespace(owner.sure, name=f"{owner.name}.{name}", bound=owner)
    if isinstance(owner, av.Container):
        for key, value in owner.keys:
            if key == name:
                return value
    if name == "shape":
        return av.SIZE
    if name == "saved_tensors":
        return av.container_of(av.Tensor())
    if name == "grad":
        return av.Tensor(av.Sure.LIKELY, maybe_none=True)
    return av.Namespace(av.Sure.POSSIBLE, name=f"?.{name}", bound=owner)


def _instance_attribute(frame: Frame, node: ast.AST, owner: av.ClassOrObject, info: ClassInfo, name: str) -> av.Value:
    if name == "__class__" and not isinstance(owner, av.Class):
        return class_of_object(owner, info)
    found = frame.program.attributes.find(info, name)
    if isinstance(found, av.Value):
        return found
    if found is not None:
        if found.is_property:
            if CACHED_PROPERTY in found.decorators:
                with frame.under(_LOCKED):
                    frame.emit(EventKind.CALL, node, callee=CACHED_PROPERTY)
            receiver = av.Arguments([owner], {})
            result = frame.program.call_function(frame, node, found, receiver)
            frame.program.call_wrappers(frame, found, receiver)
            return result
        bound: av.Value | None = None if found.is_static or isinstance(owner, av.Class) else owner
        if "classmethod" in found.decorators:
            bound = av.Class(info=info, name=info.qualname)
        return av.Function(info=found, bound=bound)
    if isinstance(owner, av.Module):
        return _module_attribute(owner, name)
    if name == "apply" and isinstance(owner, av.Class) and _is_autograd_function(frame, info):
        forward = frame.program.project.method(info, "forward")
        _emit_untraced(frame, node, info)
        if forward is not None:
            takes_context = frame.program.project.method(info, "setup_context") is None
            return av.Function(info=forward, bound=_CONTEXT if takes_context else None)
    if isinstance(owner, av.Instance) and not _OPTIMIZERS.isdisjoint(frame.program.project.outside_bases(info)):
        base = av.Instance(owner.sure, name="torch.optim.Optimizer")
        return av.Namespace(owner.sure, name=f"{base.name}.{name}", bound=base)
    return av.Namespace(av.Sure.POSSIBLE, name=f"?.{name}", bound=replace(owner, name=None))


def _emit_untraced(frame: Frame, node: ast.AST, info: ClassInfo) -> None:
    """Emits ``apply`` of a class that Dynamo does not trace where gradients are computed: one with a ``jvp`` or a
    ``vjp``, or whose ``forward`` or ``backward`` gets the class."""
    found = {name: frame.program.project.method(info, name) for name in ("forward", "backward", "jvp", "vjp")}
    of_class = any(method is not None and "classmethod" in method.decorators for method in found.values())
    if of_class or found["jvp"] or found["vjp"]:
        with frame.under(Condition(ConditionKind.TEST, "torch.is_grad_enabled()")):
            frame.emit(EventKind.CALL, node, callee="torch.autograd.Function.apply")


def class_of_object(owner: av.Value, info: ClassInfo) -> av.Class:
    """The class of an object, which may be a subclass of the one that is known."""
    return av.Class(min(owner.sure, av.Sure.LIKELY), info=info, name=info.qualname)


def in_autograd_function(frame: Frame) -> bool:
    """True if the function of a frame is a method of a subclass of ``torch.autograd.Function``."""
    owner = frame.function.owner if frame.function is not None else None
    return owner is not None and _is_autograd_function(frame, owner)


def _is_autograd_function(frame: Frame, info: ClassInfo) -> bool:
    return "torch.autograd.Function" in frame.program.project.outside_bases(info)


CACHED_PROPERTY = "functools.cached_property"
_LOCKED = Condition(ConditionKind.TEST, "sys.version_info < (3, 12)")
"""Before, a cached property takes a lock when it is read first."""

_OPTIMIZERS = frozenset({"torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"})
_CONTEXT = av.Instance(name="torch.autograd.function.FunctionCtx")


def _module_attribute(owner: av.Value, name: str) -> av.Value:
    """An attribute that every module has, or an unknown one."""
    if name == "training":
        return av.CONSTANT
    return av.Namespace(av.Sure.LIKELY, name=f"torch.nn.Module.{name}", bound=owner)


def _tensor_attribute(frame: Frame, owner: av.Tensor, name: str) -> av.Value:
    if owner.array and name == "size":
        return av.SIZE
    kind = frame.api.attributes.get(name)
    if kind == "tensor":
        made = av.tensor(owner.sure, owner.dtype, owner.zero_dim)
        return replace(made, intermediate=owner.intermediate, array=owner.array)
    if kind == "size":
        return size_of(owner) if name == "shape" else av.SIZE
    if kind == "python" or name in ("dtype", "device", "layout"):
        return av.CONSTANT
    if name == "grad":
        return av.Tensor(av.Sure.LIKELY, maybe_none=True)
    return av.Namespace(owner.sure, name=f"torch.Tensor.{name}", bound=owner)
