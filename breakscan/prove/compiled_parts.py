"""Runs captured calls compiled otherwise: with other settings, by another backend, or with some of their operations
compiled and all others eager. That finds the operation from which on compiled results differ from eager ones."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from breakscan.prove.call_runs import Compared, Reference, calls_of, compare, compare_call, run_compiled_call
from breakscan.prove.capture import CapturedCall, CapturedCallable, CompileHook
from breakscan.prove.protocol import CompiledPart, CompileOption, GraphOperation
from breakscan.prove.torch_state import torch
from breakscan.recording.parsers.frames import frames_of

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node


class CompiledParts:
    """``stop_recording`` ends the recording of the process."""

    def __init__(
        self, callables: Sequence[CapturedCallable], hook: CompileHook, stop_recording: Callable[[], None]
    ) -> None:
        self._callables = callables
        self._hook = hook
        self._stop_recording = stop_recording
        self._last: _PartBackend | None = None

    def write_program(self, path: str, words: str, allowed: float) -> bool:
        """Writes a program of the part that was compiled last, with its inputs; large ones go into a file next to it.
        Returns False if it needs more than inputs."""
        last = self._last
        if (
            last is None
            or last.step is None
            or any(node.op == "get_attr" for node in last.step.graph_module.graph.nodes)
        ):
            return False
        code = last.step.graph_module.graph.python_code("self")
        large: list[object] = []
        inputs = [_literal(value, large) for value in last.step.inputs]
        if large:
            torch.save(large, f"{path}.pt")
        text = _PROGRAM.format(
            words=words,
            imports="".join(
                f"import {module.__name__} as {name}\n"
                for name, module in code.globals.items()
                if isinstance(module, ModuleType) and name != "torch" and f"{name}." in code.src
            ),
            code=code.src.strip().replace("forward(self, ", "program(").replace("forward(self)", "program()"),
            inputs=", ".join(inputs),
            backend=last.part.backend,
            allowed=allowed,
        )
        Path(path).write_text(text, encoding="utf-8")
        return True

    def run(
        self, reference: Reference, number: int | None, settings: dict[str, CompileOption], part: CompiledPart | None
    ) -> tuple[tuple[GraphOperation, ...], Compared]:
        """Runs all calls compiled with these settings of Inductor, or with only a part compiled; of the call with a
        number, only those before it of the same callable, too.  Returns the operations of all graphs, where a part was
        compiled, and how the results differ."""
        import torch._inductor.config as inductor

        self._stop_recording()
        torch._dynamo.reset()
        backend = self._last = _PartBackend(part) if part is not None else None
        compiled = {id(one): self._compiled(one, backend) for one in self._callables}
        with inductor.patch(settings):
            results = [run_compiled_call(one, call, compiled[id(one)]) for one, call in self._calls(number)]
        torch._dynamo.reset()
        compared = (
            compare(reference, results, eager=False) if number is None else compare_call(reference, number, results[-1])
        )
        return tuple(backend.operations) if backend is not None else (), compared

    def _compiled(self, captured: CapturedCallable, backend: Any) -> Callable[..., object]:
        if backend is None:
            return captured.compiled
        context: Any = captured.context
        options = {"fullgraph": getattr(context, "fullgraph", False), "dynamic": getattr(context, "_dynamic", None)}
        compiled: Callable[..., object] = self._hook.compile(captured.original, {"backend": backend, **options})
        return compiled

    def _calls(self, number: int | None) -> list[tuple[CapturedCallable, CapturedCall]]:
        calls = list(calls_of(self._callables))
        return calls if number is None else [one for one in calls[: number + 1] if one[0] is calls[number][0]]


_PROGRAM = '''\
"""{words}"""

from math import inf, nan  # noqa: F401

import torch
from torch import device  # noqa: F401
{imports}

{code}


def results(function):
    inputs = [{inputs}]
    outputs = list(function(*inputs))
    ends = [one for one in outputs if one.requires_grad]
    torch.autograd.backward(ends, [torch.ones_like(one) for one in ends])
    return outputs, inputs, [one.grad for one in inputs if getattr(one, "grad", None) is not None]


compiled = torch.compile(program, backend="{backend}")
exact = dict(equal_nan=True, check_stride=True, rtol={allowed}, atol={allowed})
torch.testing.assert_close(results(compiled), results(program), **exact)
'''
_LARGE = 64
"""Elements from which on a tensor is not written as a literal."""


def _literal(value: Any, large: list[object]) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    text = f"torch.tensor({value.tolist()}, dtype={value.dtype}, device={str(value.device)!r})"
    if value.numel() > _LARGE:
        text = f"torch.load(__file__ + '.pt')[{len(large)}]"
        large.append(value)
    if not value.is_contiguous():
        text = f"torch.empty_strided({tuple(value.shape)}, {value.stride()}, dtype={value.dtype}).copy_({text})"
    return f"{text}.requires_grad_()" if value.requires_grad else text


class _PartBackend:
    """A backend for ``torch.compile``. The ``operations`` are those of all graphs, in the order of compiling."""

    def __init__(self, part: CompiledPart) -> None:
        self.operations: list[GraphOperation] = []
        self.part = part
        self.step: _Step | None = None
        """The part of the graph that was compiled last, if that is not all of it."""

    def __call__(self, graph_module: GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        from torch._dynamo.backends.registry import lookup_backend
        from torch.fx.passes.split_module import split_module

        calls = [node for node in graph_module.graph.nodes if node.op.startswith("call_")]
        first, last = (min(max(0, at - len(self.operations)), len(calls)) for at in (self.part.first, self.part.last))
        self.operations += _operations(calls)
        if first == last:
            return graph_module.forward
        backend: Any = lookup_backend(self.part.backend)
        if last - first == len(calls) and not self.part.keep:
            return backend(graph_module, inputs)  # type: ignore[no-any-return]
        numbers = {node: (at >= first) + (at >= last) for at, node in enumerate(calls)}
        split = split_module(graph_module, graph_module, numbers.__getitem__, keep_original_order=True)
        self.step = _Step(split.get_submodule("submod_1"), backend, _values(graph_module, inputs))
        return split.forward


def _values(graph_module: GraphModule, inputs: Sequence[object]) -> dict[str, object]:
    """The inputs and the constants of a graph, by the names of their nodes."""
    given = iter(inputs)
    return {
        node.name: next(given) if node.op == "placeholder" else operator.attrgetter(str(node.target))(graph_module)
        for node in graph_module.graph.nodes
        if node.op in ("placeholder", "get_attr")
    }


class _Step:
    """Some operations of a graph, compiled for ``values`` of the whole graph, and for the fake values of its other
    nodes.  They keep the ``inputs`` of their last run."""

    def __init__(self, graph_module: Any, backend: Any, values: Mapping[str, object]) -> None:
        self.graph_module = graph_module
        self.inputs: list[object] = []
        *nodes, output = graph_module.graph.nodes
        self._is_one = not isinstance(output.args[0], tuple)
        if self._is_one:
            output.args = ((output.args[0],),)
            graph_module.recompile()
        needed = [node for node in nodes if node.op == "placeholder"]
        self._function = backend(graph_module, [values.get(one.name, one.meta.get("example_value")) for one in needed])
        graph_module.forward = self._run

    def _run(self, *inputs: object) -> object:
        self.inputs = [_copied(value) for value in inputs]
        results = self._function(*inputs)
        return results[0] if self._is_one else results


def _copied(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return copy.copy_(value.detach()).requires_grad_(value.requires_grad)


def _operations(calls: Sequence[Node]) -> Iterator[GraphOperation]:
    root = os.path.dirname(torch.__file__) + os.sep
    # Without it, parts may end within a block of another mode.
    sets_mode = getattr(torch._C, "_set_grad_enabled", None)
    passed = (torch.Tensor, torch.SymInt, torch.SymFloat, int, float)
    crossing: set[Node] = set()
    modes = 0
    done = set()
    for node in calls:
        done.add(node)
        crossing.add(node)
        crossing -= {one for one in (node, *node.all_input_nodes) if done.issuperset(one.users)}
        modes += node.target is sets_mode
        frames = frames_of(node.meta.get("stack_trace") or "")
        path, line = next(((one.path, one.line) for one in reversed(frames) if not one.path.startswith(root)), ("", 0))
        ends = modes % 2 == 0 and all(isinstance(one.meta.get("example_value"), passed) for one in crossing)
        yield GraphOperation(_name(node), path, line, ends or node is calls[-1])


def _name(node: Node) -> str:
    """``torch.neg``, ``Tensor.add_``, ``operator.mul``."""
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if isinstance(node.target, str):
        return node.target
    module, name = (str(getattr(node.target, key, "")) for key in ("__module__", "__name__"))
    return f"{'torch' if module == 'None' else module.lstrip('_')}.{name}"
