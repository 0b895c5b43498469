"""What compiling spent its time on, out of the spans of torch's trace."""

from __future__ import annotations

from breakscan.explanation.time_trees import CompilePart, TimeNode, time_trees
from breakscan.recording.records import SpansTimed
from breakscan.recording.traced import SpanTrees, TracedSpan


def recorded(*events: tuple[str, str, float], kernel: str | None = None, id_: str = "0/0") -> list[SpansTimed]:
    """What comes of ``(name, B or E, seconds)``."""
    trees = SpanTrees()
    said = [TracedSpan(id_, name, kind == "B", at * 1e6, kernel) for name, kind, at in events]
    return [record for span in said for record in trees.take(span)]


def tree(node: TimeNode) -> tuple[str, str, float, list[object]]:
    return node.name, node.part.value, round(node.seconds, 6), [tree(inner) for inner in node.inner]


def test_what_is_done_again_in_one_place_is_one_node() -> None:
    (record,) = recorded(
        ("dynamo", "B", 0), ("gc", "B", 1), ("gc", "E", 2), ("gc", "B", 3), ("gc", "E", 5), ("dynamo", "E", 6)
    )
    assert (record.names, record.depths, record.seconds, record.counts) == (("dynamo", "gc"), (0, 1), (6, 3), (1, 2))


def test_what_took_next_to_nothing_is_part_of_what_is_around_it() -> None:
    (record,) = recorded(("dynamo", "B", 0), ("gc", "B", 1), ("gc", "E", 1.001), ("dynamo", "E", 6))
    assert record.names == ("dynamo",)


def test_ends_that_nothing_began_and_beginnings_that_nothing_ends_do_no_harm() -> None:
    (record,) = recorded(("gc", "E", 0), ("dynamo", "B", 0), ("gc", "B", 1), ("dynamo", "E", 6))
    assert record.seconds == (6, 5)
    assert not recorded(("dynamo", "B", 0))


def test_the_kernel_that_is_tuned_is_a_node() -> None:
    name = "CachingAutotuner.benchmark_all_configs"
    (root,) = time_trees(recorded((name, "B", 0), (name, "E", 2), kernel="triton_0"))
    assert tree(root) == (name, "autotuning", 2, [("triton_0", "autotuning", 2, [])])


def test_attempts_are_one() -> None:
    spans = recorded(
        ("dynamo", "B", 0),
        ("compile_attempt_0", "B", 0), ("bytecode_tracing", "B", 0),
        ("bytecode_tracing", "E", 1), ("compile_attempt_0", "E", 1),
        ("compile_attempt_1", "B", 1), ("bytecode_tracing", "B", 1),
        ("bytecode_tracing", "E", 3), ("compile_attempt_1", "E", 3),
        ("dynamo", "E", 4),
    )  # fmt: skip
    (root,) = time_trees(spans)
    tracing = ("bytecode_tracing", "tracing", 3.0, [])
    assert tree(root) == ("dynamo", "other", 4.0, [("compile_attempt", "other", 3.0, [tracing])])
    (attempt,) = root.inner
    assert attempt.count == 2


def test_loading_is_of_a_cache_or_compiles_kernels() -> None:
    loading = "PyCodeCache.load_by_key_path"
    for around, part in (("AOTAutogradCache.inductor_load", "caches"), ("GraphLowering.compile_to_fn", "kernels")):
        (root,) = time_trees(recorded((around, "B", 0), (loading, "B", 0), (loading, "E", 2), (around, "E", 2)))
        assert root.inner[0].part == CompilePart(part)
