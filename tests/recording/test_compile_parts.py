"""What compiling spent its time on, out of the spans of torch's trace."""

from __future__ import annotations

from breakscan.explanation.compilations import CompilePart, time_by_part
from breakscan.recording.records import SpansTimed
from breakscan.recording.traced import SpanTrees, TracedSpan


def recorded(*events: tuple[str, str, float]) -> list[SpansTimed]:
    """What comes of ``(name, B or E, seconds)``."""
    trees = SpanTrees()
    said = [TracedSpan("0/0", name, kind == "B", at * 1e6) for name, kind, at in events]
    return [record for span in said for record in trees.take(span)]


def test_what_is_done_again_in_one_place_is_one_node() -> None:
    (record,) = recorded(
        ("dynamo", "B", 0), ("gc", "B", 1), ("gc", "E", 2), ("gc", "B", 3), ("gc", "E", 5), ("dynamo", "E", 6)
    )
    assert (record.names, record.depths, record.seconds) == (("dynamo", "gc"), (0, 1), (6, 3))


def test_what_took_next_to_nothing_is_part_of_what_is_around_it() -> None:
    (record,) = recorded(("dynamo", "B", 0), ("gc", "B", 1), ("gc", "E", 1.001), ("dynamo", "E", 6))
    assert record.names == ("dynamo",)


def test_ends_that_nothing_began_and_beginnings_that_nothing_ends_do_no_harm() -> None:
    (record,) = recorded(("gc", "E", 0), ("dynamo", "B", 0), ("gc", "B", 1), ("dynamo", "E", 6))
    assert record.seconds == (6, 5)
    assert not recorded(("dynamo", "B", 0))


def test_the_parts_are_what_each_took_by_itself() -> None:
    spans = recorded(
        ("dynamo", "B", 0),
        ("compile_attempt_0", "B", 0), ("bytecode_tracing", "B", 0), ("build_guards", "B", 0),
        ("build_guards", "E", 0.5), ("bytecode_tracing", "E", 1), ("compile_attempt_0", "E", 1),
        ("compile_attempt_1", "B", 1), ("bytecode_tracing", "B", 1),
        ("bytecode_tracing", "E", 3), ("compile_attempt_1", "E", 3),
        ("dynamo", "E", 4),
    )  # fmt: skip
    assert time_by_part(spans) == {CompilePart.TRACING: 2.5, CompilePart.OTHER: 1.0, CompilePart.GUARDS: 0.5}


def test_loading_is_of_a_cache_or_compiles_kernels() -> None:
    loading = "PyCodeCache.load_by_key_path"
    for around, part in (("AOTAutogradCache.inductor_load", "caches"), ("GraphLowering.compile_to_fn", "kernels")):
        spans = recorded((around, "B", 0), (loading, "B", 0), (loading, "E", 2), (around, "E", 2))
        assert time_by_part(spans) == {CompilePart(part): 2.0}
        assert time_by_part(spans, is_cached=True) == {CompilePart.CACHES: 2.0}
