"""Evaluates calls of torch's own functions, of the methods of tensors, and of the classes of ``torch.nn``."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from breakscan.analysis import api
from breakscan.analysis.arguments import Arguments, emit_call
from breakscan.analysis.values import (
    CONSTANT,
    SHAPE,
    UNKNOWN,
    Sort,
    Sure,
    Value,
    container_of,
    join_all,
    number,
    tensor,
)
from breakscan.rulebook.events import EventKind

if TYPE_CHECKING:
    from breakscan.analysis.frame import Frame


def tensor_method(frame: Frame, node: ast.Call, owner: Value, name: str, arguments: Arguments) -> Value:
    """The result of a method of a tensor."""
    given = arguments.behind(owner)
    if name in ("item", "tolist"):
        frame.emit(EventKind.CONVERT, node, form=name, operand=owner, sure=owner.sure)
        return container_of(number(owner.sure)) if name == "tolist" else number(owner.sure)
    emit_call(frame, node, f"torch.Tensor.{name}", given, owner.sure)
    return _method_result(frame, node, owner, name, arguments)


def _method_result(frame: Frame, node: ast.Call, owner: Value, name: str, arguments: Arguments) -> Value:
    kind = frame.api.methods.get(name, "other")
    if kind == "varies":
        kind = _varying(name, arguments, 0)
    if kind == "tensor":
        dtype = _dtype_of_result(frame, node, name, [owner, *arguments.positional], inherit=owner.dtype)
        zero = _zero_dim(name, arguments, 0)
        if zero is None and name in _SHAPE_KEEPERS:
            zero = owner.zero_dim
        return tensor(owner.sure, dtype, zero)
    if kind == "tensors":
        return container_of(tensor(owner.sure, owner.dtype if name in ("split", "chunk", "unbind") else None))
    if kind == "size":
        return SHAPE
    if kind == "python":
        return number(owner.sure) if name in ("equal", "allclose", "is_nonzero") else CONSTANT
    return UNKNOWN


_SHAPE_KEEPERS = frozenset(
    "abs clamp clamp_ to cpu cuda float half double long int bool bfloat16 detach clone sqrt exp log neg add sub mul "
    "div logical_not contiguous type_as floor ceil round sigmoid tanh".split()
)


def _varying(name: str, arguments: Arguments, first: int) -> str:
    """Whether a function with both kinds of overload returns one tensor or several here."""
    if name == "where":
        return "tensors" if len(arguments.values()) == 1 else "tensor"
    if name == "nonzero":
        return "tensors" if "as_tuple" in arguments.named else "tensor"
    if "return_indices" in arguments.named:
        return "tensors"
    dim = arguments.get(first, "dim")
    return "tensors" if dim is not None and dim.sort in (Sort.CONSTANT, Sort.SHAPE) else "tensor"


def _zero_dim(name: str, arguments: Arguments, first: int) -> bool | None:
    if name in api.REDUCTIONS:
        given = arguments.positional[first:]
        return True if not given and not ({"dim", "axis", "keepdim"} & set(arguments.named)) else None
    return True if name in api.LOSSES and "reduction" not in arguments.named else None


def _dtype_of_result(
    frame: Frame, node: ast.Call, name: str, values: list[Value], inherit: str | None = None
) -> str | None:
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return _dtype_named(frame, keyword.value)
    bare = name.rstrip("_")
    if bare in api.BOOL_RESULT:
        return "bool"
    if name in api.INT_RESULT:
        return "int"
    if name in api.FLOAT_RESULT:
        return "float"
    if name in ("to", "type"):
        named = [_dtype_named(frame, argument) for argument in node.args]
        return next((dtype for dtype in named if dtype), inherit)
    if name in ("sum", "prod", "cumsum") and inherit == "bool":
        return "int"
    if name.startswith("new_"):
        return None
    dtypes = [value.dtype for value in values if value.is_tensor]
    if "float" in dtypes:
        return "float"
    return inherit if bare in _DTYPE_KEEPERS or name in _DTYPE_KEEPERS else None


_DTYPE_KEEPERS = frozenset(
    "view reshape squeeze unsqueeze permute transpose expand expand_as clone detach contiguous flatten cpu cuda t "
    "masked_fill flip roll repeat cat stack gather index_select clamp max min amax amin triu tril narrow select "
    "unflatten movedim swapaxes repeat_interleave masked_select tensor as_tensor full arange range zeros ones empty "
    "zeros_like ones_like empty_like full_like where logical_and logical_or bitwise_and bitwise_or ravel view_as "
    "reshape_as diagonal diag concat concatenate cumsum cummax take_along_dim index_fill add sub mul abs neg "
    "unfold".split()
)


def _dtype_named(frame: Frame, node: ast.expr) -> str | None:
    dotted = frame.index.dotted(node) or ""
    return api.DTYPE_CLASS.get(dotted.rsplit(".", 1)[-1])


def torch_function(frame: Frame, node: ast.Call, dotted: str, last: str, arguments: Arguments) -> Value:
    """The result of something from torch that is called by its dotted name."""
    if dotted in frame.api.modules:
        return _construct_nn(frame, node, dotted, arguments)
    if dotted == "torch.nn.Parameter":
        data = arguments.get(0, "data") or CONSTANT
        frame.emit(EventKind.CONSTRUCT, node, form="parameter", callee="torch.nn.Parameter", operand=data)
        return Value(Sort.TENSOR, parameter=True)
    if dotted.startswith("torch.Tensor.") and arguments.positional:
        owner = arguments.positional[0]
        return tensor_method(frame, node, owner, last, Arguments(arguments.positional[1:], arguments.named))
    emit_call(frame, node, dotted, arguments, Sure.CERTAIN)
    if dotted == "torch.compile":
        return arguments.get(0, "model") or UNKNOWN
    if dotted.startswith("torch.utils.checkpoint.") and arguments.positional:
        return frame.apply(node, arguments.positional[0], Arguments(arguments.positional[1:], {}))
    if dotted in ("torch.cond", "torch.while_loop", "torch.vmap", "torch.func.vmap"):
        frame.program.pass_callables(frame, node, arguments.values())
        return tensor(Sure.LIKELY)
    kind = frame.api.functions.get(dotted)
    if kind == "varies":
        kind = _varying(last, arguments, 1)
    given = arguments.values()
    if kind == "tensor" and last in _ARITHMETIC and given and all(v.sort in _PLAIN for v in given):
        return UNKNOWN  # Dynamo computes with Python numbers at compile time
    if kind == "tensor":
        first = arguments.get(0, "input")
        inherit = first.dtype if first is not None and first.is_tensor else None
        if last in ("tensor", "as_tensor", "full", "arange", "range"):
            inherit = _literal_dtype(node, arguments)
        elif last in ("zeros", "ones", "empty"):
            inherit = "float"
        elif last == "where" and len(arguments.positional) == 3:
            chosen = [v.dtype for v in arguments.positional[1:] if v.is_tensor]
            inherit = chosen[0] if chosen else None
        dtype = _dtype_of_result(frame, node, last, [], inherit)
        return tensor(Sure.CERTAIN, dtype, _zero_dim(last, arguments, 1))
    if kind == "tensors":
        return container_of(tensor())
    if kind == "python":
        return number(Sure.CERTAIN) if last in ("equal", "allclose", "is_nonzero") else CONSTANT
    if dotted in ("torch.jit.script", "torch.jit.trace"):
        return Value(Sort.INSTANCE, name="torch.jit.ScriptModule")
    if (last[:1].isupper() or dotted in _GRAD_MODES) and not dotted.startswith("torch.nn.functional."):
        return Value(Sort.INSTANCE, name=dotted)
    return CONSTANT if dotted in _CONSTANT_CALLS else UNKNOWN


_GRAD_MODES = frozenset({"torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled"})


_ARITHMETIC = frozenset(
    "add sub mul div floor_divide true_divide remainder fmod pow sqrt square abs neg floor ceil".split()
)


_PLAIN = frozenset({Sort.CONSTANT, Sort.SHAPE, Sort.UNKNOWN, Sort.NAMESPACE})


_CONSTANT_CALLS = frozenset({"torch.finfo", "torch.iinfo", "torch.device", "torch.get_default_dtype"})


def _literal_dtype(node: ast.Call, arguments: Arguments) -> str | None:
    """The dtype class of what is made from Python numbers, as far as the literal shows it."""
    first = arguments.positional[0] if arguments.positional else None
    if first is not None and first.is_tensor:
        return first.dtype
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("arange", "range"):
        floats = [
            n for a in node.args for n in ast.walk(a) if isinstance(n, ast.Constant) and isinstance(n.value, float)
        ]
        return "float" if floats else "int"
    data = node.args[1:2] if ast.unparse(node.func).endswith("full") else node.args[:1]
    constants = [n.value for a in data for n in ast.walk(a) if isinstance(n, ast.Constant)]
    for kind, name in ((float, "float"), (bool, "bool"), (int, "int")):
        if any(type(value) is kind for value in constants):
            return name
    return None


def _construct_nn(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments) -> Value:
    made = Value(Sort.MODULE, name=dotted)
    if dotted in frame.api.modules_with_parameters:
        frame.emit(EventKind.CONSTRUCT, node, form="module", callee=dotted, operand=made)
    if dotted.endswith((".ModuleList", ".Sequential", ".ModuleDict")):
        parts: tuple[Value, ...] = tuple(arguments.positional)
        if len(parts) == 1 and parts[0].sort is Sort.CONTAINER:
            parts = parts[0].elements or (parts[0].item(),)
        elements = tuple(p for p in parts if p.sort is not Sort.UNKNOWN)
        if elements:
            exact = elements if dotted.endswith(".Sequential") and len(elements) == len(parts) else None
            made = replace(made, element=join_all(elements), elements=exact)
    return made
