"""Builds the trees of what compilations spent their time on, out of what was recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from breakscan.explain.context import ExplainContext
from breakscan.explain.time_tree import CompilePart, TimeNode
from breakscan.record.records import SpansTimed, TracingTimed

_TRACING = "bytecode_tracing"
_ATTEMPT = re.compile(r"compile_attempt_\d+")
_LOADING = "PyCodeCache.load_by_key_path"
_PARTS = {
    _TRACING: CompilePart.TRACING,
    "build_guards": CompilePart.GUARDS,
    "backend_compile": CompilePart.AOT_AUTOGRAD,
    "create_aot_dispatcher_function": CompilePart.AOT_AUTOGRAD,
    "entire_backward_compile": CompilePart.AOT_AUTOGRAD,
    "min_cut_rematerialization_partition": CompilePart.AOT_AUTOGRAD,
    "compile_fx.<locals>.fw_compiler_base": CompilePart.INDUCTOR,
    "compile_fx.<locals>.bw_compiler": CompilePart.INDUCTOR,
    "inductor_compile": CompilePart.INDUCTOR,
    "inductor_import": CompilePart.INDUCTOR,
    "_recursive_pre_grad_passes": CompilePart.INDUCTOR,
    "_recursive_joint_graph_passes": CompilePart.INDUCTOR,
    "_recursive_post_grad_passes": CompilePart.INDUCTOR,
    "async_compile.wait": CompilePart.KERNELS,
    "async_compile.precompile": CompilePart.KERNELS,
    "compile_file": CompilePart.KERNELS,
    "AotCodeCompiler.compile": CompilePart.KERNELS,
    "reload_kernel_in_parent": CompilePart.KERNELS,
    "CachingAutotuner.slow_precompile_config": CompilePart.KERNELS,
    "CachingAutotuner.benchmark_all_configs": CompilePart.AUTOTUNING,
    "CachingAutotuner.coordinate_descent_tuning": CompilePart.AUTOTUNING,
    "CachingAutotuner.combo_sequential_autotune": CompilePart.AUTOTUNING,
    "benchmark_fused_nodes": CompilePart.AUTOTUNING,
    "benchmark_codegened_module": CompilePart.AUTOTUNING,
    "AOTAutogradCache.inductor_load": CompilePart.CACHES,
    "TritonBundler.read_and_emit": CompilePart.CACHES,
    "inductor_codecache_torch_key": CompilePart.CACHES,
    "CacheBase.get_system.triton_key": CompilePart.CACHES,
    "CUDAGraphNode.record": CompilePart.CUDA_GRAPHS,
    "cudagraphify.get_container": CompilePart.CUDA_GRAPHS,
}
"""Of torch's spans, by name.  Any other is part of what is around it."""
_TEMPLATES = ("_template_autotuning", "_template_precompiling")


def time_trees(
    spans: Iterable[SpansTimed], traced: Sequence[TracingTimed], lens: ExplainContext
) -> tuple[TimeNode, ...]:
    """Those of one compilation: itself, its backward, what its graphs did when they first ran.  The lines are below
    what torch calls tracing; where torch tells nothing of that, they are trees of their own."""
    lines = [node for record in traced for node in _lines(record, lens)]
    trees = [_with_lines(tree, lines) for record in spans for tree in _spans(record)]
    if any(node.name == _TRACING for tree in trees for node in tree.all()):
        return tuple(trees)
    return (*trees, *lines)


def _spans(record: SpansTimed) -> list[TimeNode]:
    nodes = [
        TimeNode(_ATTEMPT.sub("compile_attempt", name), CompilePart.OTHER, seconds, count)
        for name, seconds, count in zip(record.names, record.seconds, record.counts, strict=True)
    ]
    return [_with_parts(tree, CompilePart.OTHER) for tree in _nested(nodes, record.depths)]


def _lines(record: TracingTimed, lens: ExplainContext) -> list[TimeNode]:
    nodes = []
    for function, line, seconds in zip(record.functions, record.lines, record.seconds, strict=True):
        code = record.codes[function]
        site, origin = lens.sources.site(code.path, line), lens.origin(code.path)
        nodes.append(TimeNode(lens.function_of(code), CompilePart.TRACING, seconds, 1, site, origin))
    return _nested(nodes, record.depths)


def _nested(nodes: Sequence[TimeNode], depths: Sequence[int]) -> list[TimeNode]:
    """The trees that nodes in order make."""
    inner: dict[int, list[TimeNode]] = {}
    for node, depth in zip(reversed(nodes), reversed(depths), strict=True):
        below = inner.pop(depth + 1, [])
        inner.setdefault(depth, []).insert(0, replace(node, inner=_merged(below)))
    return inner.get(0, [])


def _merged(nodes: Sequence[TimeNode]) -> tuple[TimeNode, ...]:
    """Those of one name and one line as one: what was started over, and did the same again."""
    found: dict[object, TimeNode] = {}
    for node in nodes:
        key = node.name, node.site
        known = found.get(key)
        if known is not None:
            node = replace(
                known,
                seconds=known.seconds + node.seconds,
                count=known.count + node.count,
                inner=_merged((*known.inner, *node.inner)),
            )
        found[key] = node
    return tuple(found.values())


def _with_parts(node: TimeNode, around: CompilePart) -> TimeNode:
    part = _part_of(node.name, around)
    return replace(node, part=part, inner=tuple(_with_parts(inner, part) for inner in node.inner))


def _part_of(name: str, around: CompilePart) -> CompilePart:
    if name == _LOADING:
        # It runs the generated module, which has its kernels compiled, or finds them in a cache.
        return around if around is CompilePart.CACHES else CompilePart.KERNELS
    return CompilePart.AUTOTUNING if name.endswith(_TEMPLATES) else _PARTS.get(name, around)


def _with_lines(tree: TimeNode, lines: Sequence[TimeNode]) -> TimeNode:
    if tree.name == _TRACING:
        return replace(tree, inner=(*tree.inner, *lines))
    return replace(tree, inner=tuple(_with_lines(node, lines) for node in tree.inner))
