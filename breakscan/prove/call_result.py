"""The result of a call in plain values."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import walk_tb
from types import FunctionType

from breakscan.prove.outside import OUTSIDE
from breakscan.prove.protocol import Failure, Stage
from breakscan.prove.state import INFERENCE, PLAIN, Position, StateSnapshot, cells_of, digests, plain_copy, slots_of
from breakscan.prove.torch_state import rng_state, torch, wait_for_device

LONGEST = 300


def failure_of(error: BaseException) -> Failure:
    """The stage, and the exception in one line."""
    inner = getattr(error, "inner_exception", None)
    bases = {base.__name__ for base in type(error).__mro__ if base.__module__.startswith("torch.")}
    stage = Stage.DYNAMO if type(error).__module__ == "torch._dynamo.exc" else Stage.RUN_TIME
    for name, its in (("BackendCompilerFailed", Stage.BACKEND), ("InductorError", Stage.INDUCTOR)):
        stage = its if name in bases else stage
    return Failure(stage, one_line(inner if isinstance(inner, BaseException) else error))


def one_line(error: BaseException) -> str:
    """``ValueError: its first line``."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__qualname__
    return (f"{name}: {first}" if first else name)[:LONGEST]


NO_GRADIENT = "no part of the result requires a gradient"
NUMBERS = {kind.__name__: kind for kind in (bool, int, float, complex)}
"""The Python numbers, which are kept as tensors."""
GONE = "gone"
"""The text of what had a value before the call, and has none after it."""


@dataclass(slots=True)
class CallResult:
    """All effects of a call.

    ``outputs``, ``gradients`` and the ``changed`` values of inputs and state are tensors by path, Python numbers among
    them.  ``others`` has each part of the result, in order, and ``changes`` the attributes and items that have another
    value than before, as text: the type of a number or container, empty for a tensor.  ``aliases`` has the input, part
    of the state or earlier output with which an output, or a tensor that the call put into the state, shares memory;
    ``replaced`` are the paths of the state at which there is another tensor or container than before, ``rng`` holds
    digests.  ``outside`` is what files and the environment hold after the call, ``printed`` the text that it printed.

    ``shapes`` are those of the tensors of which only a sample is kept.

    ``error`` is the type of the exception, if there was one, ``error_text`` its message, and ``raised_at`` holds the
    file and line of each of its frames; ``no_backward`` says why there are no gradients.  ``seconds`` and
    ``backward_seconds`` are those of the call and of its backward pass, up to the end of the device's work."""

    error: str | None = None
    error_text: str = ""
    raised_at: list[tuple[str, int]] = field(default_factory=list)
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    strides: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    changed: dict[str, torch.Tensor] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    rng: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)
    printed: str = ""
    no_backward: str | None = None
    seconds: float = 0.0
    backward_seconds: float = 0.0
    failure: Failure | None = None
    sampled: bool = False

    def shape(self, path: str, tensor: torch.Tensor) -> tuple[int, ...]:
        """The shape of the whole tensor at a path."""
        return self.shapes.get(path, tuple(tensor.shape))

    def keep(self, path: str, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy of a tensor, or of a sample of it."""
        kept = sample_of(tensor) if self.sampled else tensor
        if kept is not tensor:
            self.shapes[path] = tuple(tensor.shape)
        return plain_copy(kept)

    def tensors(self) -> list[torch.Tensor]:
        """The tensors that were returned or changed, without Python numbers."""
        held = ((self.others, self.outputs), (self.changes, self.changed))
        return [value for texts, values in held for path, value in values.items() if texts.get(path) not in NUMBERS]


SAMPLE = 2**17
"""Elements of a large tensor that are kept where not all are."""


def sample_positions(count: int) -> torch.Tensor:
    """The numbers of the elements that are kept of so many, the same each time."""
    generator = torch.Generator().manual_seed(count)
    return torch.randint(count, (SAMPLE,), generator=generator, device="cpu")


def sample_of(tensor: torch.Tensor) -> torch.Tensor:
    """Some elements of a large tensor of floats, its largest, smallest and root mean square; another tensor itself."""
    # Those of one byte have no order.
    is_float = tensor.is_floating_point() and tensor.element_size() > 1
    if (
        not is_float
        or tensor.numel() <= 2 * SAMPLE
        or tensor.layout is not torch.strided
        or hasattr(tensor, "full_tensor")
    ):
        return tensor
    flat = tensor.detach().flatten()
    mean = (torch.linalg.vector_norm(flat, dtype=torch.float64) / flat.numel() ** 0.5).to(flat.dtype)
    positions = sample_positions(flat.numel()).to(flat.device)
    return torch.cat([flat[positions], torch.stack([flat.max(), flat.min(), mean])])


def leaves(result: object, path: str = "output", around: tuple[int, ...] = ()) -> Iterator[tuple[str, object]]:
    """A result and its parts by path.  ``around`` has the ids of those that it is in."""
    yield path, result
    inside: Iterable[tuple[str, object]] = ()
    if id(result) in around or isinstance(result, (torch.Tensor, torch.nn.Module, type)):
        # The state has the modules.
        return
    if isinstance(result, dict):
        # Outputs of transformers are dictionaries, too: their attributes repeat their items.
        inside = ((f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[…]", result[key]) for key in result)
    elif isinstance(result, tuple) and hasattr(result, "_fields"):
        inside = ((f"{path}.{name}", value) for name, value in zip(result._fields, result, strict=True))
    elif isinstance(result, (tuple, list, deque)):
        inside = ((f"{path}[{n}]" if path != "output" else f"output {n}", value) for n, value in enumerate(result))
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        inside = ((f"{path}.{one.name}", getattr(result, one.name)) for one in dataclasses.fields(result))
    elif isinstance(result, FunctionType):
        inside = ((f"{path}:{name}", cell.cell_contents) for name, cell in cells_of(result))
    elif type(result).__module__.partition(".")[0] not in ("numpy", "builtins"):
        names = [*getattr(result, "__dict__", {}), *slots_of(type(result))]
        inside = ((f"{path}.{name}", getattr(result, name)) for name in names if hasattr(result, name))
    for name, value in inside:
        yield from leaves(value, name, (*around, id(result)))


def differentiable(result: object) -> list[torch.Tensor]:
    """The tensors of a result that require a gradient."""
    return [leaf for _, leaf in leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


PERIOD = 1_000_003
"""The random numbers of a direction, repeated in a larger one.  No two rows get the same ones: it is a prime."""


def projections(result: object) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The tensors of a result that require a gradient, and a fixed random direction for each."""
    ends = differentiable(result)
    generator = torch.Generator().manual_seed(20_000)
    directions = []
    for end in ends:
        count = end.numel()
        direction = torch.randn(min(count, PERIOD), generator=generator, dtype=torch.float64, device="cpu")
        direction = direction.to(end.device, end.dtype)
        directions.append(direction.repeat(-(-count // PERIOD))[:count].view(end.shape))
    return ends, directions


def result_of(
    call: Callable[[], object],
    backward: bool,
    snapshots: Sequence[StateSnapshot],
    sampled: bool = False,
    with_hooks: bool = False,
    ends: Sequence[str] | None = None,
) -> CallResult:
    """Calls, and runs the backward pass if that is wanted and possible.  ``snapshots`` hold the state before.  If
    ``sampled``, a sample of each large tensor is kept.  ``with_hooks``: what the backward pass changes besides
    gradients, in hooks, counts as changed by the call.  ``ends`` are the parts of the result from which it starts."""
    found = CallResult(sampled=sampled)
    before = [snapshot.plains_now() for snapshot in snapshots]
    reached = [item for snapshot in snapshots for item in reversed(snapshot.tensors.items())]
    owners = {storage: path for path, own in reached if (storage := _storage(own)) is not None}
    began = time.perf_counter()
    try:
        returned = call()
    except Exception as error:
        found.error, found.error_text, found.failure = type(error).__qualname__, f"{error}"[:500], failure_of(error)
        found.raised_at = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        returned = None
    else:
        wait_for_device()
        found.seconds = time.perf_counter() - began
        _note_outputs(found, returned, reached, owners)
        returned = returned if ends is None else [dict(leaves(returned)).get(path) for path in ends]
    found.rng = digests(rng_state())
    if found.error is None and with_hooks:
        _note_gradients(found, returned, backward, snapshots)
    found.printed, found.outside = OUTSIDE.changes([file for snapshot in snapshots for file in snapshot.files])
    passed: dict[int, torch.Tensor | None] = {}
    for snapshot, plains in reversed(list(zip(snapshots, before, strict=True))):
        # The state may be that of a later call: what is passed had the values of the inputs.
        values = _note_changes(found, snapshot, plains, owners, passed)
        passed = {id(one): values.get(path) for path, one in snapshot.tensors.items()}
    if found.error is None and not with_hooks:
        _note_gradients(found, returned, backward, snapshots)
    return found


def _note_outputs(
    found: CallResult, returned: object, reached: Sequence[tuple[str, torch.Tensor]], owners: dict[int, str]
) -> None:
    ids = {id(own): path for path, own in reached}
    for path, leaf in leaves(returned):
        if isinstance(leaf, int) and leaf in ids:
            # It is another one in each process.
            found.others[path] = f"id({ids[leaf]})"
            continue
        tensor = as_tensor(leaf)
        found.others[path] = _as_text(leaf) if tensor is None else type(leaf).__qualname__
        if tensor is None:
            continue
        found.outputs[path] = found.keep(path, tensor)
        if not isinstance(leaf, torch.Tensor):
            continue
        found.others[path] = "" if type(leaf) in (torch.Tensor, torch.nn.Parameter) else type(leaf).__qualname__
        if tensor.is_inference():
            found.changes[f"{path}{INFERENCE}"] = "True"
        if tensor.layout is torch.strided and tensor.numel():
            strides = zip(tensor.shape, tensor.stride(), strict=True)
            found.strides[path] = str([stride for size, stride in strides if size > 1])
        storage = _storage(tensor)
        if storage in owners:
            found.aliases[path] = owners[storage]
        elif storage is not None:
            owners[storage] = path


def as_tensor(leaf: object) -> torch.Tensor | None:
    """A value as a tensor, if it is a tensor, an array of numbers or a number."""
    if isinstance(leaf, torch.Tensor):
        return leaf
    if type(leaf) in NUMBERS.values():
        dtype = {float: torch.float64, complex: torch.complex128}.get(type(leaf))
        # An integer may be too large.
        with contextlib.suppress(RuntimeError, OverflowError):
            return torch.tensor(leaf, dtype=dtype, device="cpu")
    if type(leaf).__module__ == "numpy" and getattr(getattr(leaf, "dtype", None), "kind", "") in set("biufc"):
        return torch.as_tensor(leaf, device="cpu")
    return None


def _as_text(leaf: object) -> str:
    """The text by which a part that is not a tensor is compared."""
    if isinstance(leaf, (dict, set, frozenset)):
        # The order of a set differs between processes.
        texts = map(_as_text, leaf) if isinstance(leaf, dict) else sorted(map(_as_text, leaf))
        return f"{type(leaf).__qualname__} of {', '.join(texts)}"
    return repr(leaf) if isinstance(leaf, PLAIN) else type(leaf).__qualname__


def _note_changes(
    found: CallResult,
    snapshot: StateSnapshot,
    before: Mapping[str, object],
    owners: Mapping[int, str],
    passed: Mapping[int, torch.Tensor | None],
) -> Mapping[str, torch.Tensor]:
    now = snapshot.now(gradients=False)
    known = {path: id(one) for path, one in snapshot.tensors.items() if path not in now.bound and id(one) in passed}
    values = {path: value for path, value in now.values.items() if path not in known}
    values |= {path: value for path, one in known.items() if (value := passed[one]) is not None}
    found.changed |= {path: found.keep(path, value) for path, value in values.items()}
    owned = {path: owners.get(_storage(tensor) or 0) for path, tensor in now.bound.items()}
    found.aliases |= {path: owner for path, owner in owned.items() if owner is not None}
    for path in {**before, **now.plains}:
        was, became = before.get(path, ...), now.plains.get(path, ...)
        if type(was) is type(became) and (was == became or (was != was and became != became)):
            continue
        found.changes[path] = GONE if became is ... else repr(became)
        if isinstance(was, Position) and isinstance(became, Position):
            found.changes[path] = f"{became - was:+}"
        elif (number := as_tensor(became)) is not None:
            found.changed[path], found.changes[path] = number, type(became).__qualname__
    found.changes.update(dict.fromkeys(now.gone, GONE))
    found.replaced |= now.replaced
    return values


def _note_gradients(found: CallResult, returned: object, backward: bool, snapshots: Sequence[StateSnapshot]) -> None:
    """Runs the backward pass.  Where the result has none, the call itself may have run one."""
    if not differentiable(returned):
        found.no_backward = NO_GRADIENT if backward else None
    elif not backward:
        return
    else:
        ends, directions = projections(returned)
        began = time.perf_counter()
        try:
            torch.autograd.backward(ends, directions)
        except RuntimeError as error:
            found.no_backward, found.failure = f"{type(error).__qualname__}: {error}"[:300], failure_of(error)
            return
        wait_for_device()
        found.backward_seconds = time.perf_counter() - began
    for snapshot in snapshots:
        for path, leaf in snapshot.leaves().items():
            if leaf.grad is not None:
                found.gradients[path] = found.keep(path, leaf.grad)


def _storage(tensor: torch.Tensor) -> int | None:
    """Returns the address of a tensor's memory; None for subclasses that have none."""
    try:
        return int(tensor.untyped_storage().data_ptr()) or None
    except (RuntimeError, NotImplementedError):
        return None
