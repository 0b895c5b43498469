"""What an annotation says of a value."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.check.interpreter.joins import join_all
from breakscan.check.interpreter.values import (
    CONSTANT,
    NONE,
    UNKNOWN,
    Instance,
    Module,
    NoneValue,
    Size,
    Tensor,
    Value,
    container,
    container_of,
)
from breakscan.check.project.index import ModuleIndex
from breakscan.model.findings import Condition, ConditionKind
from breakscan.rulebook.torch_facts.table import TENSOR_TYPES

_CONSTANT_TYPES = {"int", "float", "bool", "str", "bytes", "complex", "torch.dtype", "torch.device", "torch.layout"}
_SEQUENCES = {"list", "List", "Sequence", "Iterable", "Iterator", "Collection", "set", "Set", "deque"}
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"}


def annotated_value(index: ModuleIndex, node: ast.expr | None) -> Value:
    """The value that an annotation promises; unknown where it promises nothing of use."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NONE
        if isinstance(node.value, str):
            try:
                return annotated_value(index, ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return UNKNOWN
        return UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([annotated_value(index, node.left), annotated_value(index, node.right)])
    if isinstance(node, ast.Subscript):
        return _generic(index, node)
    dotted = index.dotted(node)
    return _plain(index, dotted) if dotted else UNKNOWN


def _plain(index: ModuleIndex, dotted: str) -> Value:
    last = dotted.rsplit(".", 1)[-1]
    if last in TENSOR_TYPES and (dotted == last or dotted.startswith("torch.")):
        return Tensor(dtype=TENSOR_TYPES[last])
    if dotted == "torch.nn.Parameter":
        return Tensor(parameter=True)
    if dotted == "torch.Size":
        return Size()
    if dotted in _CONSTANT_TYPES:
        return CONSTANT
    if dotted.startswith("torch.nn."):
        return Module(name=dotted)
    if dotted == LOGGER or dotted.startswith("torch.optim."):
        return Instance(name=dotted)
    owner = index.class_named(dotted)
    if owner is not None and index.project is not None and "typing.Protocol" not in owner.bases:
        kind = Module if index.project.is_module(owner) else Instance
        return kind(info=owner, name=owner.qualname)
    return _alias(index, dotted)


def _alias(index: ModuleIndex, dotted: str) -> Value:
    """What a name at the top level of a file promises: ``OptTensor = Optional[Tensor]``."""
    found = index.global_named(dotted)
    if found is None:
        return UNKNOWN
    for node in found.index.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == found.name for target in targets):
            value = getattr(node, "value", None)
            # An alias that refers to itself leads nowhere.
            names_itself = any(isinstance(n, ast.Name) and n.id == found.name for n in ast.walk(value or node))
            return UNKNOWN if names_itself or value is None else annotated_value(found.index, value)
    return UNKNOWN


def _generic(index: ModuleIndex, node: ast.Subscript) -> Value:
    base = (index.dotted(node.value) or "").rsplit(".", 1)[-1]
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if base == "Optional":
        return _union([annotated_value(index, arguments[0]), NONE])
    if base == "Union":
        return _union([annotated_value(index, argument) for argument in arguments])
    if base in ("Annotated", "Final", "ClassVar", "Required", "NotRequired"):
        return annotated_value(index, arguments[0])
    if base == "Literal":
        return CONSTANT
    if base in ("tuple", "Tuple"):
        if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is ...:
            return container_of(annotated_value(index, arguments[0]))
        return container([annotated_value(index, argument) for argument in arguments])
    if base in _SEQUENCES:
        return container_of(annotated_value(index, arguments[0]))
    if base in _MAPPINGS and len(arguments) == 2:
        return container_of(annotated_value(index, arguments[1]), mapping=True)
    return UNKNOWN


def _union(values: list[Value]) -> Value:
    known = [value for value in values if not isinstance(value, NoneValue)]
    if not known:
        return NONE
    result = join_all(known)
    if isinstance(result, Tensor) and not all(isinstance(value, Tensor) for value in known):
        result = replace(result, optional=Condition(ConditionKind.TENSOR, ""))
    return replace(result, maybe_none=True) if len(known) < len(values) else result


LOGGER = "logging.Logger"


def makes_logger(dotted: str | None) -> bool:
    """Whether a function of this name gives a logger: that of the standard library, or one that is called like it."""
    return (dotted or "").rpartition(".")[2] in ("getLogger", "get_logger")
