"""Runs captured calls compiled otherwise: with other settings, by another backend, or with some of their operations
compiled and all others eager. That finds the operation from which on compiled results differ from eager ones.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from breakscan.prove.call_result import save_results
from breakscan.prove.call_runs import run_compiled_call
from breakscan.prove.capture import CapturedCall, CapturedCallable, CompileHook
from breakscan.prove.protocol import CompiledPart, CompileOption, GraphOperation
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

    def run(
        self, path: str, number: int | None, settings: dict[str, CompileOption], part: CompiledPart | None
    ) -> tuple[GraphOperation, ...]:
        """Runs all calls compiled with these settings of Inductor, and writes the results. If a call is given by its
        number, only this one and those before it of the same callable are run. If a part is given, only this part is
        compiled; the operations of all graphs are returned.
        """
        import torch
        import torch._inductor.config as inductor

        self._stop_recording()
        torch._dynamo.reset()
        backend = _PartBackend(part) if part is not None else None
        compiled = {id(one): self._compiled(one, backend) for one in self._callables}
        with inductor.patch(settings):
            results = [run_compiled_call(one, call, compiled[id(one)]) for one, call in self._calls(number)]
        torch._dynamo.reset()
        save_results(results, path)
        return tuple(backend.operations) if backend is not None else ()

    def _compiled(self, captured: CapturedCallable, backend: Any) -> Callable[..., object]:
        if backend is None:
            return captured.compiled
        context: Any = captured.context
        options = {"fullgraph": getattr(context, "fullgraph", False), "dynamic": getattr(context, "_dynamic", None)}
        compiled: Callable[..., object] = self._hook.compile(captured.original, {"backend": backend, **options})[0]
        return compiled

    def _calls(self, number: int | None) -> list[tuple[CapturedCallable, CapturedCall]]:
        calls = [(captured, call) for captured in self._callables for call in captured.calls]
        return calls if number is None else [one for one in calls[: number + 1] if one[0] is calls[number][0]]


class _PartBackend:
    """A backend for ``torch.compile``. The ``operations`` are those of all graphs, in the order of compiling."""

    def __init__(self, part: CompiledPart) -> None:
        self.operations: list[GraphOperation] = []
        self._part = part

    def __call__(self, graph_module: GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        from torch._dynamo.backends.registry import lookup_backend

        calls = [node for node in graph_module.graph.nodes if node.op.startswith("call_")]
        first, last = (min(max(0, at - len(self.operations)), len(calls)) for at in (self._part.first, self._part.last))
        self.operations += _operations(calls)
        if first == last:
            return graph_module.forward
        backend: Any = lookup_backend(self._part.backend)
        if last - first == len(calls):
            return backend(graph_module, inputs)  # type: ignore[no-any-return]
        steps = [_Step(graph_module, calls[:first]), _Step(graph_module, calls[first:last])]
        steps[1].compile(backend, dict(zip(_placeholders(graph_module), inputs, strict=True)))
        return _in_steps(graph_module, [*steps, _Step(graph_module, calls[last:])])


class _Step:
    """Some operations of a graph as a graph of their own, with the values that they need and give."""

    def __init__(self, graph_module: GraphModule, nodes: Sequence[Node]) -> None:
        from torch.fx import Graph, GraphModule

        own = set(nodes)
        needed = dict.fromkeys(one for node in nodes for one in node.all_input_nodes if one not in own)
        self.needed = [node for node in needed if node.op != "get_attr"]
        self.given = [node for node in nodes if any(user not in own for user in node.users)]
        graph = Graph()
        copies: dict[Node, Node] = {}
        for node in self.needed:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
        for node in (*(node for node in needed if node.op == "get_attr"), *nodes):
            copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[node] for node in self.given))
        self.run: Callable[..., Sequence[object]] = GraphModule(graph_module, graph)

    def compile(self, backend: Any, inputs: dict[Node, object]) -> None:
        """Compiles the operations for inputs of the whole graph, and for the fake values of its other nodes."""
        self.run = backend(self.run, [inputs.get(node, node.meta.get("example_value")) for node in self.needed])


def _in_steps(graph_module: GraphModule, steps: Sequence[_Step]) -> Callable[..., object]:
    from torch.fx.node import map_arg

    (output,) = (node for node in graph_module.graph.nodes if node.op == "output")
    constants = {
        node: operator.attrgetter(str(node.target))(graph_module)
        for node in output.all_input_nodes
        if node.op == "get_attr"
    }

    def run(*args: object) -> object:
        values = {**constants, **dict(zip(_placeholders(graph_module), args, strict=True))}
        for step in steps:
            values.update(zip(step.given, step.run(*(values[node] for node in step.needed)), strict=True))
        return map_arg(output.args[0], values.__getitem__)

    return run


def _placeholders(graph_module: GraphModule) -> list[Node]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def _operations(calls: Sequence[Node]) -> Iterator[GraphOperation]:
    import torch

    root = os.path.dirname(torch.__file__) + os.sep
    crossing: set[Node] = set()
    modes = 0
    done = set()
    for node in calls:
        done.add(node)
        crossing.add(node)
        crossing -= {one for one in (node, *node.all_input_nodes) if done.issuperset(one.users)}
        modes += node.target is torch._C._set_grad_enabled
        frames = frames_of(node.meta.get("stack_trace") or "")
        path, line = next(((one.path, one.line) for one in reversed(frames) if not one.path.startswith(root)), ("", 0))
        ends = modes % 2 == 0 and all(_is_passed(one) for one in crossing)
        yield GraphOperation(_name(node), path, line, ends or node is calls[-1])


def _is_passed(node: Node) -> bool:
    import torch

    return isinstance(node.meta.get("example_value"), (torch.Tensor, torch.SymInt, torch.SymFloat, int, float))


def _name(node: Node) -> str:
    """``torch.neg``, ``Tensor.add_``, ``operator.mul``."""
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if isinstance(node.target, str):
        return node.target
    module, name = (str(getattr(node.target, key, "")) for key in ("__module__", "__name__"))
    return f"{'torch' if module == 'None' else module.lstrip('_')}.{name}"
