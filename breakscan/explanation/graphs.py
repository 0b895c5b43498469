"""The graphs that were compiled, what the backend made of each, why it is no CUDA graph; and the Python that Inductor
generates: which kernels it calls, and where it says that they come from."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from breakscan.explanation.context import ExplainContext
from breakscan.model.findings import Origin, Site
from breakscan.model.words import grouped
from breakscan.recording.parsers.frames import frames_of
from breakscan.recording.parsers.graphs import number_of
from breakscan.recording.records import (
    AutogradGraph,
    AutogradNode,
    CodeGenerated,
    CodeLine,
    CudaGraphSkipped,
    DdpSplit,
    GraphCompiled,
    StackFrame,
)


class KernelKind(str, Enum):
    TRITON = "triton"
    CPP = "cpp"
    EXTERN = "extern"  # a library's, such as a matrix product
    FALLBACK = "fallback"  # an operator that Inductor has no kernel for: torch's own eager one, or the program's
    OTHER = "other"  # generated in another language, such as CUTLASS or Metal


_ORIGINS = re.compile(r"# .*?Source Nodes: \[(?P<nodes>.*?)\], Original ATen: \[(?P<operators>.*?)\]")
_MAPPED = re.compile(r"^#   (?P<node>\S+) => (?P<mapped>.+)$")
_RUNNING = re.compile(r"call$|partition_\d+$")  # the functions that are run, once for each run of the graph
_KINDS = {"triton": KernelKind.TRITON, "multi_kernel": KernelKind.TRITON}
_ALIASES = {"aten": "torch.ops.aten", "inductor_ops": "torch.ops.inductor", "_quantized": "torch.ops._quantized"}
"""Names that the code gives to namespaces of operators."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a kernel: the names of the nodes that it does the work of, in Dynamo's graph or AOTAutograd's, those in
    AOTAutograd's graph alone where the code names them, and the ATen operators that they come from."""

    kernel: str
    kind: KernelKind
    nodes: tuple[str, ...]
    autograd_nodes: tuple[str, ...]
    operators: tuple[str, ...]


def kernel_calls(code: str) -> Iterator[KernelCall]:
    """The calls of kernels in one run of the code, in their order; none where the code is not Python, or cut off."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = code.split("\n")
    defined = dict(_definitions(tree))
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = (node for body in bodies for node in body if isinstance(node, ast.FunctionDef))
    for function in (one for one in functions if _RUNNING.match(one.name)):
        numbers = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        comments = [(number, found) for number in numbers if (found := _ORIGINS.search(lines[number - 1]))]
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            named = _kernel(node, defined)
            if named is None:
                continue
            kernel, kind = named
            nodes: tuple[str, ...] = ()
            operators: tuple[str, ...] = ()
            # The comment before a call, which no call before it has taken.
            while kind is not KernelKind.CPP and comments and comments[0][0] < node.lineno:
                _, found = comments.pop(0)
                nodes, operators = _items(found["nodes"]), _items(found["operators"])
            mapping = _mapping(lines, defined[kernel][1]) if kernel in defined else {}
            if kind in (KernelKind.EXTERN, KernelKind.FALLBACK):
                nodes, operators = _of_one_operator(kernel, nodes, operators)
            mapped = tuple(name for node_name in nodes for name in mapping.get(node_name, ()))
            yield KernelCall(kernel, kind, nodes, mapped, operators)


def _definitions(tree: ast.Module) -> Iterator[tuple[str, tuple[KernelKind, int]]]:
    """The kernels that the module defines, each with its kind and its line."""
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        compiler, _, language = ast.unparse(node.value.func).partition(".")
        if compiler == "async_compile" and isinstance(node.targets[0], ast.Name):
            kind = KernelKind.CPP if language.startswith("cpp") else _KINDS.get(language, KernelKind.OTHER)
            yield node.targets[0].id, (kind, node.lineno)


def _kernel(call: ast.Call, defined: Mapping[str, tuple[KernelKind, int]]) -> tuple[str, KernelKind] | None:
    name = ast.unparse(call.func)
    own = name.removesuffix(".run")
    if own in defined:
        return own, defined[own][0]
    head, _, rest = name.partition(".")
    name = f"{_ALIASES[head]}.{rest}" if head in _ALIASES and rest else name
    if name.startswith("extern_kernels."):
        return name, KernelKind.EXTERN
    if name.startswith("torch.ops.") and "_alloc_from_pool" not in name:
        return name, KernelKind.FALLBACK
    return None


def _items(text: str) -> tuple[str, ...]:
    return tuple(item for item in text.split(", ") if item)


def _of_one_operator(
    kernel: str, nodes: tuple[str, ...], operators: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The comment on a library's kernel also names what its operands come from; what it does itself comes last."""
    parts = kernel.removeprefix("torch.ops.").split(".")
    own = f"aten.{parts[1]}" if parts[0] == "extern_kernels" else ".".join(parts[:2])
    return nodes[-1:], (own,) if own in operators or parts[0] != "extern_kernels" else operators[-1:]


def _mapping(lines: list[str], line: int) -> dict[str, tuple[str, ...]]:
    """The nodes of AOTAutograd's graph that each node is, by the comment above the definition at a line."""
    found: dict[str, tuple[str, ...]] = {}
    for text in reversed(lines[: line - 1]):
        if not text.startswith("#"):
            break
        if mapped := _MAPPED.match(text):
            found[mapped["node"]] = _items(mapped["mapped"])
    return found


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a graph: how often one run calls it, its ATen operators, the lines that they come from."""

    name: str
    kind: KernelKind
    calls: int
    operators: tuple[str, ...]
    lines: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """The output of the backend for a graph, for one phase: ``forward``, ``backward`` or ``inference``.  ``saved`` are
    the values that a forward keeps for its backward."""

    phase: str
    ops: int | None
    saved: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    path: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class LineStages:
    """A line of the program at each stage, None for what has no line: the operations that Dynamo traced, by name and
    number; the operators of AOTAutograd's forward and backward graphs, after decompositions; the kernels."""

    line: Site | None
    operations: Mapping[str, int]
    operators: Mapping[str, int]
    backward: Mapping[str, int]
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that was compiled: its operations, the devices of its inputs in words, the lines it was traced from, the
    break that ended it, and what running it took, on the host and on the device.  ``number`` counts from 0."""

    number: int
    compile_id: str
    function: str | None
    site: Site | None
    ops: int
    devices: tuple[str, ...]
    lines: tuple[Site, ...]
    ended_by: Site | None = None
    runs: int | None = None
    seconds: float | None = None
    device_seconds: float | None = None
    compile_seconds: float | None = None
    generated: tuple[Generated, ...] = ()
    split_by_ddp: tuple[int, ...] = ()
    stages: tuple[LineStages, ...] = ()


def traced_lines(context: ExplainContext) -> dict[str, list[int]]:
    lines = (node.line for graph in context.of(GraphCompiled) for node in graph.nodes if node.line is not None)
    of_files = grouped((line.path, line.line) for line in lines)
    return {context.sources.show(path): sorted({*found}) for path, found in of_files.items()}


_NUMBER = re.compile(r"_\d+$")  # by it, nodes of one operation differ, of which a trace has the name of the node alone
_PHASES = ("forward", "inference", "backward")
_CPP_NAME = re.compile(r"cpp_fused_(?P<operators>\w+)_\d+$")
_COMPOSITE = frozenset(
    """
    _log_softmax _log_softmax_backward_data _softmax _softmax_backward_data _to_copy _unsafe_view
    embedding_dense_backward gelu gelu_backward native_batch_norm native_dropout native_dropout_backward
    native_group_norm native_layer_norm native_layer_norm_backward nll_loss_forward silu silu_backward t
    threshold_backward transpose tril triu
    """.split()
)
"""Operators that C++ kernels are named after, and that AOTAutograd's graph holds in parts."""


_Made = tuple[Sequence[AutogradGraph], Sequence[CodeGenerated]]  # those for one phase of one compile


def reported_graphs(context: ExplainContext) -> list[Graph]:
    """The graphs with what the backend made of them, without what running them took."""
    autograd = grouped(((made.compile_id, made.phase), made) for made in context.of(AutogradGraph))
    codes = grouped(((made.compile_id, made.phase or "inference"), made) for made in context.of(CodeGenerated))
    parts = grouped((split.compile_id, ops) for split in context.of(DdpSplit) for ops in split.ops)
    result: list[Graph] = []
    for source in context.of(GraphCompiled):
        own = source.compile_id or ""
        # Generated code is known by frame only: several graphs of one frame cannot be distinguished.
        products = {phase: (autograd.pop((own, phase), ()), codes.pop((own, phase), ())) for phase in _PHASES}
        generated = [item for phase, of in products.items() for item in _generated(phase, of, source, context)]
        lines = (node.line for node in source.nodes if node.line is not None)
        graph = Graph(
            number=len(result),
            compile_id=own,
            function=context.function_of(source.frame),
            site=context.site_of(source.frame),
            ops=source.ops,
            devices=source.devices,
            lines=tuple(dict.fromkeys(context.sources.site(line.path, line.line) for line in lines)),
            compile_seconds=source.seconds or None,
            generated=tuple(generated),
            split_by_ddp=tuple(parts.get(own, ())),
            stages=_stages(source, products, generated, context),
        )
        result.append(graph)
    return result


def _stages(
    source: GraphCompiled, made: Mapping[str, _Made], generated: Iterable[Generated], context: ExplainContext
) -> tuple[LineStages, ...]:
    """The stages of each line, in the order of lines."""
    counts: dict[Site | None, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for node in source.nodes:
        site = context.sources.site(node.line.path, node.line.line) if node.line else None
        counts[site]["traced"][node.operation or _NUMBER.sub("", node.name)] += 1
    for phase, (graphs, _) in made.items():
        for graph in graphs:
            lines = _Lines(source, graph, phase, context)
            for one in graph.nodes:
                if one.operator:
                    name = ".".join(one.operator.split(".")[:2])
                    counts[lines.of_value(one.name)]["backward" if phase == "backward" else "forward"][name] += 1
    for kernel in (kernel for one in generated for kernel in one.kernels):
        for site in kernel.lines or (None,):
            counts[site]["kernels"][kernel.name] += 1
    ordered = sorted(counts.items(), key=lambda item: (item[0] is None, item[0] and (item[0].path, item[0].line)))
    return tuple(
        LineStages(site, of["traced"], of["forward"], of["backward"], tuple(of["kernels"])) for site, of in ordered
    )


def _generated(phase: str, made: _Made, source: GraphCompiled, context: ExplainContext) -> Iterator[Generated]:
    # Backward graphs are generated when they are first run, the last part first.
    for graph, code in zip_longest(made[0], sorted(made[1], key=lambda written: number_of(written.code))):
        lines = _Lines(source, graph, phase, context)
        yield Generated(
            phase=phase,
            ops=graph.ops if graph else None,
            saved=graph.saved if graph else (),
            kernels=tuple(_kernels(code.code, graph, lines)) if code else (),
            path=code.path or None if code else None,
            code=code.code if code else None,
        )


def _kernels(code: str, graph: AutogradGraph | None, lines: "_Lines") -> Iterator[Kernel]:
    """Each kernel once, in the order of their first calls."""
    known = {operator for node in graph.nodes if (operator := _plain(node))} if graph else set()
    for name, calls in grouped((call.kernel, call) for call in kernel_calls(code)).items():
        operators = tuple(dict.fromkeys(operator for call in calls for operator in call.operators))
        found = [line for call in calls for line in lines.of(call)]
        if calls[0].kind is KernelKind.CPP:
            operators = tuple(f"aten.{operator}" for operator in _operators_in(name, known | _COMPOSITE))
            found = lines.of_operators(operators)
        yield Kernel(name, calls[0].kind, len(calls), operators, tuple(dict.fromkeys(found)))


def _operators_in(kernel: str, known: Collection[str]) -> Iterator[str]:
    """The operators that the name of a C++ kernel lists: ``mul`` and ``threshold_backward`` in
    ``cpp_fused_mul_threshold_backward_0``.  What is not known stays in one piece."""
    names = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    found = _CPP_NAME.match(kernel)
    for part in re.split(rf"(?:^|_)({names})(?=_|$)", found["operators"]) if found else ():
        if part:
            yield part if part in known else part.removeprefix("_")


def _plain(node: AutogradNode) -> str | None:
    """``relu`` for ``aten.relu.default``."""
    parts = (node.operator or "").split(".")
    return parts[1] if len(parts) > 1 else None


class _Lines:
    def __init__(self, source: GraphCompiled, graph: AutogradGraph | None, phase: str, context: ExplainContext) -> None:
        self._context = context
        self._phase = phase
        self._dynamo = {node.name: node.line for node in source.nodes if node.line is not None}
        self._autograd: dict[str, StackFrame] = {}
        self._of_operator: dict[str, set[StackFrame]] = defaultdict(set)
        traced = dict.fromkeys(self._dynamo.values())
        now = [_now(line, traced, context) for line in graph.lines] if graph else []
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
        """Comments name a node of the backward as AOTAutograd does, others as Dynamo does; both can be the same."""
        maps: list[Mapping[str, StackFrame]] = [self._dynamo, self._autograd]
        if self._phase == "backward":
            maps.reverse()
        return next((names[name] for names in maps if name in names), None)

    def _sites(self, lines: Iterable[StackFrame]) -> list[Site]:
        return [self._context.sources.site(line.path, line.line) for line in dict.fromkeys(lines)]


def _now(line: CodeLine, traced: Iterable[StackFrame], context: ExplainContext) -> StackFrame | None:
    """The line as it is now: a graph out of a cache names the lines of the program that was compiled then."""
    places = {(frame.path, frame.line): frame for frame in traced}
    same = places.get((line.place.path, line.place.line))
    if same is not None and context.sources.line(same.path, same.line) in (line.code, None):
        return same
    moved = [frame for frame in places.values() if context.sources.line(frame.path, frame.line) == line.code]
    return moved[0] if len(moved) == 1 else None


@dataclass(frozen=True, slots=True)
class CudaGraphSkip:
    """A reason for which graphs did not run as CUDA graphs, with the line that torch blames, and a count."""

    reason: str
    site: Site | None
    compile_ids: tuple[str, ...]
    count: int


_SAID_ALREADY = re.compile(r"^(?:skipping cudagraphs? (?:due to|because) )+", re.I)
_FOUND_FROM = re.compile(r"\.?\s*Found from\s*:.*", re.S)


def cudagraph_skips(context: ExplainContext) -> list[CudaGraphSkip]:
    """Each reason at each line once, in the order in which they came."""
    groups: dict[tuple[str, Site | None], list[CudaGraphSkipped]] = {}
    for record in context.of(CudaGraphSkipped):
        reason = _SAID_ALREADY.sub("", _FOUND_FROM.sub("", record.reason)).strip()
        frames = frames_of(record.reason)
        where = [one for one in frames if context.origin(one.path) is not Origin.FRAMEWORK] or frames
        site = context.sources.site(where[-1].path, where[-1].line) if where else None
        groups.setdefault((reason, site), []).append(record)
    return [
        CudaGraphSkip(
            reason=reason,
            site=site,
            compile_ids=tuple(dict.fromkeys(skip.compile_id for skip in skips if skip.compile_id)),
            count=len(skips),
        )
        for (reason, site), skips in groups.items()
    ]
