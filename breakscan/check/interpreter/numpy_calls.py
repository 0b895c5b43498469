"""Evaluates calls of NumPy's functions, and of the methods of arrays, which Dynamo traces as operations of torch."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.call_event import emit_call
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.joins import item_of
from breakscan.check.interpreter.skipped_calls import emit_skippable
from breakscan.check.interpreter.values import (
    CONSTANT,
    UNKNOWN,
    ArrayNumber,
    Constant,
    Container,
    Instance,
    Namespace,
    PythonValue,
    Size,
    Sure,
    Tensor,
    TensorNumber,
    Unknown,
    Value,
    array,
    container_of,
    elements_of,
)
from breakscan.model.findings import Mode
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts.not_measured import FIND_INDICES
from breakscan.rulebook.torch_facts.numpy_functions import NumpyFunction, OfNumbers, Returned, numpy_function
from breakscan.rulebook.torch_facts.table import DTYPE_CLASS

NO_COUNTERPART = "no-counterpart"
_REDUCE_UNTRACED = "numpy.nan"
"""What Dynamo does not trace and what mostly gives a number of NumPy, which it traces from there on."""
_OBJECTS = {
    "numpy.random.default_rng": "numpy.random.Generator",
    "numpy.random.RandomState": "numpy.random.RandomState",
    "numpy.random.SeedSequence": "numpy.random.SeedSequence",
}


def numpy_call(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments) -> Value:
    """The result of ``numpy.<name>(...)``."""
    if frame.program.mode is Mode.EXPORT:
        return _run_by_an_export(frame, node, dotted, arguments)
    known = numpy_function(frame.api.version, dotted.removeprefix("numpy."))
    untraced = known is not None and (known.returned is Returned.UNTRACED or _makes_objects(frame, node))
    if known is None:
        emit_skippable(frame, node, dotted, arguments)
    else:
        emit_call(frame, node, dotted, arguments, Sure.CERTAIN, NO_COUNTERPART if untraced else "")
    if dotted.startswith("numpy.random."):
        frame.saw_tensor = True  # Dynamo takes what is drawn for a tensor
    if dotted in _OBJECTS:
        return Instance(name=_OBJECTS[dotted])
    if known is None or untraced or dotted.startswith("numpy.random."):  # a number that is drawn is read at once
        frame.program.pass_callables(frame, node, arguments.values())
        return ArrayNumber(Sure.LIKELY) if dotted.startswith(_REDUCE_UNTRACED) else UNKNOWN
    if dotted in FIND_INDICES and len(arguments.values()) == 1:
        return container_of(array(arguments.values()[0].sure, "int", one_dim=True))
    return _result(frame, node, known, arguments, list(node.args))


def _run_by_an_export(frame: Frame, node: ast.Call, dotted: str, arguments: Arguments) -> Value:
    """A plain export runs NumPy itself: what is no tensor of torch stays what it is."""
    is_given_tensor = any(
        isinstance(part, Tensor) for value in arguments.values() for part in (value, *(elements_of(value) or ()))
    )
    draws = dotted.startswith("numpy.random.")
    if is_given_tensor or draws:
        emit_call(frame, node, dotted, arguments, Sure.CERTAIN)
    if dotted in _OBJECTS:
        return Instance(name=_OBJECTS[dotted])
    frame.program.pass_callables(frame, node, arguments.values())
    return UNKNOWN if is_given_tensor else CONSTANT


def _makes_objects(frame: Frame, node: ast.Call) -> bool:
    """Whether an array is made of Python's objects or texts, which torch has no dtype for."""
    asked = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    if asked:
        return frame.index.dotted(asked[0]) in ("object", "str")
    given = node.args[0] if node.args else None
    return isinstance(given, ast.List) and any(
        isinstance(part, ast.Constant) and (part.value is None or isinstance(part.value, str)) for part in given.elts
    )


def array_method(frame: Frame, node: ast.Call, owner: Tensor, name: str, arguments: Arguments) -> Value:
    """The result of a method of an array."""
    if name in ("item", "tolist"):
        frame.emit(EventKind.CONVERT, node, form=name, operand=owner, sure=owner.sure)
        return container_of(TensorNumber(owner.sure)) if name == "tolist" else TensorNumber(owner.sure)
    given = arguments.with_receiver(owner)
    known = numpy_function(frame.api.version, f"ndarray.{name}")
    untraced = known is not None and known.returned is Returned.UNTRACED
    callee = f"torch.Tensor.{name}" if name in frame.api.methods else f"numpy.ndarray.{name}"
    emit_call(frame, node, callee, given, owner.sure, NO_COUNTERPART if untraced else "")
    if known is None or untraced:
        return UNKNOWN
    nodes = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    if name == "astype":
        return array(owner.sure, _dtype_asked(frame, node, 0), owner.zero_dim, owner.one_dim)
    return _result(frame, node, known, given, [*nodes, *node.args])


def array_number_method(frame: Frame, node: ast.Call, owner: ArrayNumber, name: str, arguments: Arguments) -> Value:
    """The result of a method of a number that NumPy computed, and that Dynamo knows."""
    if name == "item":
        return CONSTANT
    if name == "astype":
        dtype = _dtype_asked(frame, node, 0)
        return owner if dtype == "float" else array(owner.sure, dtype, zero_dim=True)
    return array_method(frame, node, array(owner.sure, "float", zero_dim=True), name, arguments)


def _result(frame: Frame, node: ast.Call, known: NumpyFunction, arguments: Arguments, nodes: list[ast.expr]) -> Value:
    if known.returned is Returned.PYTHON:
        return CONSTANT
    given = arguments.values()
    sure = Sure.LIKELY if any(isinstance(value, Unknown | Namespace) for value in given) else Sure.CERTAIN
    tensors = [value for value in given if isinstance(value, Tensor)]
    if tensors:
        sure = min(value.sure for value in tensors)
    dtype = _dtype_asked(frame, node, 1) or known.dtype_class(_dtype_given(given))
    if known.returned is Returned.ARRAYS:
        return container_of(array(sure, dtype))
    if known.whole and len(given) == 1:  # a list of numbers more often than one of them
        return array(sure, dtype, zero_dim=True)
    alone = all(isinstance(value, PythonValue | Unknown | Namespace) for value in given)
    if given and alone:
        return _of_numbers(known, given, nodes, sure, dtype)
    numbers = bool(given) and all(isinstance(v, PythonValue) or (isinstance(v, Tensor) and v.zero_dim) for v in given)
    elementwise = OfNumbers.ARRAY not in (known.of_integers, known.of_floats)
    return array(sure, dtype, True if numbers and elementwise else None)


def _of_numbers(
    known: NumpyFunction, given: list[Value], nodes: list[ast.expr], sure: Sure, dtype: str | None
) -> Value:
    """What a call with numbers gives; one that may give a number that Dynamo knows is taken for one that does."""
    found = {known.of_integers} if _are_integers(given, nodes) else {known.of_integers, known.of_floats}
    if OfNumbers.KNOWN in found:
        return ArrayNumber(sure)
    if OfNumbers.READ in found:
        return array(sure, dtype, zero_dim=True)
    return array(sure, dtype) if OfNumbers.ARRAY in found or known.dtypes != "..." else UNKNOWN


def _are_integers(given: list[Value], nodes: list[ast.expr]) -> bool:
    if any(isinstance(inner, ast.Div) for node in nodes for inner in ast.walk(node)):
        return False
    return all(isinstance(v, Size) or (isinstance(v, Constant) and isinstance(v.literal, int)) for v in given)


def _dtype_asked(frame: Frame, node: ast.Call, position: int) -> str | None:
    """The dtype class that ``dtype=`` or the argument of ``astype`` names."""
    asked = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    if not asked and position == 0:
        asked = node.args[:1]
    if not asked:
        return None
    one = asked[0]
    name = one.value if isinstance(one, ast.Constant) else (frame.index.dotted(one) or "").rpartition(".")[2]
    return DTYPE_CLASS.get(str(name))


def _dtype_given(given: list[Value]) -> str | None:
    """The dtype class of the arrays given, or of the sizes and lists of whole numbers."""
    classes = set()
    for value in given:
        inner = item_of(value) if isinstance(value, Container) else value
        if isinstance(inner, Tensor):
            classes.add(inner.dtype)
        elif isinstance(inner, Size):
            classes.add("int")
    return classes.pop() if len(classes) == 1 else None
