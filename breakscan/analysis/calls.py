"""Evaluates calls: torch's own functions and methods, builtins, modules, and functions of the file."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from breakscan.analysis import api
from breakscan.analysis.attributes import attribute_of
from breakscan.analysis.index import BUILTINS, ClassInfo
from breakscan.analysis.regions import disabling_decorator
from breakscan.analysis.values import (
    CONSTANT,
    SHAPE,
    UNKNOWN,
    Sort,
    Sure,
    Value,
    container,
    container_of,
    join_all,
    number,
    tensor,
)
from breakscan.rulebook.events import FORMS, Argument, EventKind

if TYPE_CHECKING:
    from breakscan.analysis.frame import Frame

_CONVERSIONS = FORMS[EventKind.CONVERT]

# Methods of values of which nothing is known that hardly anything but a tensor has.
_DISTINCTIVE = frozenset(
    "unsqueeze masked_fill masked_fill_ masked_select masked_scatter permute contiguous expand expand_as detach "
    "scatter scatter_ scatter_add scatter_add_ gather index_select nonzero softmax log_softmax sigmoid tanh relu "
    "unbind repeat_interleave new_zeros new_ones new_full new_tensor type_as bmm matmul logsumexp cumsum clamp "
    "clamp_ isnan isinf isfinite topk argmax argmin amax amin neg_ mul_ div_ add_ sub_ zero_ unique_consecutive "
    "requires_grad_ view_as narrow tril triu roll flatten_parameters item to_dense abs_ sqrt rsqrt "
    "floor ceil numel ndimension new_empty bernoulli_ normal_ uniform_ fill_ copy_ index_fill index_add_".split()
)
# Methods that arrays and series have too: on a value of which nothing is known they only suggest a tensor.
_SUGGESTIVE = frozenset("sum mean max min any all std var prod unique tolist reshape view squeeze long bool".split())


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments.  ``spread`` tells that ``*`` or ``**`` may have brought more."""

    positional: list[Value]
    named: dict[str, Value]
    spread: bool = False

    def get(self, index: int, name: str | None = None) -> Value | None:
        if name is not None and name in self.named:
            return self.named[name]
        return self.positional[index] if index < len(self.positional) else None

    def values(self) -> list[Value]:
        return [*self.positional, *self.named.values()]

    def patterns(self) -> tuple[Argument, ...]:
        listed = [Argument(i, None, value.words()) for i, value in enumerate(self.positional)]
        return (*listed, *(Argument(None, name, value.words()) for name, value in self.named.items()))

    def behind(self, receiver: Value) -> Arguments:
        return Arguments([receiver, *self.positional], self.named, self.spread)


def apply(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    """The result of a call.  Emits the call, where a rule could want it."""
    if callee.sort is Sort.FUNCTION and callee.function is not None:
        return _function(frame, node, callee, arguments)
    if callee.sort is Sort.CLASS and callee.owner is not None:
        return _construct_own(frame, node, callee, arguments)
    if callee.sort in (Sort.MODULE, Sort.INSTANCE):
        return _module_or_instance(frame, node, callee, arguments)
    if callee.sort is Sort.NAMESPACE and callee.name:
        if callee.bound is None:
            return _named(frame, node, callee.name, arguments)
        if callee.bound.is_tensor:
            return _tensor_method(frame, node, callee.bound, callee.name.rsplit(".", 1)[-1], arguments)
        return _method(frame, node, callee.bound, callee.name, arguments)
    frame.program.pass_callables(frame, node, arguments.values())
    return UNKNOWN


def _function(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    assert callee.function is not None
    if disabled := disabling_decorator(callee.function):
        _emit_call(frame, node, disabled, arguments, Sure.CERTAIN)
    given = arguments.behind(callee.bound) if callee.bound is not None else arguments
    return frame.program.call_function(frame, node, callee.function, given, callee.closure)


def _construct_own(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    owner = callee.owner
    assert owner is not None
    is_module = frame.index.is_module(owner)
    made = Value(Sort.MODULE if is_module else Sort.INSTANCE, callee.sure, owner=owner, name=owner.qualname)
    if is_module and frame.program.makes_parameters(owner):
        frame.emit(EventKind.CONSTRUCT, node, form="module", callee=owner.qualname, operand=made)
    init = frame.index.method(owner, "__init__")
    if init is not None and not is_module:
        frame.program.call_function(frame, node, init, arguments.behind(made))
    fields = frame.program.dataclass_fields(owner)
    for i, name in enumerate(fields):
        value = arguments.get(i, name)
        if value is not None:
            frame.program.store(owner, name, value)
    return made


def _module_or_instance(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    if callee.owner is not None:
        method = frame.index.method(callee.owner, "forward" if callee.sort is Sort.MODULE else "__call__")
        if method is not None:
            return frame.program.call_function(frame, node, method, arguments.behind(callee))
        return UNKNOWN
    name = callee.name or ""
    _emit_call(frame, node, f"{name}.__call__", arguments, Sure.CERTAIN)
    if callee.element is not None and name.endswith("Sequential"):
        for module in callee.elements or (callee.element,):
            result = apply(frame, node, module, arguments)
            arguments = Arguments([result], {})
        return result
    last = name.rsplit(".", 1)[-1]
    if last in ("LSTM", "LSTMCell"):
        return container([tensor(), container([tensor(), tensor()])])
    if last in ("GRU", "RNN", "MultiheadAttention"):
        return container([tensor(), tensor()])
    if name in frame.api.modules:
        return tensor(dtype="float", zero_dim=True if last.endswith("Loss") else None)
    return UNKNOWN


def _emit_call(frame: Frame, node: ast.Call, callee: str, arguments: Arguments, sure: Sure) -> None:
    operand = arguments.get(0) or UNKNOWN
    tensors = [v.sure for v in arguments.values() if v.is_tensor]
    if operand.is_tensor and len(tensors) > 1:
        # Rules may demand any argument to be a tensor: the least sure of them speaks for all.
        operand = replace(operand, sure=min(tensors))
    frame.emit(
        EventKind.CALL,
        node,
        callee=callee,
        operand=operand,
        arguments=arguments.patterns(),
        sure=Sure.LIKELY if arguments.spread else sure,
    )


def _tensor_method(frame: Frame, node: ast.Call, owner: Value, name: str, arguments: Arguments) -> Value:
    given = arguments.behind(owner)
    if name in _CONVERSIONS and name in ("item", "tolist"):
        frame.emit(EventKind.CONVERT, node, form=name, operand=owner, sure=owner.sure)
        return container_of(number(owner.sure)) if name == "tolist" else number(owner.sure)
    _emit_call(frame, node, f"torch.Tensor.{name}", given, owner.sure)
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
    if name in ("logical_and", "logical_or", "bitwise_and") or name.startswith("new_"):
        return inherit if not name.startswith("new_") else None
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


def _method(frame: Frame, node: ast.Call, owner: Value, dotted: str, arguments: Arguments) -> Value:
    """A method of something that is not known to be a tensor."""
    name = dotted.rsplit(".", 1)[-1]
    if owner.sort is Sort.INSTANCE and owner.name:
        _emit_call(frame, node, f"{owner.name}.{name}", arguments.behind(owner), owner.sure)
        return UNKNOWN
    if owner.sort is Sort.CONTAINER:
        return _container_method(frame, node, owner, name, arguments)
    if owner.sort is Sort.MODULE:
        if name in ("register_buffer", "register_parameter") and owner.owner is not None:
            _register(frame, node, owner.owner, arguments)
        frame.program.pass_callables(frame, node, arguments.values())
        _emit_call(frame, node, dotted, arguments.behind(owner), owner.sure)
        if name in ("parameters", "buffers"):
            return container_of(Value(Sort.TENSOR, parameter=name == "parameters"))
        return owner if name in ("to", "cuda", "cpu", "eval", "train", "half", "float", "double") else UNKNOWN
    if owner.sort in (Sort.CONSTANT, Sort.SHAPE, Sort.NONE):
        if owner.sort is Sort.CONSTANT and name == "format":
            for value in arguments.values():
                if value.is_tensor:
                    _emit_call(frame, node, "str.format", Arguments([value], {}), value.sure)
        return SHAPE if owner.sort is Sort.SHAPE else CONSTANT
    if owner.sort is Sort.NUMBER:
        return owner
    if name in _DISTINCTIVE:
        return _tensor_method(frame, node, Value(Sort.TENSOR, Sure.LIKELY), name, arguments)
    if name in _SUGGESTIVE:
        return _tensor_method(frame, node, Value(Sort.TENSOR, Sure.POSSIBLE), name, arguments)
    if name == "size":
        return SHAPE
    frame.program.pass_callables(frame, node, arguments.values())
    return UNKNOWN


def _register(frame: Frame, node: ast.Call, owner: ClassInfo, arguments: Arguments) -> None:
    name = node.args[0] if node.args else None
    value = arguments.get(1, "tensor") or arguments.get(1, "param")
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and value is not None:
        known = value if value.sort in (Sort.TENSOR, Sort.NONE) else Value(Sort.TENSOR, Sure.LIKELY)
        frame.program.store(owner, name.value, known)


def _container_method(frame: Frame, node: ast.Call, owner: Value, name: str, arguments: Arguments) -> Value:
    func = node.func
    if (
        name in ("append", "add", "insert", "extend", "update")
        and arguments.positional
        and isinstance(func, ast.Attribute)
    ):
        added = arguments.positional[-1]
        added = added.item() if name in ("extend", "update") else added
        if isinstance(func.value, ast.Name):
            parts = [owner.item(), added] if owner.element or owner.elements else [added]
            grown = replace(owner, elements=None, element=join_all(parts))
            frame.names[func.value.id] = grown
        return CONSTANT
    if name in ("pop", "get", "popleft", "setdefault"):
        return owner.item()
    if name in ("values", "copy"):
        return container_of(owner.item()) if name == "values" else owner
    if name == "items":
        return container_of(container([CONSTANT, owner.item()]))
    if name == "keys":
        return container_of(CONSTANT)
    return UNKNOWN if owner.item().sort is Sort.UNKNOWN else CONSTANT


def _named(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments) -> Value:
    """A call to something imported or built in."""
    if dotted in BUILTINS:
        return _builtin(frame, node, dotted, arguments)
    last = dotted.rsplit(".", 1)[-1]
    if last in ("getLogger", "get_logger"):
        return Value(Sort.INSTANCE, name="logging.Logger")
    if dotted.startswith("torch."):
        return _torch(frame, node, dotted, last, arguments)
    sure = _sure_of_arguments(arguments)
    if dotted.startswith(("math.", "cmath.")):
        _emit_call(frame, node, dotted, arguments, Sure.CERTAIN)
        return number(sure) if any(v.sort in (Sort.TENSOR, Sort.NUMBER) for v in arguments.values()) else CONSTANT
    _emit_call(frame, node, dotted, arguments, Sure.CERTAIN)
    if dotted in ("copy.deepcopy", "copy.copy", "typing.cast"):
        return arguments.positional[-1] if arguments.positional else UNKNOWN
    made = _MAKES.get(dotted) or (dotted if last[:1].isupper() and not last.isupper() else None)
    if made is not None:
        return Value(Sort.INSTANCE, Sure.LIKELY if made == dotted else Sure.CERTAIN, name=made)
    if dotted.startswith(_STANDARD):
        return CONSTANT
    frame.program.pass_callables(frame, node, arguments.values())
    return UNKNOWN


_MAKES = {"numpy.random.default_rng": "numpy.random.Generator"}
"""Functions that make an object of a class with another name."""


_STANDARD = ("time.", "random.", "os.", "warnings.", "logging.", "sys.", "datetime.", "json.", "uuid.", "inspect.")


def _sure_of_arguments(arguments: Arguments) -> Sure:
    return max((v.sure for v in arguments.values() if v.is_tensor), default=Sure.POSSIBLE)


def _torch(frame: Frame, node: ast.Call, dotted: str, last: str, arguments: Arguments) -> Value:
    if dotted in frame.api.modules:
        return _construct_nn(frame, node, dotted, arguments)
    if dotted in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        data = arguments.get(0, "data") or CONSTANT
        frame.emit(EventKind.CONSTRUCT, node, form="parameter", callee="torch.nn.Parameter", operand=data)
        return Value(Sort.TENSOR, parameter=True)
    if dotted.startswith("torch.Tensor.") and arguments.positional:
        owner = arguments.positional[0]
        return _tensor_method(frame, node, owner, last, Arguments(arguments.positional[1:], arguments.named))
    _emit_call(frame, node, dotted, arguments, Sure.CERTAIN)
    if dotted == "torch.compile":
        return arguments.get(0, "model") or UNKNOWN
    if dotted.startswith("torch.utils.checkpoint.") and arguments.positional:
        return apply(frame, node, arguments.positional[0], Arguments(arguments.positional[1:], {}))
    if dotted in ("torch.cond", "torch.while_loop", "torch.vmap", "torch.func.vmap"):
        frame.program.pass_callables(frame, node, arguments.values())
        return tensor(Sure.LIKELY)
    kind = frame.api.function(dotted)
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


def _builtin(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if name in _CONVERSIONS:
        if first.is_tensor:
            frame.emit(EventKind.CONVERT, node, form=name, operand=first)
        if first.sort in (Sort.TENSOR, Sort.NUMBER):
            return number(first.sure)
        return SHAPE if first.sort is Sort.SHAPE else CONSTANT
    _emit_call(frame, node, name, arguments, Sure.CERTAIN)
    handler = _BUILTIN_RESULTS.get(name)
    return handler(frame, first, arguments, node) if handler else UNKNOWN


def _result_len(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return SHAPE if first.is_tensor else CONSTANT


def _result_sequence(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    if not arguments.positional:
        return Value(Sort.CONTAINER, keys=tuple(arguments.named.items()))
    return first if first.sort is Sort.CONTAINER else container_of(first.item())


def _result_range(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(CONSTANT if all(v.sort is Sort.CONSTANT for v in arguments.positional) else SHAPE)


def _result_enumerate(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(container([CONSTANT, first.item()]))


def _result_zip(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return container_of(container([v.item() for v in arguments.positional]))


def _result_extreme(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    values = arguments.positional if len(arguments.positional) > 1 else [first.item()]
    result = join_all(values) if values else UNKNOWN
    return replace(result, zero_dim=True) if result.is_tensor and first.is_tensor else result


def _result_first(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return first


def _result_truth(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    inside = first.item()
    return number(inside.sure) if first.is_tensor or inside.is_tensor else CONSTANT


def _result_constant(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return CONSTANT


def _result_next(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return first.item()


def _result_getattr(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    name = node.args[1] if len(node.args) > 1 else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return attribute_of(frame, node, first, name.value)
    return UNKNOWN


def _result_super(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    return frame.program.super_value(frame)


def _result_map(frame: Frame, first: Value, arguments: Arguments, node: ast.Call) -> Value:
    items = [v.item() for v in arguments.positional[1:]]
    return container_of(apply(frame, node, first, Arguments(items, {})))


_BUILTIN_RESULTS: dict[str, Callable[[Frame, Value, Arguments, ast.Call], Value]] = {
    "len": _result_len,
    "list": _result_sequence,
    "tuple": _result_sequence,
    "set": _result_sequence,
    "dict": _result_sequence,
    "sorted": _result_sequence,
    "reversed": _result_sequence,
    "iter": _result_sequence,
    "range": _result_range,
    "enumerate": _result_enumerate,
    "zip": _result_zip,
    "max": _result_extreme,
    "min": _result_extreme,
    "sum": _result_next,
    "next": _result_next,
    "abs": _result_first,
    "round": _result_first,
    "pow": _result_first,
    "any": _result_truth,
    "all": _result_truth,
    "str": _result_constant,
    "repr": _result_constant,
    "isinstance": _result_constant,
    "issubclass": _result_constant,
    "hasattr": _result_constant,
    "callable": _result_constant,
    "id": _result_constant,
    "type": _result_constant,
    "print": _result_constant,
    "getattr": _result_getattr,
    "super": _result_super,
    "map": _result_map,
}
