"""The result of a call in plain values: a file of tensors that any process can read without the program's classes."""

from __future__ import annotations

import dataclasses
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import walk_tb
from typing import TYPE_CHECKING

from breakscan.prove.object_walk import PLAIN, Position
from breakscan.prove.outside import OUTSIDE
from breakscan.prove.protocol import Failure, Stage
from breakscan.prove.state import StateSnapshot, digests, plain_copy, same_bits
from breakscan.prove.torch_state import rng_state, wait_for_device

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 300
_FOLDERS = {
    "_inductor": Stage.INDUCTOR,
    "_functorch": Stage.AOT_AUTOGRAD,
}


def failure_of(error: BaseException) -> Failure:
    """The stage, and the exception in one line."""
    inner = getattr(error, "inner_exception", None)
    cause = inner if isinstance(inner, BaseException) else error
    return Failure(_stage(error, cause), one_line(cause), _is_out_of_memory(cause))


def one_line(error: BaseException) -> str:
    """``ValueError: its first line``."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__qualname__
    return (f"{name}: {first}" if first else name)[:LONGEST]


def _is_out_of_memory(error: BaseException) -> bool:
    import torch

    return isinstance(error, (MemoryError, torch.OutOfMemoryError))


def _stage(error: BaseException, cause: BaseException) -> Stage:
    bases = {base.__name__ for base in type(error).__mro__ if base.__module__.startswith("torch.")}
    if "InductorError" in bases:
        return Stage.INDUCTOR
    if "BackendCompilerFailed" in bases:
        return _failing_stage(cause) or Stage.BACKEND
    if type(error).__module__ == "torch._dynamo.exc":
        return Stage.DYNAMO
    return Stage.RUN_TIME


def _failing_stage(error: BaseException) -> Stage | None:
    """The stage whose code is innermost, below other code of torch; None where the innermost code is not torch's."""
    import torch

    root = os.path.dirname(torch.__file__) + os.sep
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(root):
            return None
        part = frame.filename.removeprefix(root).partition(os.sep)[0]
        if part in _FOLDERS:
            return _FOLDERS[part]
    return None


NO_GRADIENT = "no part of the result requires a gradient"


@dataclass(slots=True)
class CallResult:
    """All effects of a call.

    ``outputs``, ``gradients`` and the ``changed`` values of inputs and state are tensors by path.  ``others`` are the
    parts of the result that are not tensors, ``changes`` attributes and items that have another value than before, both
    as text.  ``aliases`` tells which outputs share memory with an input or the state; ``rng`` holds digests.
    ``outside`` is what files and the environment hold after the call, ``printed`` the text that it printed.

    ``error`` is the type of the exception, if there was one, ``error_text`` its message, and ``raised_at`` holds the
    file and line of each of its frames; ``no_backward`` says why there are no gradients.  ``seconds`` and
    ``backward_seconds`` are those of the call and of its backward pass, up to the end of the device's work.
    """

    error: str | None = None
    error_text: str = ""
    raised_at: list[tuple[str, int]] = field(default_factory=list)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, Tensor] = field(default_factory=dict)
    changed: dict[str, Tensor] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    rng: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)
    printed: str = ""
    no_backward: str | None = None
    seconds: float = 0.0
    backward_seconds: float = 0.0


@dataclass(slots=True)
class CallOutcome:
    """The result of a call, and its failure if it failed."""

    result: CallResult
    failure: Failure | None = None


def save_results(results: Sequence[CallResult], path: str) -> None:
    """Writes results to a file."""
    import torch

    names = [one.name for one in dataclasses.fields(CallResult)]
    torch.save([{name: getattr(result, name) for name in names} for result in results], path)


def load_results(path: str) -> list[CallResult]:
    """The results that a worker wrote."""
    import torch

    return [CallResult(**plain) for plain in torch.load(path, map_location="cpu", weights_only=True)]


def leaves(result: object, path: str = "output") -> Iterator[tuple[str, object]]:
    """The parts of a result with their paths: of tuples, lists, dictionaries, dataclasses and plain objects."""
    if isinstance(result, dict):
        # Outputs of transformers are dictionaries, too: their attributes repeat their items.
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


def differentiable(result: object) -> list[Tensor]:
    """The tensors of a result that require a gradient."""
    import torch

    return [leaf for _, leaf in leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def projections(result: object) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of a result that require a gradient, and a fixed random direction for each."""
    import torch

    ends = differentiable(result)
    generator = torch.Generator().manual_seed(20_000)
    directions = []
    for end in ends:
        direction = torch.randn(end.shape, generator=generator, dtype=torch.float64, device="cpu")
        directions.append(direction.to(end.device, end.dtype))
    return ends, directions


def outcome_of(
    call: Callable[[], object], backward: bool, snapshots: Sequence[StateSnapshot], compare_state: bool = True
) -> CallOutcome:
    """Calls, and runs the backward pass if that is wanted and possible.  ``snapshots`` hold the state before."""
    found = CallOutcome(CallResult())
    before = [dict(snapshot.plains) for snapshot in snapshots]
    began = time.perf_counter()
    try:
        returned = call()
    except Exception as error:
        found.result.error, found.result.error_text = type(error).__qualname__, f"{error}"[:500]
        found.result.raised_at = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        found.failure = failure_of(error)
        returned = None
    else:
        wait_for_device()
        found.result.seconds = time.perf_counter() - began
        _note_outputs(found.result, returned, snapshots)
    found.result.rng = digests(rng_state())
    if compare_state:
        files = [file for snapshot in snapshots for file in snapshot.files]
        found.result.printed, found.result.outside = OUTSIDE.changes(files)
        for snapshot, plains in zip(snapshots, before, strict=True):
            _note_changes(found.result, snapshot, plains)
    if found.result.error is None:
        _note_gradients(found, returned, backward, snapshots)
    return found


def _note_outputs(found: CallResult, returned: object, snapshots: Sequence[StateSnapshot]) -> None:
    import torch

    for path, leaf in leaves(returned):
        tensor = _as_tensor(leaf)
        if tensor is None:
            found.others[path] = _as_text(leaf)
            continue
        found.outputs[path] = plain_copy(tensor)
        found.others[path] = "" if isinstance(leaf, torch.Tensor) else type(leaf).__qualname__
        owner = _owner(tensor, snapshots)
        if owner is not None:
            found.aliases[path] = owner


def _as_tensor(leaf: object) -> Tensor | None:
    """The leaf as a tensor, if it is a tensor or an array of numbers."""
    import torch

    if isinstance(leaf, torch.Tensor):
        return leaf
    if type(leaf).__module__ == "numpy" and getattr(getattr(leaf, "dtype", None), "kind", "") in set("biufc"):
        return torch.as_tensor(leaf, device="cpu")
    return None


def _as_text(leaf: object) -> str:
    """Returns the text by which a part that is not a tensor is compared."""
    return repr(leaf) if isinstance(leaf, (*PLAIN, tuple, list)) else type(leaf).__qualname__


def _note_changes(found: CallResult, snapshot: StateSnapshot, before: Mapping[str, object]) -> None:
    now = snapshot.now()
    for path, value in now.values.items():
        # The backward pass comes later.
        if not path.endswith(".grad") and (path not in snapshot.values or not same_bits(value, snapshot.values[path])):
            found.changed[path] = value
    for path in {**before, **now.plains}:
        was, became = before.get(path, _GONE), now.plains.get(path, _GONE)
        if type(was) is not type(became) or (was != became and not (was != was and became != became)):
            moved = f"{became - was:+}" if isinstance(was, Position) and isinstance(became, Position) else repr(became)
            found.changes[path] = "gone" if became is _GONE else moved
    found.changes.update({path: "gone" for path in now.gone if not path.endswith(".grad")})


_GONE = object()


def _note_gradients(found: CallOutcome, returned: object, backward: bool, snapshots: Sequence[StateSnapshot]) -> None:
    """Runs the backward pass.  Where the result has none, the call itself may have run one."""
    if not differentiable(returned):
        found.result.no_backward = NO_GRADIENT if backward else None
    elif not backward or not _run_backward(found, returned):
        return
    for snapshot in snapshots:
        for path, leaf in snapshot.leaves().items():
            if leaf.grad is not None:
                found.result.gradients[path] = plain_copy(leaf.grad)


def _run_backward(found: CallOutcome, returned: object) -> bool:
    """Returns whether it ended."""
    import torch

    ends, directions = projections(returned)
    began = time.perf_counter()
    try:
        torch.autograd.backward(ends, directions)
    except RuntimeError as error:
        found.result.no_backward = f"{type(error).__qualname__}: {error}"[:300]
        found.failure = failure_of(error)
        return False
    wait_for_device()
    found.result.backward_seconds = time.perf_counter() - began
    return True


def _owner(tensor: Tensor, snapshots: Sequence[StateSnapshot]) -> str | None:
    """The path of the input or part of the state whose memory a result shares."""
    storage = _storage(tensor)
    if storage is None:
        return None
    return next(
        (path for snapshot in snapshots for path, own in snapshot.tensors.items() if _storage(own) == storage), None
    )


def _storage(tensor: Tensor) -> int | None:
    """Returns the address of a tensor's memory; None for subclasses that have none."""
    try:
        return int(tensor.untyped_storage().data_ptr()) or None
    except (RuntimeError, NotImplementedError):
        return None
