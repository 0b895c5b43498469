"""What two calls in a row do: everything that a user of the program could see, by kind."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import logging
import random
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from types import CodeType, FrameType, ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from benchmarks.rewrite_fuzzer.effects import CALLS
from benchmarks.rewrite_fuzzer.inputs import arguments

Outcome = dict[str, Any]
"""What was seen, by kind: ``exception``, ``value``, ``dtype``, ``shape``, ``gradient``, ``input``, ``state`` ..."""
Line = tuple[str, int]
"""A file and a line of it."""
RAISED = "raised in the {} call"
"""Where an outcome has the exceptions of a call, which are compared by their types alone, and only if it ends so."""
ATTRIBUTES = ("kept", "steps", "rate", "freq", "far", "short")
"""What the model of a program may hold, besides what it logs."""

OF_TORCH = ("Converting a tensor with requires_grad=True to a scalar", "Triggered internally at")
"""Texts in the warnings of PyTorch itself: the rewrites do not keep them."""


@lru_cache(maxsize=4)
def _compiled(text: str, filename: str) -> CodeType:
    return compile(text, filename, "exec", dont_inherit=True)


def load(text: str, name: str) -> ModuleType:
    """The module of a text.  Raises what its top level raises."""
    module = ModuleType(name)
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    sys.modules[name] = module
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of shrunk programs
        exec(_compiled(text, filename), module.__dict__)
    return module


def outcomes(
    text: str, name: str, wanted: Collection[str] | None = None, *, may_fail: bool = False
) -> dict[str, Outcome]:
    """The outcomes for the wanted pairs of arguments (None: all); the program is loaded again for each.

    An exception at its top level counts as one of the first call if ``may_fail``.  Raises it otherwise.
    """
    found = {}
    torch.set_warn_always(True)
    for label, given in arguments():
        if (wanted is not None and label not in wanted) or (
            "torch.FloatTensor" in text and not given[0].is_floating_point()
        ):
            continue
        try:
            module = load(text, name)
        except Exception as error:
            if not may_fail:
                raise
            found[label] = _failure(error)
            continue
        found[label] = _outcome(module, given, catches="except" in text or "suppress(" in text)
    return found


def _failure(error: Exception) -> Outcome:
    kind = type(error).__name__
    first, second = CALLS
    return {
        f"exception of the {first} call": kind,
        RAISED.format(first): ((kind, str(error)),),
        RAISED.format(second): (),
    }


def _outcome(module: ModuleType, given: tuple[Tensor, Tensor], *, catches: bool) -> Outcome:
    for one in given:
        if one.requires_grad and not one.is_leaf:
            one.retain_grad()
    outcome = outcome_of_calls(lambda: module.f(*given), given, {f"<{module.__name__}>"} if catches else ())
    for name, one in zip("xy", given, strict=True):
        describe_input(outcome, name, one)
    outcome["state COUNT"] = repr(getattr(module, "COUNT", None))
    outcome["state TABLE"] = len(getattr(module, "TABLE", ()))
    # A shrunk program may have no model.
    model = getattr(module, "model", None)
    if isinstance(model, torch.nn.Module):
        _describe_model(outcome, model)
    return outcome


def outcome_of_calls(
    function: Callable[[], Any], given: Sequence[Tensor], noted: Collection[str], executed: set[Line] | None = None
) -> Outcome:
    """What two calls return, raise, print and draw.

    In code of the ``noted`` files, exceptions that are caught count, too, and ``executed`` collects the lines that run.
    """
    outcome: Outcome = {}
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    for call in CALLS:
        shown = io.StringIO()
        raised: list[BaseException] = []
        with _captured(shown), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                with tracing(noted, raised, executed) if noted else contextlib.nullcontext():
                    result: Any = function()
            except Exception as error:
                outcome[f"exception of the {call} call"] = type(error).__name__
                raised = [one for one in raised if one is not error] + [error]
                result = None
        outcome[RAISED.format(call)] = tuple((type(one).__name__, str(one)) for one in raised)
        outcome[f"output of the {call} call"] = shown.getvalue()
        about = {one.category.__name__ for one in warned if not any(text in str(one.message) for text in OF_TORCH)}
        outcome[f"warnings of the {call} call"] = sorted(about)
        _describe(outcome, f"{call} result", result, given)
    outcome["generator"] = torch.get_rng_state().sum().item()
    outcome["generator of Python"] = hash(repr(random.getstate()))
    numbers: Any = np.random.get_state()
    outcome["generator of NumPy"] = hash((numbers[1].tobytes(), numbers[2]))
    return outcome


def describe_input(outcome: Outcome, name: str, given: Tensor) -> None:
    """Adds what the calls have made of an input."""
    outcome[f"input {name}"] = values(given)
    outcome[f"input {name} requires_grad"] = given.requires_grad
    outcome[f"input {name} attributes"] = sorted(vars(given))
    grad = given.grad if given.is_leaf or given.retains_grad else None
    outcome[f"gradient of {name}"] = None if grad is None else unsigned_zeros(grad)


@contextlib.contextmanager
def tracing(files: Collection[str], raised: list[BaseException], executed: set[Line] | None = None) -> Iterator[None]:
    """Collects the exceptions that pass through code of the files, also those that it catches, and which lines run."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call":
            if frame.f_code.co_filename not in files:
                return None
            frame.f_trace_lines = executed is not None
        if event in ("call", "line") and executed is not None:
            executed.add((frame.f_code.co_filename, frame.f_lineno))
        if event == "exception" and isinstance(argument[1], Exception) and argument[0] is not StopIteration:
            raised[:] = [*(one for one in raised if one is not argument[1]), argument[1]]
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def _captured(shown: io.StringIO) -> Iterator[None]:
    """Collects what is printed and logged, and counts the reads of the clock instead of the time.

    What goes to standard error is dropped: torch writes there what went wrong inside of a ``torch.cond``.
    """
    handler = logging.StreamHandler(shown)
    log = logging.getLogger("program")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers = [handler]
    ticks = itertools.count(0.0)
    with (
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(io.StringIO()),
        mock.patch("time.time", ticks.__next__),
    ):
        yield


def _describe_model(outcome: Outcome, model: torch.nn.Module) -> None:
    outcome["state reads"] = len(getattr(model, "reads", ()))
    outcome["state count"] = repr(getattr(type(model), "count", None))
    for name in ATTRIBUTES:
        held = getattr(model, name, None)
        outcome[f"type of the attribute {name}"] = type(held).__name__
        outcome[f"state {name}"] = _shown(held)
    outcome["state log"] = [values(one) for one in getattr(model, "log", ()) if isinstance(one, Tensor)]
    outcome["state dict"] = sorted(model.state_dict())
    weight = getattr(model, "weight", None)
    grad = weight.grad if isinstance(weight, Tensor) else None
    outcome["gradient of weight"] = None if grad is None else unsigned_zeros(grad)


def _describe(outcome: Outcome, name: str, result: Any, given: Sequence[Tensor]) -> None:
    parts, structure = tree_flatten(result)
    outcome[f"type of {name}"] = [str(structure), *(type(one).__name__ for one in parts)]
    tensors = [one for one in parts if isinstance(one, Tensor)]
    outcome[f"value of {name}"] = [_shown(one) for one in parts]
    outcome[f"dtype of {name}"] = [str(one.dtype) for one in tensors]
    outcome[f"shape of {name}"] = [tuple(one.shape) for one in tensors]
    outcome[f"strides of {name}"] = [_strides(one) for one in tensors]
    outcome[f"requires_grad of {name}"] = [one.requires_grad for one in tensors]
    pointers = [one.untyped_storage().data_ptr() for one in (*given, *tensors) if one.numel() and _is_strided(one)]
    outcome[f"aliasing of {name}"] = [pointers.index(one) for one in pointers]
    wanted = [_real(one) for one in tensors if one.requires_grad]
    if wanted:
        try:
            torch.stack([one.double().sum() for one in wanted]).sum().backward(retain_graph=True)
        except Exception as error:
            outcome[f"backward of {name}"] = type(error).__name__


def _shown(value: Any) -> Any:
    """A value without its address and the name of its module."""
    if isinstance(value, Tensor):
        return values(value)
    plain = value is None or isinstance(value, bool | int | float | complex | str)
    return repr(value) if plain else f"{type(value).__name__} {getattr(value, '__name__', '')}"


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _strides(tensor: Tensor) -> tuple[int, ...]:
    """The strides that matter: those of dimensions with more than one element."""
    if tensor.numel() < 2 or not _is_strided(tensor):
        return ()
    return tuple(stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)


def values(tensor: Tensor) -> Any:
    """The bits of a tensor, in which all NaN are one."""
    if not _is_strided(tensor):
        return [str(tensor.layout), *values(tensor.detach().to_dense())]
    if _is_freed(tensor):
        return ["freed"]
    plain = _real(tensor.detach().as_subclass(Tensor)).contiguous().clone()
    if plain.is_floating_point():
        wide = plain.double()
        return [("nan" if one != one else (one, str(one)[0] == "-")) for one in wide.flatten().tolist()]
    return plain.flatten().tolist()


def _is_strided(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided


def _is_freed(tensor: Tensor) -> bool:
    """Whether the storage was made smaller than the tensor, as code does that saves memory: to read it may crash."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size() if tensor.numel() else 0
    return tensor.untyped_storage().nbytes() < needed


def unsigned_zeros(gradient: Tensor) -> Any:
    """The bits of a gradient, but for the sign of zeros: a sum of gradients does not keep it."""
    return values(gradient if not _is_strided(gradient) or _is_freed(gradient) else gradient + 0.0)


def difference_kinds(before: Outcome, after: Outcome) -> dict[str, tuple[Any, Any]]:
    """What differs, by kind: exceptions first, for all else follows from them."""
    keys = sorted({**before, **after}, key=lambda kind: not kind.startswith("exception"))
    keys = [key for key in keys if not key.startswith("raised")]
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}
