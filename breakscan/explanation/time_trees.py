"""The time of a compilation as trees, of which flame graphs are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from breakscan.recording.records import SpansTimed


class CompilePart(str, Enum):
    """The parts of the compiler."""

    TRACING = "tracing"
    """Dynamo goes through the program's code."""
    GUARDS = "guards"
    AOT_AUTOGRAD = "aot-autograd"
    INDUCTOR = "inductor"
    """Its passes, and the code that it generates."""
    KERNELS = "kernels"
    """Triton's compiler, or the one for C++."""
    AUTOTUNING = "autotuning"
    CACHES = "caches"
    """Loading what an earlier compilation has left."""
    CUDA_GRAPHS = "cuda-graphs"
    """Recording them."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TimeNode:
    """Something that the compiler did, by torch's name for it, with all that it did meanwhile; ``count`` is how often
    it was done."""

    name: str
    part: CompilePart
    seconds: float
    count: int = 1
    inner: Sequence[TimeNode] = ()

    @property
    def own_seconds(self) -> float:
        return max(0.0, self.seconds - sum(node.seconds for node in self.inner))

    def all(self) -> Iterator[TimeNode]:
        """The node, and what is in it."""
        yield self
        for node in self.inner:
            yield from node.all()


_ATTEMPT = re.compile(r"compile_attempt_\d+")
_LOADING = "PyCodeCache.load_by_key_path"
_PARTS = {
    "bytecode_tracing": CompilePart.TRACING,
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
"""The parts of torch's spans, by name.  Any other is part of what is around it."""
_TEMPLATES = ("_template_autotuning", "_template_precompiling")


def time_trees(spans: Iterable[SpansTimed], *, is_cached: bool = False) -> tuple[TimeNode, ...]:
    """The trees of one compilation: itself, its backward, what its graphs did when they first ran.

    Where all code was out of caches (``is_cached``), no kernel is compiled: to load one can take as long as to compile
    it, as Inductor finds out about the C++ compiler first.
    """
    return tuple(tree for record in spans for tree in _spans(record, is_cached))


def _spans(record: SpansTimed, is_cached: bool) -> list[TimeNode]:
    nodes = [
        TimeNode(_ATTEMPT.sub("compile_attempt", name), CompilePart.OTHER, seconds, count)
        for name, seconds, count in zip(record.names, record.seconds, record.counts, strict=True)
    ]
    return [_with_parts(tree, CompilePart.OTHER, is_cached) for tree in _nested(nodes, record.depths)]


def _nested(nodes: Sequence[TimeNode], depths: Sequence[int]) -> list[TimeNode]:
    """The trees that nodes in order make."""
    inner: dict[int, list[TimeNode]] = {}
    for node, depth in zip(reversed(nodes), reversed(depths), strict=True):
        below = inner.pop(depth + 1, [])
        inner.setdefault(depth, []).insert(0, replace(node, inner=_merged(below)))
    return inner.get(0, [])


def _merged(nodes: Sequence[TimeNode]) -> tuple[TimeNode, ...]:
    """The nodes, with those of one name as one: what was started over, and did the same again."""
    found: dict[str, TimeNode] = {}
    for node in nodes:
        known = found.get(node.name)
        if known is not None:
            node = replace(
                known,
                seconds=known.seconds + node.seconds,
                count=known.count + node.count,
                inner=_merged((*known.inner, *node.inner)),
            )
        found[node.name] = node
    return tuple(found.values())


def _with_parts(node: TimeNode, around: CompilePart, is_cached: bool) -> TimeNode:
    part = _part_of(node.name, around)
    if part is CompilePart.KERNELS and (is_cached or around is CompilePart.CACHES):
        part = CompilePart.CACHES
    return replace(node, part=part, inner=tuple(_with_parts(inner, part, is_cached) for inner in node.inner))


def _part_of(name: str, around: CompilePart) -> CompilePart:
    if name == _LOADING:
        # It runs the generated module, which has its kernels compiled, or finds them in a cache.
        return CompilePart.KERNELS
    return CompilePart.AUTOTUNING if name.endswith(_TEMPLATES) else _PARTS.get(name, around)
