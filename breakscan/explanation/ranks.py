"""Compares and merges the ranks of a distributed run: jobs hang where ranks differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.exports import Export
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.graphs import Graph
from breakscan.explanation.rank_report import RankDifference, RankEnding, RankReport, exit_ending
from breakscan.explanation.recompiles import Recompile
from breakscan.model.findings import Site
from breakscan.model.problem import Problem
from breakscan.model.words import counted, place

T = TypeVar("T")
Runs: TypeAlias = Mapping[int, Explanation]
_MOST_LISTED = 4
_UNNAMED = "a function"


def compare(
    by_rank: Mapping[int, Explanation],
    *,
    world_size: int | None = None,
    endings: Mapping[int, RankEnding] | None = None,
) -> RankReport:
    """The differences between the ranks, the most important first.  ``endings`` replace the exit statuses of the
    explanations."""
    ranks = sorted(by_rank)
    if endings is None:
        endings = {rank: exit_ending(by_rank[rank].status) for rank in ranks}
    runs = {rank: by_rank[rank] for rank in ranks}
    differences = [*_breaks(runs), *_frames(runs), *_recompiles(runs), *_steps(runs)]
    differences += _graphs(runs, unexplained=not differences)
    return RankReport(max(world_size or 0, len(ranks)), ranks, dict(sorted(endings.items())), differences)


def merge(
    by_rank: Mapping[int, Explanation],
    *,
    world_size: int | None = None,
    endings: Mapping[int, RankEnding] | None = None,
) -> Explanation:
    """The explanation of the lowest rank, with the breaks, functions and recompiles that only other ranks have, and
    with what :func:`compare` finds.  Compile ids of another rank carry it in front: ``rank1:0/0``."""
    first, *others = sorted(by_rank)
    merged = by_rank[first]
    for rank in others:
        other = by_rank[rank]
        breaks = [replace(s, compile_ids=tuple(f"rank{rank}:{i}" for i in s.compile_ids)) for s in other.breaks]
        causes = max((one.cause for one in merged.recompiles), default=-1) + 1
        recompiles = [
            replace(one, compile_id=f"rank{rank}:{one.compile_id}", cause=causes + one.cause)
            for one in other.recompiles
        ]
        merged = replace(
            merged,
            breaks=_with(merged.breaks, breaks, _break_key),
            frames=_with(merged.frames, other.frames, _frame_key),
            recompiles=_with(merged.recompiles, recompiles, _recompile_key),
            exports=_with(merged.exports, other.exports, _export_key),
            export_problems=_with(merged.export_problems, other.export_problems, _failure_key),
            export_rules={**merged.export_rules, **other.export_rules},
            notices=tuple(dict.fromkeys((*merged.notices, *other.notices))),
            processes=merged.processes + other.processes,
        )
    return replace(merged, ranks=compare(by_rank, world_size=world_size, endings=endings))


def _breaks(runs: Runs) -> Iterator[RankDifference]:
    for site, found in _each(runs, lambda run: run.breaks, _break_key):
        name = f"{site.rule.id} {site.rule.name}" if site.rule else site.gb_type
        yield from _if_differing(f"graph breaks{_at(site.site)} ({name})", site.site, _counts(found), _times)


def _frames(runs: Runs) -> Iterator[RankDifference]:
    """Functions that fall back to eager on some ranks only: these run other collectives than the rest, or none."""
    for fate, found in _each(runs, lambda run: run.frames, _frame_key):
        # One with a break is reported as that break.
        if fate.break_site is None:
            ends = {rank: (own[-1].status, own[-1].reason.text) if own else None for rank, own in found.items()}
            yield from _if_differing(f"{fate.function}{_at(fate.site)}", fate.site, ends, _fallback)


def _fallback(end: tuple[FrameStatus, str] | None) -> str:
    return f"{end[0].words}: {end[1]}" if end else "no fallback to eager"


def _recompiles(runs: Runs) -> Iterator[RankDifference]:
    for recompile, found in _each(runs, lambda run: run.recompiles, _recompile_key):
        if len(set(map(len, found.values()))) > 1:
            about = f", because of {recompile.subject}" if recompile.subject else ""
            what = f"recompiles of {recompile.function or _UNNAMED}{_at(recompile.site)}{about}"
            yield RankDifference(what, recompile.site, {rank: _met(group) for rank, group in found.items()})


def _times(number: int) -> str:
    return "never" if number == 0 else "once" if number == 1 else f"{number} times"


def _met(group: Sequence[Recompile]) -> str:
    """The number of times, with the values that the guard met."""
    values = [group[0].old, *(recompile.new for recompile in group)] if group else []
    known = list(dict.fromkeys(value for value in values if value is not None))
    return _times(len(group)) + (f": {', then '.join(known[:_MOST_LISTED])}" if len(known) > 1 else "")


def _steps(runs: Runs) -> Iterator[RankDifference]:
    """Recompiles that all ranks have, but not after as many runs of graphs: meanwhile, the others wait for the rank
    that compiles."""
    for recompile, found in _each(runs, lambda run: run.recompiles, _recompile_key):
        before = {rank: tuple(one.runs for one in group) for rank, group in found.items()}
        if len(set(map(len, before.values()))) == 1 and not any(None in numbers for numbers in before.values()):
            what = f"when {recompile.function or _UNNAMED}{_at(recompile.site)} is recompiled"
            yield from _if_differing(
                what, recompile.site, before, lambda n: f"after {_listed(map(str, n))} runs of graphs"
            )


def _graphs(runs: Runs, *, unexplained: bool) -> Iterator[RankDifference]:
    """The graphs that were compiled: in all, and by function where nothing else says why it differs."""
    total = {rank: _ops(run.graphs) for rank, run in runs.items()}
    yield from _if_differing("what was compiled in all", None, total, _graphs_of)
    if unexplained:
        for graph, found in _each(runs, lambda run: run.graphs, _graph_key):
            what = f"graphs of {graph.function or _UNNAMED}{_at(graph.site)}"
            yield from _if_differing(what, graph.site, {rank: _ops(own) for rank, own in found.items()}, _graphs_of)


def _ops(graphs: Sequence[Graph]) -> tuple[int, tuple[int, ...]]:
    """The number of graphs with the operations of each, or those of all if they are many."""
    ops = [graph.ops for graph in graphs]
    return len(ops), tuple(ops if len(ops) <= _MOST_LISTED else [sum(ops)])


def _graphs_of(graphs: tuple[int, tuple[int, ...]]) -> str:
    number, ops = graphs
    return f"{counted(number, 'graph')} of {_listed(map(str, ops))} operations" if number else "no graph"


def _if_differing(
    what: str, site: Site | None, by_rank: Mapping[int, T], words: Callable[[T], str]
) -> Iterator[RankDifference]:
    if len(set(by_rank.values())) > 1:
        yield RankDifference(what, site, {rank: words(share) for rank, share in by_rank.items()})


def _at(site: Site | None) -> str:
    return f" at {place(site)}" if site else ""


def _listed(words: Iterable[str]) -> str:
    shown = list(words)
    if len(shown) > _MOST_LISTED:
        shown = [*shown[:_MOST_LISTED], f"{len(shown) - _MOST_LISTED} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "none"


def _break_key(site: BreakSite) -> Hashable:
    return (site.site.path, site.site.line, site.rule.id if site.rule else site.gb_type)


def _frame_key(fate: UncompiledFrame) -> Hashable:
    return (fate.site.path, fate.site.line, fate.function, fate.status, fate.gb_type)


def _failure_key(failure: Problem) -> Hashable:
    return (failure.site.path, failure.site.line, failure.reason)


def _export_key(export: Export) -> Hashable:
    return (export.way, export.name, export.caller, export.strict, export.status)


def _recompile_key(recompile: Recompile) -> Hashable:
    trigger = (recompile.trigger.path, recompile.trigger.line) if recompile.trigger else None
    return (recompile.site.path, recompile.site.line, recompile.function, recompile.subject, trigger)


def _graph_key(graph: Graph) -> Hashable:
    return (graph.site.path, graph.site.line, graph.function) if graph.site else graph.function


def _each(
    runs: Runs, things_of: Callable[[Explanation], Sequence[T]], key: Callable[[T], Hashable]
) -> Iterator[tuple[T, dict[int, list[T]]]]:
    """The things on any of the ranks, each once, with those of each rank that are the same."""
    found: dict[Hashable, dict[int, list[T]]] = {}
    for rank, run in runs.items():
        for thing in things_of(run):
            found.setdefault(key(thing), {rank: [] for rank in runs})[rank].append(thing)
    for same in found.values():
        yield next(filter(None, same.values()))[0], same


def _counts(found: Mapping[int, Sequence[BreakSite | Problem]]) -> dict[int, int]:
    return {rank: sum(one.count for one in own) for rank, own in found.items()}


def _with(known: Sequence[T], things: Sequence[T], key: Callable[[T], Hashable]) -> list[T]:
    """Also those of the things of which there is none yet."""
    keys = {key(thing) for thing in known}
    return [*known, *(thing for thing in things if key(thing) not in keys)]
