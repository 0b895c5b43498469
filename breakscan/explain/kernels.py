"""What the backend made of each graph: AOTAutograd's graphs, what they save, and the kernels of the generated code.

Where the lines of kernels come from: Triton's kernels and calls of libraries carry the names of their nodes as a
comment.  C++ kernels carry the names of operators alone: they are given the lines of those operators that stand in one
line only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from breakscan.explain.compiled import Generated, Graph, Kernel, KernelKind, SavedValue
from breakscan.explain.context import ExplainContext
from breakscan.explain.kernel_calls import KernelCall, kernel_calls
from breakscan.model.findings import Site
from breakscan.record.parsers.graphs import bytes_of, number_of
from breakscan.record.parsers.guards import readable
from breakscan.record.records import (
    AutogradGraph,
    AutogradNode,
    BytesMoved,
    CodeGenerated,
    CodeLine,
    DdpSplit,
    GraphCompiled,
    Record,
    Saved,
    StackFrame,
)

_PHASES = ("forward", "inference", "backward")
_CPP_NAME = re.compile(r"cpp_fused_(?P<operators>\w+)_\d+$")
_COMPOSITE = frozenset(
    {
        "_log_softmax",
        "_log_softmax_backward_data",
        "_softmax",
        "_softmax_backward_data",
        "_to_copy",
        "_unsafe_view",
        "embedding_dense_backward",
        "gelu",
        "gelu_backward",
        "native_batch_norm",
        "native_dropout",
        "native_dropout_backward",
        "native_group_norm",
        "native_layer_norm",
        "native_layer_norm_backward",
        "nll_loss_forward",
        "silu",
        "silu_backward",
        "t",
        "threshold_backward",
        "transpose",
        "tril",
        "triu",
    }
)
"""Operators that C++ kernels are named after, and that AOTAutograd's graph holds in parts."""


@dataclass(slots=True)
class _Made:
    """What there is for one phase of one compile, each in the order of its graphs."""

    graphs: list[AutogradGraph]
    codes: list[CodeGenerated]
    bytes: list[int]


def with_generated(
    graphs: Sequence[Graph], compiled: Sequence[GraphCompiled], records: Iterable[Record], lens: ExplainContext
) -> list[Graph]:
    """The graphs with what the backend made of them.  ``compiled`` are their records, in the same order."""
    made: dict[tuple[str, str], _Made] = defaultdict(lambda: _Made([], [], []))
    parts: dict[str, list[int]] = defaultdict(list)
    for record in records:
        if isinstance(record, AutogradGraph):
            made[record.compile_id, record.phase].graphs.append(record)
        elif isinstance(record, CodeGenerated):
            made[record.compile_id, record.phase or "inference"].codes.append(record)
        elif isinstance(record, BytesMoved) and record.compile_id is not None:
            made[record.compile_id, record.phase or "inference"].bytes.append(record.bytes)
        elif isinstance(record, DdpSplit):
            parts[record.compile_id] += record.ops
    done: set[str] = set()
    result = []
    for graph, source in zip(graphs, compiled, strict=True):
        split = tuple(parts.get(graph.compile_id, ()))
        # Generated code is known by frame only: several graphs of one frame cannot be distinguished.
        phases = () if graph.compile_id in done else _PHASES
        done.add(graph.compile_id)
        generated = [
            item
            for phase in phases
            if (found := made.get((graph.compile_id, phase)))
            for item in _generated(phase, found, source, bool(split), lens)
        ]
        result.append(replace(graph, generated=tuple(generated), split_by_ddp=split))
    return result


def _generated(
    phase: str, made: _Made, source: GraphCompiled, split: bool, lens: ExplainContext
) -> Iterator[Generated]:
    # Backward graphs are generated when they are first run, the last part first.
    codes = sorted(made.codes, key=lambda written: number_of(written.code))
    moved: list[int | None] = [*made.bytes] if len(made.bytes) == len(codes) else []
    if phase == "backward":
        moved.reverse()
    for graph, code, count in zip_longest(made.graphs, codes, moved):
        lines = _Lines(source, graph, phase, lens)
        yield Generated(
            phase=phase,
            ops=graph.ops if graph else None,
            saved=tuple(_saved(one, () if split else source.inputs, lines) for one in graph.saved) if graph else (),
            kernels=tuple(_kernels(code.code, graph, lines)) if code else (),
            bytes_moved=count,
            path=code.path or None if code else None,
            code=code.code if code else None,
        )


def _saved(saved: Saved, inputs: Sequence[str], lines: _Lines) -> SavedValue:
    """By the program's name where it is an input."""
    known = saved.input is not None and saved.input < len(inputs)
    name = readable(inputs[saved.input]) if known and saved.input is not None else saved.name
    value = f"{saved.type} {name}".strip()
    return SavedValue(value, bytes_of(saved.type), lines.of_value(saved.name), saved.input is not None)


def _kernels(code: str, graph: AutogradGraph | None, lines: _Lines) -> Iterator[Kernel]:
    """Each kernel once, in the order of their first calls."""
    groups: dict[str, list[KernelCall]] = {}
    for call in kernel_calls(code):
        groups.setdefault(call.kernel, []).append(call)
    known = {operator for node in graph.nodes if (operator := _plain(node))} if graph else set()
    for name, calls in groups.items():
        operators = tuple(dict.fromkeys(operator for call in calls for operator in call.operators))
        found = [line for call in calls for line in lines.of(call)]
        if calls[0].kind is KernelKind.CPP:
            operators = tuple(f"aten.{operator}" for operator in _operators_in(name, known | _COMPOSITE))
            found = lines.of_operators(operators)
        yield Kernel(name, calls[0].kind, len(calls), operators, tuple(dict.fromkeys(found)))


def _operators_in(kernel: str, known: Collection[str]) -> Iterator[str]:
    """The operators that the name of a C++ kernel lists: ``mul`` and ``threshold_backward`` in
    ``cpp_fused_mul_threshold_backward_0``.  What is not known stays in one piece."""
    found = _CPP_NAME.match(kernel)
    words = found["operators"].split("_") if found else []
    unknown: list[str] = []
    while words:
        length = next((n for n in range(len(words), 0, -1) if "_".join(words[:n]) in known), 0)
        if length and unknown:
            yield "_".join(unknown)
            unknown = []
        if length:
            yield "_".join(words[:length])
        else:
            unknown.append(words[0])
        words = words[max(length, 1) :]
    if unknown:
        yield "_".join(unknown)


def _plain(node: AutogradNode) -> str | None:
    """``relu`` for ``aten.relu.default``."""
    parts = (node.operator or "").split(".")
    return parts[1] if len(parts) > 1 else None


class _Lines:
    """The lines that the nodes of a graph come from."""

    def __init__(self, source: GraphCompiled, graph: AutogradGraph | None, phase: str, lens: ExplainContext) -> None:
        self._lens = lens
        self._phase = phase
        self._dynamo = {node.name: node.line for node in source.nodes if node.line is not None}
        self._autograd: dict[str, StackFrame] = {}
        self._of_operator: dict[str, set[StackFrame]] = defaultdict(set)
        traced = dict.fromkeys(self._dynamo.values())
        now = [_now(line, traced, lens) for line in graph.lines] if graph else []
        for node in graph.nodes if graph else ():
            place = None if node.line is None else now[node.line]
            if place is None:
                continue
            self._autograd[node.name] = place
            if operator := _plain(node):
                self._of_operator[f"aten.{operator}"].add(place)

    def of(self, call: KernelCall) -> list[Site]:
        exact = [line for name in call.autograd_nodes if (line := self._autograd.get(name))]
        named = [line for name in call.nodes if (line := self._named(name))]
        return self._sites(exact or named)

    def of_value(self, name: str) -> Site | None:
        return next(iter(self._sites(filter(None, [self._autograd.get(name)]))), None)

    def of_operators(self, operators: Iterable[str]) -> list[Site]:
        return self._sites(line for op in operators if len(lines := self._of_operator[op]) == 1 for line in lines)

    def _named(self, name: str) -> StackFrame | None:
        """Comments name a node of the backward as AOTAutograd does, any other as Dynamo does; the names of both can be
        the same."""
        maps: list[Mapping[str, StackFrame]] = [self._dynamo, self._autograd]
        if self._phase == "backward":
            maps.reverse()
        return next((names[name] for names in maps if name in names), None)

    def _sites(self, lines: Iterable[StackFrame]) -> list[Site]:
        return [self._lens.sources.site(line.path, line.line) for line in dict.fromkeys(lines)]


def _now(line: CodeLine, traced: Iterable[StackFrame], lens: ExplainContext) -> StackFrame | None:
    """Where the line is now: a graph out of a cache names the lines of the program that was compiled then."""
    places = {(frame.path, frame.line): frame for frame in traced}
    same = places.get((line.place.path, line.place.line))
    if same is not None and lens.sources.line(same.path, same.line) in (line.code, None):
        return same
    moved = [frame for frame in places.values() if lens.sources.line(frame.path, frame.line) == line.code]
    return moved[0] if len(moved) == 1 else None
