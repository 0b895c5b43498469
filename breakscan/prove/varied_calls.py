"""Runs the captured calls with what the program may give them elsewhere: other values, sizes, numbers, flags, modes and
attributes, and what its later calls have."""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import math
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import FrameType
from typing import Any

from breakscan.model.words import grouped
from breakscan.prove.call_result import CallResult
from breakscan.prove.call_runs import Reference, put_back, run_call, unloaded_time
from breakscan.prove.capture import OBJECT, Capture, CapturedCall, CapturedCallable, objects_of
from breakscan.prove.equal import NOTED, Expected, ResultDifference, has_information
from breakscan.prove.overlay import ExecutedCode
from breakscan.prove.protocol import RanCode, Variation, VariedCall
from breakscan.prove.state import StateSnapshot, digest, is_number, read_file, write_file
from breakscan.prove.torch_state import Modes, as_if_compiling, eager_stance, torch


class TimeLimitReached(BaseException):
    """The time is up, or would be. No ``except Exception`` of the program catches it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitReached in the block after some seconds, as soon as Python code runs.  It is for the main thread,
    which serves the parent: only that gets signals."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimitReached

    handler = signal.signal(signal.SIGALRM, stop)
    # A program may have set a timer of its own.
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


_FLOATS: Mapping[Variation, Callable[[torch.Tensor, torch.finfo], torch.Tensor]] = {
    Variation.NEGATED: lambda value, _: -value,
    Variation.ZERO: lambda value, _: _in_turn(value, (0.0, -0.0)),
    Variation.EXTREME: lambda value, limits: _in_turn(value, (limits.max, limits.min)),
    Variation.INFINITE: lambda value, _: _with_ends(value, math.inf, -math.inf),
    Variation.NAN: lambda value, _: _with_ends(value, math.nan),
    Variation.COARSE: lambda value, _: (value * 8).round() / 8,
    Variation.SMALL: lambda value, _: value / 64,
    Variation.LARGE: lambda value, limits: (value * 16).clamp(limits.min, limits.max),
    # Values of both signs get one, those of one get both.
    Variation.SHIFTED: lambda value, _: value - (value.min() if value.min() < 0 < value.max() else value.mean()),
}
VALUES = (Variation.PERMUTED, *_FLOATS)
SIZES = (Variation.MORE, Variation.LESS, Variation.ONE, Variation.EMPTY)
MOST_OF_A_KIND = 12
MOST_MIXED = 32


def varied_values(inputs: StateSnapshot, kind: Variation, at: str = "") -> dict[str, torch.Tensor]:
    """The values that change, by path; none where this variation changes nothing.  ``at`` is the dimension of a size,
    with the path of a tensor that keeps its own, or the only path, or a number."""
    # Classes of inputs hold values, too.
    own = {path: value for path, value in inputs.data.items() if path.startswith(("args[", "kwargs["))}
    if kind in SIZES:
        dim, _, kept = at.partition(" ")
        return _other_sizes({path: own[path] for path in own if path in inputs.tensors}, kind, int(dim), kept)
    wanted = {at: own[at]} if at in own else own
    others = {path: other_values(value, kind, at) for path, value in wanted.items() if value.numel()}
    return {path: it for path, it in others.items() if it is not None and digest(it) != digest(own[path])}


def _other_sizes(own: Mapping[str, torch.Tensor], kind: Variation, dim: int, kept: str) -> dict[str, torch.Tensor]:
    """The tensors that have the size of the first one in a dimension, with another one."""
    size = next((value.shape[dim] for value in own.values() if value.ndim > dim), 0)
    other = {Variation.MORE: size + 1, Variation.LESS: size - 1, Variation.ONE: 1, Variation.EMPTY: 0}[kind]
    # In fewer than three, one less is one.
    if not size or other < (kind is not Variation.EMPTY) or (kind is Variation.ONE and size < 3):
        return {}
    found = {}
    for path, value in own.items():
        if value.ndim > dim and value.shape[dim] == size and path != kept:
            more = value.narrow(dim, 0, 1)
            found[path] = torch.cat([value, more], dim) if other > size else value.narrow(dim, 0, other).clone()
    return found


SEED = 20_000
"""Of the first permutation, which is the same in all processes."""


def other_values(value: torch.Tensor, kind: Variation, at: str = "") -> torch.Tensor | None:
    """Another value for a tensor; None where there is none for its dtype.

    Integers and bools may be indices and masks: with most kinds they stay as they are, so that floating-point values
    reach all of the code."""
    if kind in (Variation.PERMUTED, Variation.MIXED):
        generator = torch.Generator().manual_seed(SEED + int(at or 0))
        order = torch.randperm(value.numel(), generator=generator, device="cpu")
        return value.flatten()[order].view(value.shape)
    if value.dtype is torch.bool:
        flags = {Variation.BELOW: False, Variation.ABOVE: True}
        return torch.full_like(value, flags[kind]) if kind in flags else None
    if value.dtype.is_complex and kind in _FLOATS:
        return torch.view_as_complex(_of_floats(torch.view_as_real(value), kind))
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return _of_floats(value, kind) if kind in _FLOATS else None
    return _of_integers(value, kind, bool(at))


def _of_floats(value: torch.Tensor, kind: Variation) -> torch.Tensor:
    # Not every operator knows the narrow types.
    wide = value.to(torch.float64, copy=True)
    return _FLOATS[kind](wide, torch.finfo(value.dtype)).view(value.shape).to(value.dtype)


def _with_ends(value: torch.Tensor, first: float, last: float | None = None) -> torch.Tensor:
    flat = value.flatten()
    flat[-1] = flat[-1] if last is None else last
    flat[0] = first
    return flat


def _of_integers(value: torch.Tensor, kind: Variation, alone: bool) -> torch.Tensor | None:
    limits, lowest, highest = torch.iinfo(value.dtype), int(value.min()), int(value.max())
    if kind is Variation.NEGATED and alone and limits.min:
        return value - (lowest + highest + 1) // 2
    if kind is Variation.ZERO:
        return torch.zeros_like(value).clamp(lowest, highest)
    if kind is Variation.BELOW:
        return _in_turn(value, (max(lowest - 1, limits.min), None))
    return _in_turn(value, (min(highest + 1, limits.max), None)) if kind is Variation.ABOVE else None


def _in_turn(value: torch.Tensor, cycle: Sequence[float | None]) -> torch.Tensor:
    """The elements replaced by these numbers in turn, over and over; with None, an element stays."""
    position = torch.arange(value.numel(), device="cpu").view(value.shape) % len(cycle)
    found = value.clone()
    for turn, number in enumerate(cycle):
        if number is not None:
            found[position == turn] = number
    return found


def other_numbers(value: object) -> list[bool | int | float]:
    """Other numbers in place of a number of Python's; none in place of something else."""
    if isinstance(value, bool) or not is_number(value):
        return [not value] if isinstance(value, bool) else []
    # One of the last two is odd and negative.
    integers = (value + 1, value - 1, 0, value + 10, -value, -value - 1)
    others = integers if isinstance(value, int) else (value / 2 + 0.25, 0.0, -value)
    return [other for other in dict.fromkeys(others) if other != value]


def _path(keys: Any) -> str:
    from torch.utils._pytree import keystr

    return f"{'kwargs' if keys[0].idx else 'args'}{keystr(keys[1:])}"


def _with_number(call: CapturedCall, path: str, value: float) -> CapturedCall:
    from torch.utils._pytree import tree_map_with_path

    given = call.args, call.kwargs

    def other(leaf: object) -> object:
        # With a change, it may be a tensor.
        return torch.full_like(leaf, value) if isinstance(leaf, torch.Tensor) else value

    args, kwargs = tree_map_with_path(lambda keys, leaf: other(leaf) if _path(keys) == path else leaf, given)
    is_keyword = path.startswith("kwargs['") and path[8:-2].isidentifier()
    return replace(call, args=args, kwargs={**kwargs, path[8:-2]: value} if is_keyword else kwargs)


def _defaults(captured: CapturedCallable, call: CapturedCall) -> tuple[dict[str, object], list[str]]:
    """The defaults that the call does not pass, and the parameters that it could leave out."""
    try:
        signature = inspect.signature(captured.original)
        passed = signature.bind(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):
        return {}, []
    optional = [one for one in signature.parameters.values() if one.default is not one.empty]
    left_out = [one for one in optional if one.name not in passed and one.kind is not one.POSITIONAL_ONLY]
    return {one.name: one.default for one in left_out}, [one.name for one in optional if one.name in passed]


def _without(captured: CapturedCallable, call: CapturedCall, name: str) -> CapturedCall:
    """The call without one argument, and without those that are passed by position after it."""
    if name in call.kwargs:
        return replace(call, kwargs={key: value for key, value in call.kwargs.items() if key != name})
    return replace(call, args=call.args[: list(inspect.signature(captured.original).parameters).index(name)])


def planned(
    captured: CapturedCallable, call: CapturedCall, names: Collection[str], later: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Variation, str, str]]:
    """The variations of a call: the kind, where, and the value if it is a number."""
    from torch.utils._pytree import tree_flatten_with_path

    state, inputs = captured.snapshots_of(call)
    yield from ((Variation.LATER, str(number), "") for number in range(len(later)))
    yield from ((Variation.HOOK, path, "") for path in sorted({path for one in later for path in one["hooked"]}))
    left_out, optional = _defaults(captured, call)
    values = {_path(keys): leaf for keys, leaf in tree_flatten_with_path((call.args, call.kwargs))[0]}
    numbers = {**values, **{f"kwargs[{name!r}]": value for name, value in left_out.items()}}
    for at, value in numbers.items():
        yield from ((Variation.ARGUMENT, at, repr(other)) for other in other_numbers(value))
    yield from ((Variation.DEFAULT, name, "") for name in optional)
    for path in state.setters:
        value = state.plains.get(path)
        if path.rpartition(".")[2] in names and not path.endswith(".training"):
            yield from ((Variation.ATTRIBUTE, path, repr(other)) for other in other_numbers(value))
    if any(path.endswith(".training") for path in state.setters):
        yield Variation.MODE, "", ""
    yield from ((kind, "", "") for kind in VALUES[:3])
    shapes = {path: tensor.shape for path, tensor in inputs.tensors.items() if path in inputs.data}
    dims = range(min(4, max(map(len, shapes.values()), default=0)))
    for dim in dims:
        # A batch is the first dimension.
        yield from ((kind, str(dim), "") for kind in (SIZES[:2] if dim else SIZES))
    for dim in dims:
        sizes = {path: shape[dim] for path, shape in shapes.items() if len(shape) > dim}
        alike = [path for path, size in sizes.items() if size == next(iter(sizes.values()))]
        yield from ((Variation.MORE, f"{dim} {path}", "") for path in alike if len(alike) > 1)
    yield from ((kind, "", "") for kind in VALUES[3:])
    yield from ((Variation.MIXED, str(number), "") for number in range(1, MOST_MIXED + 1))
    # An index out of range makes a GPU unusable; elsewhere it ends the call, so that each input has its own.
    on_cpu = [path for path, tensor in inputs.tensors.items() if tensor.device.type == "cpu"]
    for kind in (Variation.NEGATED, Variation.BELOW, Variation.ABOVE):
        yield from ((kind, path, "") for path in on_cpu if not inputs.tensors[path].is_floating_point())


LONGEST_CALL = 5.0
"""Seconds of one call. With NaN, a loop may never end."""
LONGEST_MIXED = 1.0
MOST_GRADIENTS = 256 << 20
"""Bytes of the gradients of a varied call; where there are more, it has no backward pass."""


@dataclass(frozen=True)
class VariedRun:
    """The calls that were run, and with a change their ``differences``.  ``ran`` is the code that they ran, without
    those that show nothing.  ``seconds`` is how long the process was busy."""

    calls: tuple[VariedCall, ...]
    differences: tuple[tuple[ResultDifference, ...], ...]
    ran: dict[str, RanCode]
    seconds: float


class VariedCalls:
    """Runs calls eager, and records which code of ``files`` they run.  The capture of the probe has later ones."""

    def __init__(self, capture: Capture, files: Collection[str]) -> None:
        self._callables = capture.captured
        self._files = files
        self._frames = capture.frames
        self._later = capture.later.kept() if capture.later is not None else None

    def plan(self, names: tuple[str, ...], folder: str) -> tuple[VariedCall, ...]:
        """All variations; ``names`` are those of what the program sets elsewhere.  Writes later calls to the folder."""
        write_file(self._later, f"{folder}/calls.pt")
        found: list[VariedCall] = []
        for number, captured in enumerate(self._callables):
            later = [one for one in self._later or () if one["callable"] == number]
            calls = [VariedCall(number, *one) for one in planned(captured, captured.calls[-1], names, later)]
            if captured.calls[0].state is not None and len(captured.calls) > 1:
                # What is made in the first call was kept for those after it.
                plan = planned(captured, captured.calls[0], names, ())
                calls += [VariedCall(number, *one, first=True) for one in plan]
            for kind, its in grouped((call.kind, call) for call in calls).items():
                found += its[: MOST_MIXED if kind is Variation.MIXED else MOST_OF_A_KIND]
        return tuple(found)

    def probe(self, folder: str, number: int, calls: tuple[VariedCall, ...], seconds: float) -> VariedRun:
        """Runs varied calls of one kind, for some seconds at most, and writes the results into the folder, under this
        number.  Returns those that the program survives."""
        began = unloaded_time()
        kept: dict[VariedCall, CallResult] = {}
        code: list[Mapping[str, RanCode]] = []
        for varied, result, ran in self._run(folder, calls, seconds):
            # What the program does not survive is no test.
            if result.error is None or is_raised(result, self._files) or self._is_known(varied, result):
                kept[varied] = result
                # Where all is zero, infinite or NaN, other code would do the same.
                code += [ran] if result.error is not None or any(map(has_information, result.tensors())) else []
        write_file(kept, f"{folder}/results{number}.pt")
        return VariedRun(tuple(kept), (), self._united(code), unloaded_time() - began)

    def compare(
        self,
        folder: str,
        number: int,
        reference: Reference,
        calls: tuple[VariedCall, ...],
        seconds: float,
        compiling: bool = False,
    ) -> VariedRun:
        """Runs varied calls of one kind in a changed program, and compares them with those of the unchanged one. With
        ``compiling``, `torch.compiler.is_compiling()` is true."""
        began = unloaded_time()
        results = read_file(f"{folder}/results{number}.pt")
        ended, differences, code = [], [], []
        for varied, result, ran in self._run(folder, calls, seconds, compiling):
            with reference.opened() as usual:
                expected, stays = usual.of_other_call(results[varied]), self._is_known(varied, result)
                differences.append(varied_differences(expected, result, stays))
            ended.append(varied)
            code.append(ran)
        return VariedRun(tuple(ended), tuple(differences), self._united(code), unloaded_time() - began)

    def _is_known(self, varied: VariedCall, result: CallResult) -> bool:
        """Return whether a later call of the program raises this, too: its state may matter after that."""
        return varied.kind is Variation.LATER and self._later_call(varied)["error"] == result.error

    def _later_call(self, varied: VariedCall) -> dict[str, Any]:
        return [one for one in self._later or () if one["callable"] == varied.callable][int(varied.at)]

    def _united(self, code: Sequence[Mapping[str, RanCode]]) -> dict[str, RanCode]:
        return {path: sum((one[path] for one in code), RanCode()) for path in self._files}

    def _run(
        self, folder: str, calls: Sequence[VariedCall], seconds: float, compiling: bool = False
    ) -> Iterator[tuple[VariedCall, CallResult, Mapping[str, RanCode]]]:
        """The calls that end in time, with their results and the code that they run."""
        until = unloaded_time() + (min(seconds, LONGEST_MIXED) if calls[0].kind is Variation.MIXED else seconds)
        for varied in calls:
            if unloaded_time() > until:
                return
            mode = as_if_compiling() if compiling else contextlib.nullcontext()
            with mode, ExecutedCode(self._files).noted(closely=True) as ran:
                result = self._result(folder, varied)
            if result is not None:
                yield varied, result, ran.found()

    def _result(self, folder: str, varied: VariedCall) -> CallResult | None:
        """The result of a varied call; None if there is none, or if it takes too long."""
        captured = self._callables[varied.callable]
        call = captured.calls[0 if varied.first else -1]
        leaves = [leaf for snapshot in captured.snapshots_of(call) for leaf in snapshot.leaves().values()]
        backward = sum(leaf.numel() * leaf.element_size() for leaf in leaves) <= MOST_GRADIENTS
        if self._later is None:
            self._later = read_file(f"{folder}/calls.pt")
        try:
            with self._varied(captured, call, varied) as (other, plains):
                if other is None:
                    return None
                put_back(captured, other)
                with other.modes.set(), eager_stance(), time_limit(LONGEST_CALL):
                    state, _ = captured.snapshots_of(other)
                    layer = state.walk.layers[varied.at] if varied.kind is Variation.HOOK else None
                    with state.holding({}, plains), contextlib.nullcontext() if layer is None else _hook(layer):
                        return run_call(captured, other, captured.original, backward, varied=True)
        except (TimeLimitReached, Exception):
            # What the call itself raises is a result: this call cannot be varied so, or takes too long.
            return None
        finally:
            put_back(captured, call)

    @contextlib.contextmanager
    def _varied(
        self, captured: CapturedCallable, call: CapturedCall, varied: VariedCall
    ) -> Iterator[tuple[CapturedCall | None, dict[str, object]]]:
        """The varied call, and the plain values of the state that it finds."""
        state, inputs = captured.snapshots_of(call)
        kind, at = varied.kind, varied.at
        if kind is Variation.LATER:
            later = self._later_call(varied)
            args, kwargs = self._with_objects((later["args"], later["kwargs"]))
            own = StateSnapshot({"args": args, "kwargs": kwargs}, {})
            fitting = {
                path: value
                for path, value in later["values"].items()
                if path in state.values and state.values[path].shape == value.shape
            }
            try:
                with state.holding(fitting), state.turned(later["turned"]):
                    modes = Modes(**later["modes"])
                    yield replace(call, args=args, kwargs=kwargs, inputs=own, modes=modes), later["plains"]
            finally:
                own.restore()
        elif kind is Variation.ARGUMENT:
            yield _with_number(call, at, ast.literal_eval(varied.value)), {}
        elif kind is Variation.DEFAULT:
            yield _without(captured, call, at), {}
        elif kind is Variation.ATTRIBUTE:
            yield call, {at: ast.literal_eval(varied.value)}
        elif kind is Variation.MODE:
            yield call, {path: not state.plains[path] for path in state.setters if path.endswith(".training")}
        else:
            values = varied_values(inputs, kind, at)
            with _resized(inputs, values), inputs.holding(values):
                yield call if values or kind is Variation.HOOK else None, {}

    @cached_property
    def _objects(self) -> Mapping[str, object]:
        return objects_of(self._frames)

    def _with_objects(self, tree: Any) -> Any:
        from torch.utils._pytree import tree_map

        def held(leaf: object) -> object:
            is_named = isinstance(leaf, str) and leaf.startswith(OBJECT)
            return self._objects[str(leaf).removeprefix(OBJECT)] if is_named else leaf

        return tree_map(held, tree)


def _hook(layer: torch.nn.Module) -> contextlib.AbstractContextManager[object]:
    """A forward hook that changes what a module computes."""
    from torch.utils._pytree import tree_map_only

    scaled = partial(tree_map_only, torch.Tensor, lambda one: one * 1.5 if one.is_floating_point() else one)
    return layer.register_forward_hook(lambda _, args, found: scaled(found))


@contextlib.contextmanager
def _resized(inputs: StateSnapshot, values: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Gives the tensors the shapes of these values while the block runs."""
    tensors = inputs.tensors
    held = {
        path: tensors[path].data for path, one in values.items() if path in tensors and tensors[path].shape != one.shape
    }
    try:
        for path, data in held.items():
            tensors[path].data = values[path].to(data.device)
        yield
    finally:
        for path, data in held.items():
            tensors[path].data = data


def varied_differences(expected: Expected, other: CallResult, stays: bool = False) -> tuple[ResultDifference, ...]:
    """The differences of an eager result from another one. After the same exception, nothing else counts, unless the
    program ``stays``."""
    error = expected.results[0].error
    if error is not None and error == other.error and not stays:
        return ()
    return tuple(one for one in expected.differences([other], eager=True) if one.change not in NOTED)


def is_raised(result: CallResult, files: Collection[str]) -> bool:
    """Return True if one of these files itself raises the exception of a result: others only show a wrong call."""
    path, line = result.raised_at[-1] if result.raised_at else ("", 0)
    text = linecache.getline(path, line).strip()
    return os.path.realpath(path) in map(os.path.realpath, files) and text.startswith(("raise", "assert"))
