"""Runs the whole program in a worker process: the time of the steps of its loops, and the values that it ends with.

The loops are those around the program's calls of what it compiles.  In their new text, each iteration begins with a
call of :data:`STEP`, and each loop ends with one of :data:`END`: lines stay where they are.  What the calls return
that lead to compiled code goes through :data:`HOLD`, as no name of the program may keep it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import itertools
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from resource import RUSAGE_SELF, getrusage
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from breakscan.model.words import grouped
from breakscan.prove.call_result import as_tensor, leaves
from breakscan.prove.call_runs import CompileClock
from breakscan.prove.capture import CapturedCallable, CompileHook, ProgramStopped, module_of, own_frames, watch_backward
from breakscan.prove.equal import Distance, root_mean_square
from breakscan.prove.overlay import plain_code
from breakscan.prove.protocol import (
    FLOAT,
    IN_STEP,
    OF_CALL,
    BlockTime,
    CallSite,
    LoopSite,
    ModulePart,
    RunReport,
    RunRequest,
)
from breakscan.prove.state import OF_DYNAMO, ObjectWalk, is_number, is_own, plain, plain_copy, read_file, write_file
from breakscan.prove.step_timer import event_now
from breakscan.prove.torch_state import cuda_in_use, plain_modes, torch, wait_for_device
from breakscan.prove.user_loop import loops_around

STEP, END, COMPILING = "__breakscan_step__", "__breakscan_end__", "__breakscan_compiling__"
HOLD = "__breakscan_hold__"
"""Names in ``builtins``. Names that end in underscores are not changed in classes."""
FEWEST_CALLS = 3
"""Calls of compiled callables before the program is stopped where its loops are looked for."""
FEW = 3
"""Iterations of a loop up to which one in it may be stopped."""
INDUCTOR = "_TorchCompileInductorWrapper"
"""The class of torch whose objects compile a graph by Inductor."""
MOST_KEPT = 512
"""Values of steps that are kept, and of results."""
MOST_PARTS = 64
"""Parts of a result that are looked at."""
MOST_NESTED = 4
"""Calls in each other of which results are kept."""
SAMPLED = 2**10
"""Elements of a tensor that is a part of a result."""
MOST_ELEMENTS = 2**22
"""Elements of such a value."""
WRAPPER = "._orig_mod"
"""The attribute in which ``torch.compile`` keeps a module that it was given."""


@dataclass(slots=True)
class _Moment:
    """The time of the host, that of the device as an event of CUDA, and the compiles that had started."""

    seconds: float
    event: Any
    compiles: int

    def until(self, end: _Moment) -> BlockTime:
        """The step from here to its end."""
        seconds = end.seconds - self.seconds
        if self.event is not None and end.event is not None:
            seconds = self.event.elapsed_time(end.event) / 1000
        return BlockTime(seconds, end.compiles - self.compiles)


@dataclass(slots=True)
class _Loop:
    site: LoopSite
    begun: int = 0
    steps: list[tuple[_Moment, _Moment]] = field(default_factory=list)
    last: _Moment | None = None

    def pass_to(self, now: _Moment | None, end: _Moment) -> None:
        """The step before ends, if there is one; the next one begins, if it does."""
        if self.last is not None:
            self.steps.append((self.last, end))
        self.last = now


class WholeProgram:
    """Watches a run of the program.  ``request`` says up to where it runs."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._loops = [_Loop(site) for site in request.loops]
        self._inside: list[int] = []
        """The numbers of the loops that the program is in."""
        self._found: dict[LoopSite, None] = {}
        self._lines: set[tuple[str, int]] = set()
        self._sites: dict[tuple[CodeType, int], CallSite | None] = {}
        self._hook = CompileHook(self._wrap)
        self._calls = 0
        self._first: _Moment | None = None
        self._last: _Moment | None = None
        self._names: dict[str, Any] = {}
        self._of_steps: dict[str, Any] = {}
        """The mean and the root mean square of the values that the names of a loop hold, step by step; the results of
        what is exported."""
        self._exported = 0
        self._results: dict[str, Any] = {}
        """Parts of what calls return, by path."""
        self._floats: set[str] = set()
        """The paths of Python's floats among these."""
        self._thread = threading.get_ident()
        self._returned: dict[str, int] = {}
        """The number of returns of each call."""
        self._holding = 0.0
        """The seconds for which results were kept: the clock of steps stands still."""
        self._held_on_device = 0
        self._weights: dict[int, dict[str, float]] = {}
        """The sums of what each callable can reach at its first call, by path."""
        self._weights_change = False
        self._backward = False
        self._stop: tuple[int, int] | None = None
        self._compiles = CompileClock()
        self._until_exit = contextlib.ExitStack()

    def compile_text(self, text: str, path: str) -> Any:
        """The code of the text of a file, whose loops call :data:`STEP` and :data:`END`.  Raises SyntaxError."""

        def is_here(site: LoopSite | CallSite) -> bool:
            return os.path.realpath(site.path) == os.path.realpath(path)

        numbers = {one.site.line: number for number, one in enumerate(self._loops) if is_here(one.site)}
        calls = {one: place for one, place in self._request.calls.items() if is_here(one)}
        if not numbers and not calls:
            return plain_code(text, path)
        tree = _Watched(numbers, calls).visit(ast.parse(text, path))
        its = {COMPILING: torch.compiler.is_compiling, STEP: self._step, END: self._end, HOLD: self._hold}
        vars(builtins).update(its)
        return compile(tree, path, "exec", dont_inherit=True)

    def install(self, dynamo: Any) -> None:
        """Hooks in.  Called after ``torch._dynamo`` has been imported."""
        self._until_exit.enter_context(self._compiles)
        if self._request.eager:
            torch.compiler.set_stance("force_eager")
        if self._request.graphs_only and hasattr(torch, INDUCTOR):
            setattr(getattr(torch, INDUCTOR), "__call__", lambda _, graph, inputs, **options: graph.forward)  # noqa: B010
        if not self._loops:
            self._hook.install(dynamo)

    def install_export(self, trace: Any) -> None:
        """Hooks into exports.  Called after their module of torch has been imported."""
        trace._export = functools.partial(self._export, trace._export)

    def report(self) -> RunReport:
        """The steps, and what else is known of the run."""
        wait_for_device()
        for one in self._hook.callables:
            self._weigh(one)
        modules = [module_of(one.original) for one in self._hook.callables]
        used = torch.cuda.max_memory_allocated() if cuda_in_use() else 1024 * getrusage(RUSAGE_SELF).ru_maxrss
        return RunReport(
            found=tuple(self._found),
            calls=tuple(one for one in self._sites.values() if one is not None),
            loops=tuple(tuple(one.until(end) for one, end in loop.steps) for loop in self._loops),
            run_seconds=0.0 if self._first is None or self._last is None else self._last.seconds - self._first.seconds,
            stop=self._stop,
            memory_bytes=used,
            cuda=cuda_in_use(),
            backward=self._backward,
            blocks=tuple(blocks_of(one) if one is not None else () for one in modules),
            inner=tuple(inner_modules(one) if one is not None else () for one in modules),
            files=_own_files(),
            weights_change=self._weights_change,
        )

    def save(self, path: str) -> dict[str, str]:
        """Writes the values at the end to a file.  Returns their dtypes by path, :data:`FLOAT` for Python's floats."""
        with plain_modes():
            values, floats = self._values()
            write_file({name: plain_copy(value) for name, value in values.items()}, path)
        return {name: FLOAT if name in floats else str(value.dtype) for name, value in values.items()}

    def distances(self, path: str) -> dict[str, float]:
        """The distances of the values from those in a file, by path, where both have them."""
        with plain_modes():
            own, _ = self._values()
            return {name: _distance(plain(own[name]), value) for name, value in read_file(path).items() if name in own}

    # -- what the program calls ---------------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        if self._request.graphs_only:
            self._keep_step(number, sys._getframe(1))
        loop, now = self._loops[number], self._now()
        if number in self._inside:
            del self._inside[self._inside.index(number) + 1 :]
        else:
            self._inside.append(number)
            loop.last = None
        loop.pass_to(now, now)
        # An outer loop that goes round may be stopped: with a change, the inner one may be a part of what is compiled.
        is_over = self._is_over() and all(self._loops[one].begun < FEW for one in self._inside[:-1])
        if is_over or (number, loop.begun) == self._request.stop:
            self._stop = number, loop.begun
            self._keep(sys._getframe(1))
            raise ProgramStopped
        loop.begun += 1

    def _end(self, number: int) -> None:
        self._loops[number].pass_to(None, self._now())
        if number in self._inside:
            del self._inside[self._inside.index(number) :]
        if not self._inside:
            self._keep(sys._getframe(1))

    def _now(self) -> _Moment:
        event = event_now() if "torch" in sys.modules and cuda_in_use() else None
        # Nor do steps count in which the host has waited for the device.
        self._last = _Moment(time.perf_counter() - self._holding, event, self._compiles.count + self._held_on_device)
        if self._first is None:
            self._first = self._last
        return self._last

    def _is_over(self) -> bool:
        assert self._first is not None
        assert self._last is not None
        return self._last.seconds - self._first.seconds - self._compiles.seconds > self._request.seconds

    def _keep_step(self, number: int, frame: FrameType) -> None:
        """Keeps what the names of a loop hold, also in a container."""
        if len(self._of_steps) > MOST_KEPT:
            return
        held = {name: value for name, value in frame.f_locals.items() if not name.startswith(("_", "@"))}
        for name, value in list(held.items()):
            if type(value) in (list, tuple, dict):
                inner = value.items() if isinstance(value, dict) else enumerate(value)
                held |= {f"{name}[{key!r}]": one for key, one in itertools.islice(inner, FEW)}
        with plain_modes():
            for name, value in held.items():
                # Some kinds of tensors, such as sparse ones, have no mean.
                with contextlib.suppress(RuntimeError):
                    values = plain(value) if isinstance(value, torch.Tensor) else None
                    if values is not None and values.is_floating_point() and 0 < values.numel() <= MOST_ELEMENTS:
                        kept = values.detach().double()
                        path = f"{name}{IN_STEP}{self._loops[number].begun} of loop {number}"
                        self._of_steps[path] = torch.stack([kept.mean(), kept.square().mean().sqrt()]).cpu()

    def _hold(self, name: str, result: object) -> object:
        """Returns the result of a call.  Of that of the first calls, and then of ever fewer, parts are kept, where the
        program does not look at the operations that this takes."""
        if threading.get_ident() != self._thread:
            return result
        count = self._returned[name] = self._returned.get(name, 0) + 1
        if count & (count - 1):
            return result
        began = time.perf_counter()
        # What cannot be copied, as in a transform of torch.func, is left out.
        with contextlib.suppress(Exception), torch.no_grad(), torch._C.DisableTorchFunction():
            captures = cuda_in_use() and torch.cuda.is_current_stream_capturing()
            is_watched = captures or torch._C._len_torch_dispatch_stack()
            parts = () if is_watched else itertools.islice(leaves(result), MOST_PARTS)
            for path, leaf in parts if len(self._results) < MOST_KEPT else ():
                if type(part := _sample(leaf)) is torch.Tensor:
                    path = f"{path}{OF_CALL}{count} of {name}"
                    self._results[path] = part
                    self._floats |= {path} if isinstance(leaf, float) else set()
            self._held_on_device += cuda_in_use()
        self._holding += time.perf_counter() - began
        return result

    def _keep(self, frame: FrameType) -> None:
        """Keeps the names that a frame of the program and those that it is called from can see."""
        names: dict[str, Any] = {}
        # A thread is called from functions of Python's, which see its locks.
        own = [one for one in own_frames(frame) if is_own(one.f_globals.get("__name__"))]
        for one in reversed(own):
            names |= {**one.f_globals, **one.f_locals}
        self._names = names

    def _values(self) -> tuple[dict[str, Any], set[str]]:
        """The values of tensors, arrays and numbers by path, and the paths of Python's floats."""
        names = {**vars(sys.modules["__main__"]), **self._names}
        own = {name: value for name, value in names.items() if not name.startswith(("__", "@"))}
        walk = ObjectWalk(own, None)
        values: dict[str, Any] = dict(walk.tensors)
        values |= {path: torch.from_numpy(array.copy()) for path, array in walk.arrays.items()}
        numbers = {path: value for path, value in walk.plains.items() if is_number(value) and abs(value) < 2**63}
        floats = {path for path, value in numbers.items() if isinstance(value, float)}
        for path, value in numbers.items():
            values[path] = torch.tensor(value, dtype=torch.float64 if path in floats else None)
        kept = {
            path.replace(WRAPPER, ""): value
            for path, value in values.items()
            if not any(name in path for name in OF_DYNAMO)
        }
        return kept | self._of_steps | self._results, {path.replace(WRAPPER, "") for path in floats} | self._floats

    def _export(self, export: Any, module: Any, args: Any, kwargs: Any = None, *others: Any, **options: Any) -> Any:
        """Export the module, and keep its results for the example; without the compiler, the module in place of it."""
        from torch.utils._pytree import tree_leaves

        its = SimpleNamespace(module=lambda: module)
        made = its if self._request.eager else export(module, args, kwargs, *others, **options)
        self._exported += 1
        with plain_modes():
            try:
                results = tree_leaves(made.module()(*args, **kwargs or {}))
                tensors = [one.detach().clone() for one in results if isinstance(one, torch.Tensor)]
            except Exception:  # its example may be fake; where only a change fails, no result has this shape
                tensors = [torch.zeros([1] * 7)]
        self._of_steps |= {f"exported {self._exported}[{at}]": one for at, one in enumerate(tensors)}
        return made

    # -- where the loops are ------------------------------------------------------------------------------------------

    def _wrap(self, captured: CapturedCallable) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            self._look(sys._getframe())
            if not self._calls & (self._calls - 1) or id(captured) not in self._weights:
                self._weigh(captured)
            result = captured.compiled(*args, **kwargs)
            watch_backward(result, lambda: setattr(self, "_backward", True))
            return result

        return call

    def _weigh(self, captured: CapturedCallable) -> None:
        """Notes whether a callable reaches tensors with other values than at its first call."""
        with plain_modes(), contextlib.suppress(RuntimeError):
            tensors = ObjectWalk({"": captured.original}, None).tensors
            sums = {path: float(plain(one).detach().double().sum()) for path, one in tensors.items()}
            first = self._weights.setdefault(id(captured), sums)
            self._weights_change |= any(first.get(path, value) != value for path, value in sums.items())

    def _look(self, frame: FrameType) -> None:
        self._now()
        self._calls += 1
        frames = list(own_frames(frame))
        for one in reversed(frames):
            place = (one.f_code.co_filename, one.f_lineno)
            if place not in self._lines:
                self._lines.add(place)
                self._found |= {LoopSite(place[0], line): None for line in loops_around(one.f_code, place[1])}
            if (one.f_code, one.f_lasti) not in self._sites:
                self._sites[one.f_code, one.f_lasti] = _site_of(one)
        if self._is_over() and self._calls > FEWEST_CALLS:
            raise ProgramStopped


class _Watched(ast.NodeTransformer):
    """Puts calls into loops, by the numbers of their lines, and around calls, by their places."""

    def __init__(self, numbers: Mapping[int, int], calls: Mapping[CallSite, str]) -> None:
        self._numbers = numbers
        self._calls = calls

    def visit_Call(self, node: ast.Call) -> Any:
        function = ast.unparse(node.func)
        self.generic_visit(node)
        there = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        its = (place for one, place in self._calls.items() if one.line in there and one.function in ("", function))
        place = next(its, None)
        # Each is written twice, with what is in it.
        depth = 1 + max((getattr(one, "depth", 0) for one in ast.walk(node)), default=0)
        if place is None or depth > MOST_NESTED:
            return node
        held: Any = ast.parse(f"0 if {COMPILING}() else {HOLD}(0, 0)", mode="eval").body
        held.body, held.orelse.args, held.depth = node, [ast.Constant(f"{function}() at {place}"), node], depth
        for one in (held, held.test, held.test.func, held.orelse, held.orelse.func, held.orelse.args[0]):
            ast.copy_location(one, node)
        return held

    def visit_For(self, node: ast.For | ast.While) -> Any:
        self.generic_visit(node)
        number = self._numbers.get(node.lineno)
        if number is None:
            return node
        node.body.insert(0, _call(STEP, number, node.body[0]))
        return [node, _call(END, number, node)]

    visit_While = visit_For


def _call(name: str, number: int, place: ast.stmt) -> ast.stmt:
    # Dynamo knows the value of the first call, and leaves out the other one, which would break the graph.
    call = ast.parse(f"{COMPILING}() or {name}({number})").body[0]
    for node in ast.walk(call):
        ast.copy_location(node, place)
    return call


def _site_of(frame: FrameType) -> CallSite | None:
    """The call that a frame makes; None if it does something else."""
    path, function = frame.f_code.co_filename, ""
    # Python 3.10 does not know which of a line it is.
    if sys.version_info >= (3, 11):
        at = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        function = _functions_of(path).get((at[1], at[3]), "")
        if not function:
            return None
    return CallSite(path, frame.f_lineno, function)


@functools.cache
def _functions_of(path: str) -> Mapping[tuple[int | None, int | None], str]:
    """The code of the functions that a file calls, by the ends of the calls."""
    with contextlib.suppress(SyntaxError, ValueError):
        calls = (one for one in ast.walk(ast.parse("".join(linecache.getlines(path)))) if isinstance(one, ast.Call))
        return {(one.end_lineno, one.end_col_offset): ast.unparse(one.func) for one in calls}
    return {}


def _sample(leaf: object) -> torch.Tensor | None:
    """Some elements of a dense tensor, and its mean and root mean square, or a number; None of other values."""
    if isinstance(leaf, torch.Tensor) and (leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_meta):
        return None
    tensor = as_tensor(leaf)
    if tensor is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.numel():
        return None
    flat = tensor.detach().flatten()
    part = flat[:: -(-flat.numel() // SAMPLED)]
    if flat.is_floating_point() and len(part) < len(flat):
        square = torch.linalg.vector_norm(flat, dtype=torch.float64) / len(flat) ** 0.5
        part = torch.cat([part, torch.stack([flat.mean(dtype=torch.float64), square]).to(part.dtype)])
    return plain_copy(part)


def _own_files() -> tuple[str, ...]:
    """The files of the modules that are the user's own, the script first."""
    found = {
        os.path.abspath(file): None
        for name, module in [("__main__", sys.modules["__main__"]), *sorted(sys.modules.items())]
        if (file := getattr(module, "__file__", None)) and file.endswith(".py") and is_own(name)
    }
    return tuple(found)


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The root mean square of the differences, relative to that of the values; of integers, the share that differs."""
    if one.shape != other.shape:
        return float("inf")
    error, scale = Distance.between(other, one).rms, root_mean_square(other)
    if not (other.is_floating_point() or other.is_complex()):
        return error**2
    return error / scale if scale else (float("inf") if error else 0.0)


# -- repeated blocks, which can be compiled by themselves ------------------------------------------------------------


def blocks_of(module: torch.nn.Module, code: str = "") -> tuple[ModulePart, ...]:
    """The outermost repeated blocks of a module, whose code is that."""
    found, others = _grouped(module, code)
    return (*found, *(one for its, child in others for one in blocks_of(child, its)))


def inner_modules(module: torch.nn.Module, code: str = "") -> tuple[ModulePart, ...]:
    """The modules that a module holds, also in lists: without single layers, of which there is nothing to fuse."""
    found, others = _grouped(module, code)
    for its, child in others:
        if type(child) in (torch.nn.ModuleList, torch.nn.ModuleDict):
            found += inner_modules(child, its)
        elif not _is_layer(child):
            found.append(ModulePart((its,), _has_forward_of_torch(child)))
    return tuple(found)


def _grouped(module: torch.nn.Module, code: str) -> tuple[list[ModulePart], list[tuple[str, torch.nn.Module]]]:
    """The repeated blocks among the modules in a module, and the others with their code."""
    found: list[ModulePart] = []
    children = dict(module.named_children())
    for names in _repeated(module):
        blocks = [children.pop(name) for name in names]
        codes = (code,) if len(names) == len(module._modules) else tuple(f"{code}{_step_to(name)}" for name in names)
        found.append(ModulePart(codes, _has_forward_of_torch(blocks[0]), repeated=True))
    return found, [(f"{code}{_step_to(name)}", child) for name, child in children.items()]


def _step_to(name: str) -> str:
    """``[0]`` or ``.mlp``, the code from a module to one in it."""
    return f"[{name}]" if name.isdigit() else f".{name}" if name.isidentifier() else f".get_submodule({name!r})"


def _repeated(module: torch.nn.Module) -> list[list[str]]:
    """The names of siblings in a list of modules that run the same code: those of a ``Sequential`` are its parts."""
    if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
        return []
    blocks = [(name, child) for name, child in module.named_children() if not _is_layer(child)]
    parts = (child.modules() if isinstance(child, torch.nn.Sequential) else (child,) for _, child in blocks)
    alike = grouped((tuple(map(type, its)), name) for its, (name, _) in zip(parts, blocks, strict=True))
    return [names for names in alike.values() if len(names) > 1]


def _is_layer(module: torch.nn.Module) -> bool:
    """Return True if it is a single layer of torch: compiled alone, there is little to fuse."""
    return type(module).__module__.startswith("torch.nn.") and not any(True for _ in module.children())


def _has_forward_of_torch(module: torch.nn.Module) -> bool:
    """Return True if the ``forward`` of a module is torch's: Dynamo does not start to trace in torch's files."""
    return str(getattr(type(module).forward, "__module__", "")).startswith("torch.")
