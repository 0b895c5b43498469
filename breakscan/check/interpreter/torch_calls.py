"""Evaluates calls of torch's functions, of methods of tensors, of the classes of ``torch.nn``, and of NumPy."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.attributes import found_by_data, keeps_size_by_data
from breakscan.check.interpreter.call_event import emit_call, emit_skippable
from breakscan.check.interpreter.frame import Frame
from breakscan.model.findings import Condition, ConditionKind, Mode
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts import not_measured as facts
from breakscan.rulebook.torch_facts import table as api
from breakscan.rulebook.torch_facts.operators import Often, Shape
from breakscan.rulebook.torch_facts.table import NumpyFunction, OfNumbers, Returned

# Evaluates calls of NumPy's functions, and of the methods of arrays, which Dynamo traces as operations of torch.
NO_COUNTERPART = "no-counterpart"
_REDUCE_UNTRACED = "numpy.nan"
"""Functions that Dynamo does not trace and that mostly return a number of NumPy, which it traces from there on."""
_OBJECTS = {
    "numpy.random.default_rng": "numpy.random.Generator",
    "numpy.random.RandomState": "numpy.random.RandomState",
    "numpy.random.SeedSequence": "numpy.random.SeedSequence",
}


def numpy_call(frame: Frame, node: ast.Call, dotted: str, arguments: av.Arguments) -> av.Value:
    if frame.program.mode is Mode.EXPORT:
        return _run_by_an_export(frame, node, dotted, arguments)
    known = frame.api.numpy(dotted.removeprefix("numpy."))
    untraced = known is not None and (known.returned is Returned.UNTRACED or _makes_objects(frame, node))
    if known is None:
        emit_skippable(frame, node, dotted, arguments)
    else:
        emit_call(frame, node, dotted, arguments, av.Sure.CERTAIN, NO_COUNTERPART if untraced else "")
    if dotted.startswith("numpy.random."):
        frame.saw_tensor = True  # Dynamo takes what is drawn for a tensor
    if dotted in _OBJECTS:
        return av.Instance(name=_OBJECTS[dotted])
    if known is None or untraced or dotted.startswith("numpy.random."):  # a number that is drawn is read at once
        frame.program.pass_callables(frame, node, arguments.values())
        return av.ArrayNumber(av.Sure.LIKELY) if dotted.startswith(_REDUCE_UNTRACED) else av.UNKNOWN
    if dotted in facts.FIND_INDICES and len(arguments.values()) == 1:
        return av.container_of(av.array(arguments.values()[0].sure, "int", one_dim=True))
    return _result(frame, node, known, arguments, list(node.args))


def _run_by_an_export(frame: Frame, node: ast.Call, dotted: str, arguments: av.Arguments) -> av.Value:
    """A plain export runs NumPy itself: what is no tensor of torch stays what it is."""
    parts = (part for value in arguments.values() for part in (value, *(av.elements_of(value) or ())))
    is_given_tensor = any(isinstance(part, av.Tensor) for part in parts)
    draws = dotted.startswith("numpy.random.")
    if is_given_tensor or draws:
        emit_call(frame, node, dotted, arguments, av.Sure.CERTAIN)
    if dotted in _OBJECTS:
        return av.Instance(name=_OBJECTS[dotted])
    frame.program.pass_callables(frame, node, arguments.values())
    return av.UNKNOWN if is_given_tensor else av.CONSTANT


def _makes_objects(frame: Frame, node: ast.Call) -> bool:
    """True if an array is made of Python's objects or texts, which torch has no dtype for."""
    asked = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    if asked:
        return frame.index.dotted(asked[0]) in ("object", "str")
    given = node.args[0] if node.args else None
    parts = given.elts if isinstance(given, ast.List) else []
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str | None) for part in parts)


def _array_method(frame: Frame, node: ast.Call, owner: av.Tensor, name: str, arguments: av.Arguments) -> av.Value:
    given = arguments.with_receiver(owner)
    known = frame.api.numpy(f"ndarray.{name}")
    untraced = known is not None and known.returned is Returned.UNTRACED
    callee = f"torch.Tensor.{name}" if name in frame.api.methods else f"numpy.ndarray.{name}"
    emit_call(frame, node, callee, given, owner.sure, NO_COUNTERPART if untraced else "")
    if known is None or untraced:
        return av.UNKNOWN
    nodes = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    if name == "astype":
        return av.array(owner.sure, _dtype_asked(frame, node, node.args), owner.zero_dim, owner.one_dim)
    return _result(frame, node, known, given, [*nodes, *node.args])


def array_number_method(
    frame: Frame, node: ast.Call, owner: av.ArrayNumber, name: str, arguments: av.Arguments
) -> av.Value:
    """The result of a method of a number that NumPy computed, and that Dynamo knows."""
    if name == "item":
        return av.CONSTANT
    if name == "astype":
        dtype = _dtype_asked(frame, node, node.args)
        return owner if dtype == "float" else av.array(owner.sure, dtype, zero_dim=True)
    return tensor_method(frame, node, av.array(owner.sure, "float", zero_dim=True), name, arguments)


def _result(
    frame: Frame, node: ast.Call, known: NumpyFunction, arguments: av.Arguments, nodes: list[ast.expr]
) -> av.Value:
    if known.returned is Returned.PYTHON:
        return av.CONSTANT
    given = arguments.values()
    sure = av.Sure.LIKELY if any(isinstance(value, av.Unknown | av.Namespace) for value in given) else av.Sure.CERTAIN
    tensors = [value for value in given if isinstance(value, av.Tensor)]
    if tensors:
        sure = min(value.sure for value in tensors)
    dtype = _dtype_asked(frame, node) or known.dtype_class(_dtype_given(given))
    if known.returned is Returned.ARRAYS:
        return av.container_of(av.array(sure, dtype))
    if known.whole and len(given) == 1:  # a list of numbers more often than one of them
        return av.array(sure, dtype, zero_dim=True)
    alone = all(isinstance(value, av.PythonValue | av.Unknown | av.Namespace) for value in given)
    if given and alone:
        return _of_numbers(known, given, nodes, sure, dtype)
    single = [isinstance(v, av.PythonValue) or (isinstance(v, av.Tensor) and v.zero_dim) for v in given]
    numbers = bool(single) and all(single)
    elementwise = OfNumbers.ARRAY not in (known.of_integers, known.of_floats)
    return av.array(sure, dtype, True if numbers and elementwise else None)


def _of_numbers(
    known: NumpyFunction, given: list[av.Value], nodes: list[ast.expr], sure: av.Sure, dtype: str | None
) -> av.Value:
    """The result of a call with numbers; one that may give a number that Dynamo knows is taken for one that does."""
    divides = any(isinstance(inner, ast.Div) for node in nodes for inner in ast.walk(node))
    is_int = [isinstance(v, av.Size) or (isinstance(v, av.Constant) and isinstance(v.literal, int)) for v in given]
    found = {known.of_integers} if all(is_int) and not divides else {known.of_integers, known.of_floats}
    if OfNumbers.KNOWN in found:
        return av.ArrayNumber(sure)
    if OfNumbers.READ in found:
        return av.array(sure, dtype, zero_dim=True)
    return av.array(sure, dtype) if OfNumbers.ARRAY in found or known.dtypes != "..." else av.UNKNOWN


def _dtype_asked(frame: Frame, node: ast.Call, given: Sequence[ast.expr] = ()) -> str | None:
    """The dtype class that ``dtype=``, or else the first argument given, names."""
    asked = [*(keyword.value for keyword in node.keywords if keyword.arg == "dtype"), *given]
    return _dtype_named(frame, asked[0]) if asked else None


def _dtype_given(given: list[av.Value]) -> str | None:
    """The dtype class of the arrays given, or of the sizes and lists of whole numbers."""
    classes = set()
    for value in given:
        inner = av.item_of(value) if isinstance(value, av.Container) else value
        if isinstance(inner, av.Tensor):
            classes.add(inner.dtype)
        elif isinstance(inner, av.Size):
            classes.add("int")
    return classes.pop() if len(classes) == 1 else None


def tensor_method(frame: Frame, node: ast.Call, owner: av.Tensor, name: str, arguments: av.Arguments) -> av.Value:
    if name in ("item", "tolist"):
        frame.emit(EventKind.CONVERT, node, form=name, operand=owner, sure=owner.sure)
        return av.container_of(av.TensorNumber(owner.sure)) if name == "tolist" else av.TensorNumber(owner.sure)
    if owner.array:
        return _array_method(frame, node, owner, name, arguments)
    arguments = _with_repeats(node, name, arguments)
    given = arguments.with_receiver(owner)
    # A parameter requires a gradient already, mostly.
    kind = "torch.nn.Parameter" if owner.parameter and name == "requires_grad_" else "torch.Tensor"
    emit_call(frame, node, f"{kind}.{name}", given, owner.sure)
    result = found_by_data(frame, name, given.values(), _method_result(frame, node, owner, name, arguments))
    return replace(result, optional=av.doubt(owner)) if isinstance(result, av.Tensor) and av.doubt(owner) else result


def _with_repeats(node: ast.Call, name: str, arguments: av.Arguments) -> av.Arguments:
    """The arguments of ``repeat_interleave``, where the repeats that an unknown object holds may be a tensor."""
    if name != "repeat_interleave":
        return arguments
    asked = [ast.unparse(one) for one in node.args]
    first = len(arguments.positional) - len(asked)  # a method that is called on its class
    positional = [
        av.Tensor(av.Sure.LIKELY, optional=Condition(ConditionKind.TENSOR, asked[i - first]), dtype="int")
        if isinstance(value, av.Namespace)
        and value.name.startswith("?.")
        and not value.name.startswith(("?.n_", "?.num_"))
        else value
        for i, value in enumerate(arguments.positional)
    ]
    return av.Arguments(positional, arguments.named, arguments.spread)


def _method_result(frame: Frame, node: ast.Call, owner: av.Tensor, name: str, arguments: av.Arguments) -> av.Value:
    if name == "numpy" and frame.program.mode is Mode.EXPORT:
        return av.UNKNOWN
    if name == "numpy":
        return av.array(owner.sure, owner.dtype, owner.zero_dim, owner.one_dim)
    kind = frame.api.methods.get(name, "other")
    if kind == "varies":
        kind = _varying(frame, name, arguments, 0)
    if kind == "tensor":
        given = [owner, *arguments.positional]
        dtype = _dtype_of_result(frame, node, name, given, owner.dtype)
        return _made(frame, node, name, av.Arguments(given, arguments.named), dtype, owner.sure)
    if kind == "tensors":
        return _several(frame, name, owner, arguments, 0, owner.sure)
    if kind == "size":
        return av.SIZE
    if name == "data_ptr":
        return av.Pointer(owner.sure)
    if kind == "python":
        dim = arguments.get(0, "dim")
        is_first = name == "size" and (dim is None or av.literal_of(dim) == 0)
        if owner.by_data and (is_first or name in ("numel", "nelement", "__len__")):
            return av.DataSize(owner.sure)
        return av.TensorNumber(owner.sure) if _reads_values(frame, name) else av.CONSTANT
    return av.UNKNOWN


def _varying(frame: Frame, name: str, arguments: av.Arguments, first: int) -> str:
    """The kind of result of a function that returns one tensor or several."""
    if name.endswith("where"):
        return "tensors" if len(arguments.values()) == 1 else "tensor"
    return "tensors" if _asked(frame, name, arguments, first) else "tensor"


def _asked(frame: Frame, name: str, arguments: av.Arguments, first: int) -> frozenset[str]:
    """The arguments given that make a function return several tensors."""
    chooses = frame.api.several_when.get(name, frozenset())
    given = {key: arguments.named[key] for key in chooses & set(arguments.named)}
    if "dim" in chooses:
        dim = arguments.get(first, "dim")
        return frozenset({"dim"}) if isinstance(dim, av.Constant | av.Size) else frozenset()
    off = {k for k, v in given.items() if isinstance(v, av.Constant) and (v.truth is False or v.literal is False)}
    return frozenset(given.keys() - off)


def _several(
    frame: Frame, name: str, of: av.Value | None, arguments: av.Arguments, first: int, sure: av.Sure
) -> av.Value:
    given, last = _dtype_of(of), name.rpartition(".")[2]
    dtypes = frame.api.result_dtypes(name, given, _asked(frame, name, arguments, first))
    if not dtypes:
        found = last in ("nonzero", "where")  # the hits along one dimension
        return av.container_of(av.tensor(sure, frame.api.element_dtype(name, given), None, found))
    line = isinstance(of, av.Tensor) and of.one_dim and last in ("sort", "topk")
    results = [av.tensor(sure, dtype, None, line) for dtype in dtypes]
    if name in facts.COUNT_LAST and "return_counts" in arguments.named:
        results[-1] = replace(results[-1], one_dim=True)
    named = zip(frame.api.fields.get(name, ()), results, strict=False)
    return replace(av.container(results), sure=sure, keys=tuple(named))


def _zero_dim(frame: Frame, name: str, arguments: av.Arguments) -> bool | None:
    if frame.api.is_whole(name, len(arguments.positional)) and not api.KEEPS_DIMENSIONS & set(arguments.named):
        return True
    if name.rstrip("_") in frame.api.broadcasts or _keeps_shape(frame, name, arguments.positional):
        given = arguments.values()
        flat = all(v.zero_dim if isinstance(v, av.Tensor) else isinstance(v, av.Constant | av.Size) for v in given)
        return True if flat and any(isinstance(v, av.Tensor) for v in given) else None
    return None


def _keeps_shape(frame: Frame, name: str, given: list[av.Value]) -> bool:
    """True if the result has the shape of the first tensor."""
    known = frame.api.operator(name)
    shapes = (known.shapes if known is not None else None) or frozenset()
    alone = Shape.BROADCAST in shapes and not any(isinstance(value, av.Tensor) for value in given[1:])
    return name in facts.COPIED_BETWEEN_DEVICES or Shape.FIRST in shapes or alone


def _is_line(frame: Frame, name: str, node: ast.Call) -> bool:
    """True if what is made has one dimension: ``arange(n)``, ``tensor([1, 2])``, ``view(-1)``."""
    if (name in ("tensor", "as_tensor") or name in api.TENSOR_TYPES) and node.args:
        elements = _elements(node.args[0])
        if elements is not None:
            return not any(isinstance(element, ast.List | ast.Tuple | ast.Starred) for element in elements)
    if len(node.args) + len(node.keywords) == (0 if isinstance(node.func, ast.Attribute) else 1):
        known = frame.api.operator(name)
        if known is not None and Shape.ONE_DIM in (known.plain_shapes or ()):
            return True
    is_flat = name in ("view", "reshape") and isinstance(node.func, ast.Attribute)
    if name in facts.COUNT_LAST and not any(keyword.arg == "dim" for keyword in node.keywords):
        return True  # it flattens
    return facts.DIMENSIONS_OF_NEW.get(name) == 1 or (is_flat and [ast.unparse(one) for one in node.args] == ["-1"])


def _elements(node: ast.expr) -> list[ast.expr] | None:
    """The elements of a list that is written out, also if it is repeated: ``[n] * times``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _elements(node.left) or _elements(node.right)
    return node.elts if isinstance(node, ast.List | ast.Tuple) else None


def _dtype_of_result(
    frame: Frame, node: ast.Call, name: str, values: list[av.Value], inherit: str | None = None
) -> str | None:
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return _dtype_named(frame, keyword.value)
    if name in ("to", "type"):
        named = [_dtype_named(frame, argument) for argument in node.args]
        return next((dtype for dtype in named if dtype), inherit)
    known = frame.api.operator(name)
    first_alone = known is not None and known.promotes == (0,)  # no other tensor takes part in the dtype of the result
    keeps = name in facts.COPIED_BETWEEN_DEVICES or name in facts.FILLED_WITH_NUMBERS
    keeps = keeps or (name.endswith("_") and name[-2:] != "__")
    if keeps or (known is not None and first_alone and known.keeps_dtype() is True):
        return inherit
    if name.rpartition(".")[2] in api.FLOAT_IN_PRACTICE:
        return "float"
    has_float = any(isinstance(value, av.Tensor) and value.dtype == "float" for value in values)
    if name in frame.api.broadcasts and not first_alone and has_float:
        inherit = "float"
    return frame.api.dtype_class(name, inherit)


def _dtype_of(value: av.Value | None) -> str | None:
    """The dtype class of a tensor, or of the tensors in a list."""
    if isinstance(value, av.Container):
        value = av.item_of(value)
    return value.dtype if isinstance(value, av.Tensor) else None


def _dtype_named(frame: Frame, node: ast.expr) -> str | None:
    name = node.value if isinstance(node, ast.Constant) else (frame.index.dotted(node) or "").rpartition(".")[2]
    return api.DTYPE_CLASS.get(str(name))


def torch_function(frame: Frame, node: ast.Call, dotted: str, last: str, arguments: av.Arguments) -> av.Value:
    """The result of something from torch that is called by its dotted name."""
    if dotted in frame.api.modules:
        return _construct_nn(frame, node, dotted, arguments)
    if dotted == "torch.nn.Parameter":
        data = arguments.get(0, "data") or av.CONSTANT
        frame.emit(EventKind.CONSTRUCT, node, form="parameter", callee="torch.nn.Parameter", operand=data)
        return av.Tensor(parameter=True)
    if dotted.startswith("torch.Tensor.") and arguments.positional and not frame.api.skipped.by_rule(dotted):
        first = arguments.positional[0]
        owner = first if isinstance(first, av.Tensor) else av.Tensor(first.sure)
        return tensor_method(frame, node, owner, last, av.Arguments(arguments.positional[1:], arguments.named))
    arguments = _with_repeats(node, last, arguments)
    emit_skippable(frame, node, dotted, arguments)
    if dotted == "torch.compile":
        return arguments.get(0, "model") or av.UNKNOWN
    if dotted == "torch.autograd.grad":
        return av.container_of(av.tensor())
    if dotted in facts.GIVES_A_TENSOR:
        return av.tensor()
    if dotted.startswith("torch.utils.checkpoint.") and arguments.positional:
        return frame.program.apply(frame, node, arguments.positional[0], av.Arguments(arguments.positional[1:], {}))
    if dotted in ("torch.cond", "torch.while_loop", "torch.vmap", "torch.func.vmap"):
        frame.program.pass_callables(frame, node, arguments.values())
        return av.tensor(av.Sure.LIKELY)
    if dotted in ("torch.jit.script", "torch.jit.trace") and isinstance(arguments.get(0), av.Function):
        return arguments.positional[0] if arguments.positional else av.UNKNOWN  # Dynamo traces the original
    result = _result_by_kind(frame, node, dotted, arguments)
    if result is None and dotted in ("torch.jit.script", "torch.jit.trace"):
        result = av.Instance(name="torch.jit.ScriptModule")
    elif result is None and (last[:1].isupper() or dotted in _GRAD_MODES):
        result = av.UNKNOWN if dotted.startswith("torch.nn.functional.") else av.Instance(name=dotted)
    result = result or (av.CONSTANT if dotted in _CONSTANT_CALLS else av.UNKNOWN)
    return found_by_data(frame, last, arguments.values(), result)


def _result_by_kind(frame: Frame, node: ast.Call, dotted: str, arguments: av.Arguments) -> av.Value | None:
    """The result of a call by the table of torch's functions; None where the table has none."""
    kind = frame.api.functions.get(dotted)
    if dotted.rpartition(".")[0] == "torch" and dotted[len("torch.") :] in api.TENSOR_TYPES:
        last = dotted[len("torch.") :]
        return av.tensor(av.Sure.CERTAIN, api.TENSOR_TYPES[last] or "float", None, _is_line(frame, last, node))
    name, last = dotted.removeprefix("torch."), dotted.rpartition(".")[2]
    if kind == "varies":
        kind = _varying(frame, name, arguments, 1)
    if kind == "tensor":
        return _one_tensor(frame, node, name, last, arguments)
    if kind == "tensors":
        return _several(frame, name, arguments.get(0, "input"), arguments, 1, av.Sure.CERTAIN)
    if kind == "python":
        return av.TensorNumber(av.Sure.CERTAIN) if _reads_values(frame, last) else av.CONSTANT
    return None


def _one_tensor(frame: Frame, node: ast.Call, name: str, last: str, arguments: av.Arguments) -> av.Value:
    given = arguments.values()
    if last in facts.COMPUTED_WITH_NUMBERS and given and all(isinstance(v, _PLAIN) for v in given):
        return av.UNKNOWN  # Dynamo computes with Python numbers at compile time
    inherit = _dtype_of(arguments.get(0, "input"))
    if last in facts.FILLED_WITH_NUMBERS:
        inherit = _literal_dtype(node, arguments)
    elif last in facts.OF_THE_DEFAULT_DTYPE:
        inherit = "float"
    elif last == "where" and len(arguments.positional) == 3:
        chosen = [v.dtype for v in arguments.positional[1:] if isinstance(v, av.Tensor)]
        inherit = chosen[0] if chosen else None
    return _made(frame, node, name, arguments, _dtype_of_result(frame, node, name, [], inherit), av.Sure.CERTAIN)


def _made(
    frame: Frame, node: ast.Call, name: str, arguments: av.Arguments, dtype: str | None, sure: av.Sure
) -> av.Tensor:
    """The tensor that a function, or a method of the first argument, makes."""
    first, last = arguments.get(0, "input"), name.rpartition(".")[2]
    keeps_shape = _keeps_shape(frame, name, arguments.positional)
    line = isinstance(first, av.Tensor) and first.one_dim and keeps_shape
    made = av.tensor(sure, dtype, _zero_dim(frame, name, arguments), line or _is_line(frame, last, node))
    return replace(made, by_data=True) if keeps_size_by_data(last, arguments.positional, keeps_shape) else made


def _reads_values(frame: Frame, name: str) -> bool:
    """True if the contents of a tensor decide the Python number that a function returns."""
    known = frame.api.operator(name)
    return name in facts.WAITS_FOR_THE_DEVICE or (known is not None and known.reads_values is Often.ALWAYS)


_GRAD_MODES = frozenset({"torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled"})
_PLAIN = (av.Constant, av.Size, av.Unknown, av.Namespace)
_CONSTANT_CALLS = frozenset({"torch.finfo", "torch.iinfo", "torch.device", "torch.get_default_dtype"})


def _literal_dtype(node: ast.Call, arguments: av.Arguments) -> str | None:
    """The dtype class of what is made from Python numbers, as far as the literal shows it."""
    first = arguments.positional[0] if arguments.positional else None
    if isinstance(first, av.Tensor):
        return first.dtype
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("arange", "range"):
        return "float" if float in _types_of_constants(node.args) else "int"
    found = _types_of_constants(node.args[1:2] if ast.unparse(node.func).endswith("full") else node.args[:1])
    return next((kind.__name__ for kind in (float, bool, int) if kind in found), None)


def _types_of_constants(nodes: list[ast.expr]) -> set[type]:
    return {type(n.value) for node in nodes for n in ast.walk(node) if isinstance(n, ast.Constant)}


def _construct_nn(frame: Frame, node: ast.Call, dotted: str, arguments: av.Arguments) -> av.Value:
    made = av.Module(name=dotted)
    if dotted in frame.api.modules_with_parameters:
        frame.emit(EventKind.CONSTRUCT, node, form="module", callee=dotted, operand=made)
    if dotted.endswith((".ModuleList", ".Sequential", ".ModuleDict")):
        parts: tuple[av.Value, ...] = tuple(arguments.positional)
        if len(parts) == 1 and isinstance(parts[0], av.Container):
            parts = parts[0].elements or (av.item_of(parts[0]),)
        elements = tuple(p for p in parts if not isinstance(p, av.Unknown))
        if elements:
            exact = elements if dotted.endswith(".Sequential") and len(elements) == len(parts) else None
            made = replace(made, element=av.join_all(elements), elements=exact)
    return made
