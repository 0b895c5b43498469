"""What a call came to, flat and plain: a file of tensors that any process can read without the program's classes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from breakscan.worker.compile_failure import failure_of
from breakscan.worker.state_snapshot import PLAIN, digest, plain_copy, rng_state


@dataclass(slots=True)
class CallResult:
    """``outputs``, ``gradients`` and what is ``changed`` of inputs and state are tensors by their paths; ``others`` are
    the parts of the result that are no tensors, ``changes`` attributes and items that are other than before, both as
    text; ``aliases`` tells which outputs share memory with an input or the state; ``rng`` holds digests.  ``error`` is
    the type of the exception where there was one, ``error_text`` what it says, ``failed`` in which stage it came up
    and the exception in one line; of the way back as well.  ``seconds`` are those of the call and of going back, up to
    the device's end."""

    error: str | None = None
    error_text: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    rng: dict[str, str] = field(default_factory=dict)
    no_backward: str | None = None
    failed: tuple[str, str] | None = None
    seconds: float = 0.0
    backward_seconds: float = 0.0

    def plain(self) -> dict[str, Any]:
        """As a dictionary of dictionaries, text and tensors."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}


def leaves(result: Any, path: str = "output") -> Iterator[tuple[str, Any]]:
    """The parts of a result with their paths: of tuples, lists, dictionaries, dataclasses and plain objects."""
    if isinstance(result, dict):
        # Of the outputs of transformers, too: what they hold beside their items is the same again.
        for key, value in result.items():
            yield from leaves(value, f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[…]")
    elif isinstance(result, tuple) and hasattr(result, "_fields"):
        for name in result._fields:
            yield from leaves(getattr(result, name), f"{path}.{name}")
    elif isinstance(result, (tuple, list)):
        if not result:
            yield path, type(result)()
        for number, value in enumerate(result):
            yield from leaves(value, f"{path}[{number}]" if path != "output" else f"output {number}")
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        for one in dataclasses.fields(result):
            yield from leaves(getattr(result, one.name), f"{path}.{one.name}")
    elif type(result).__module__.partition(".")[0] not in ("torch", "numpy", "builtins") and hasattr(
        result, "__dict__"
    ):
        for name, value in vars(result).items():
            yield from leaves(value, f"{path}.{name}")
    else:
        yield path, result


def as_tensor(leaf: Any) -> Any:
    """The leaf as a tensor, where it is one or an array of numbers; else None."""
    import torch

    if isinstance(leaf, torch.Tensor):
        return leaf
    if type(leaf).__module__ == "numpy" and getattr(getattr(leaf, "dtype", None), "kind", "") in set("biufc"):
        return torch.as_tensor(leaf, device="cpu")
    return None


def told(leaf: Any) -> str:
    """What is compared of a part that is no tensor."""
    return repr(leaf) if isinstance(leaf, (*PLAIN, tuple, list)) else type(leaf).__qualname__


def projections(result: Any) -> tuple[list[Any], list[Any]]:
    """The tensors of a result through which one can go back, and a fixed random direction for each."""
    import torch

    ends = [leaf for _, leaf in leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    generator = torch.Generator().manual_seed(20_000)
    directions = []
    for end in ends:
        direction = torch.randn(end.shape, generator=generator, dtype=torch.float64, device="cpu")
        directions.append(direction.to(end.device, end.dtype))
    return ends, directions


def outcome_of(
    call: Callable[[], Any], backward: bool, mementos: tuple[Any, ...], compare_state: bool = True
) -> CallResult:
    """Calls, and goes back through the result where that is wanted and can be; says all that it came to.  ``mementos``
    hold what was there before."""
    import torch

    found = CallResult()
    before = [dict(memento.plains) for memento in mementos]
    began = time.perf_counter()
    try:
        result = call()
    except Exception as error:
        found.error, found.error_text = type(error).__qualname__, f"{error}"[:500]
        found.failed = failure_of(error)
        result = None
    else:
        wait_for_device()
        found.seconds = time.perf_counter() - began
        for path, leaf in leaves(result):
            tensor = as_tensor(leaf)
            if tensor is None:
                found.others[path] = told(leaf)
            else:
                found.outputs[path] = plain_copy(tensor)
                found.others[path] = "" if isinstance(leaf, torch.Tensor) else type(leaf).__qualname__
                owner = _owner(tensor, mementos)
                if owner is not None:
                    found.aliases[path] = owner
    found.rng = {name: digest(state) for name, state in rng_state().items()}
    for memento in mementos if compare_state else ():
        for path, value in memento.now().items():
            if not path.endswith(".grad") and digest(value) != digest(memento.values[path]):
                found.changed[path] = value
    if compare_state:
        _note_changes(found, mementos, before)
    if backward and found.error is None:
        _go_back(found, result, mementos)
    return found


def _go_back(found: CallResult, result: Any, mementos: tuple[Any, ...]) -> None:
    import torch

    ends, directions = projections(result)
    if not ends:
        found.no_backward = "no part of the result requires a gradient"
        return
    began = time.perf_counter()
    try:
        torch.autograd.backward(ends, directions)
    except RuntimeError as error:
        found.no_backward = f"{type(error).__qualname__}: {error}"[:300]
        found.failed = failure_of(error)
        return
    wait_for_device()
    found.backward_seconds = time.perf_counter() - began
    for memento in mementos:
        for path, leaf in memento.leaves().items():
            if leaf.grad is not None:
                found.gradients[path] = plain_copy(leaf.grad)


def wait_for_device() -> None:
    """Until all that was handed to CUDA devices is done."""
    import torch

    cuda: Any = torch.cuda
    if cuda.is_initialized():
        cuda.synchronize()


def _note_changes(found: CallResult, mementos: tuple[Any, ...], before: list[dict[str, Any]]) -> None:
    for memento, plains in zip(mementos, before, strict=True):
        now = memento.plains_now()
        for path in {**plains, **now}:
            was, became = plains.get(path, _GONE), now.get(path, _GONE)
            if type(was) is not type(became) or (was != became and not (was != was and became != became)):
                found.changes[path] = "gone" if became is _GONE else repr(became)


_GONE = object()


def _owner(tensor: Any, mementos: tuple[Any, ...]) -> str | None:
    """The input or part of the state that a result shares its memory with."""
    storage = _storage(tensor)
    if storage is None:
        return None
    return next(
        (path for memento in mementos for path, own in memento.tensors.items() if _storage(own) == storage), None
    )


def _storage(tensor: Any) -> int | None:
    """The address of its memory; None where it has none of its own, as some subclasses."""
    try:
        return int(tensor.untyped_storage().data_ptr()) or None
    except (RuntimeError, NotImplementedError):
        return None
