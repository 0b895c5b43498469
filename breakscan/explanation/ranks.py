"""Compares and merges the ranks of a distributed run: jobs hang where ranks differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

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
    differences = [*_breaks(runs), *_frames(runs), *_recompiles(runs), *_steps(runs), *_exports(runs)]
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
    ranks = sorted(by_rank)
    first = by_rank[ranks[0]]
    breaks, frames, recompiles = list(first.breaks), list(first.frames), list(first.recompiles)
    failures, exports = list(first.export_problems), list(first.exports)
    rules = dict(first.export_rules)
    notices = dict.fromkeys(first.notices)
    for rank in ranks[1:]:
        other = by_rank[rank]
        added_breaks = _missing(other.breaks, breaks, _break_key)
        breaks += [replace(s, compile_ids=tuple(f"rank{rank}:{i}" for i in s.compile_ids)) for s in added_breaks]
        frames += _missing(other.frames, frames, _frame_key)
        failures += _missing(other.export_problems, failures, _failure_key)
        rules |= other.export_rules
        exports += _missing(other.exports, exports, _export_key)
        causes = max((r.cause for r in recompiles), default=-1) + 1
        added = _missing(other.recompiles, recompiles, _recompile_key)
        recompiles += [replace(r, compile_id=f"rank{rank}:{r.compile_id}", cause=causes + r.cause) for r in added]
        notices |= dict.fromkeys(other.notices)
    return replace(
        first,
        breaks=breaks,
        frames=frames,
        recompiles=recompiles,
        exports=exports,
        export_problems=failures,
        export_rules=rules,
        notices=tuple(notices),
        processes=sum(explanation.processes for explanation in by_rank.values()),
        ranks=compare(by_rank, world_size=world_size, endings=endings),
    )


def _breaks(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    counts = {rank: {_break_key(site): site.count for site in run.breaks} for rank, run in runs.items()}
    for site in _each([run.breaks for run in runs.values()], _break_key):
        times = {rank: found.get(_break_key(site), 0) for rank, found in counts.items()}
        name = f"{site.rule.id} {site.rule.name}" if site.rule else site.gb_type
        yield from _if_differing(f"graph breaks{_at(site.site)} ({name})", site.site, times, _times)


def _frames(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    """Functions that fall back to eager on some ranks only: these run other collectives than the rest, or none."""
    fates = {rank: {_frame_key(fate): fate for fate in run.frames} for rank, run in runs.items()}
    for fate in _each([run.frames for run in runs.values()], _frame_key):
        if fate.break_site is not None:
            # Reported as that break.
            continue
        own = {rank: found.get(_frame_key(fate)) for rank, found in fates.items()}
        ends = {rank: (one.status, one.reason.text) if one else None for rank, one in own.items()}
        yield from _if_differing(f"{fate.function}{_at(fate.site)}", fate.site, ends, _fallback)


def _fallback(end: tuple[FrameStatus, str] | None) -> str:
    return f"{end[0].words}: {end[1]}" if end else "no fallback to eager"


def _recompiles(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    grouped = {rank: _by(run.recompiles, _recompile_key) for rank, run in runs.items()}
    for recompile in _each([run.recompiles for run in runs.values()], _recompile_key):
        groups = {rank: found.get(_recompile_key(recompile), []) for rank, found in grouped.items()}
        if len(set(map(len, groups.values()))) > 1:
            about = f", because of {recompile.subject}" if recompile.subject else ""
            what = f"recompiles of {recompile.function or _UNNAMED}{_at(recompile.site)}{about}"
            yield RankDifference(what, recompile.site, {rank: _met(group) for rank, group in groups.items()})


def _times(number: int) -> str:
    return "never" if number == 0 else "once" if number == 1 else f"{number} times"


def _met(group: Sequence[Recompile]) -> str:
    """The number of times, with the values that the guard met."""
    values = [group[0].old, *(recompile.new for recompile in group)] if group else []
    known = list(dict.fromkeys(value for value in values if value is not None))
    return _times(len(group)) + (f": {', then '.join(known[:_MOST_LISTED])}" if len(known) > 1 else "")


def _steps(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    """Recompiles that all ranks have, but not after as many runs of graphs: meanwhile, the others wait for the rank
    that compiles."""
    grouped = {rank: _by(run.recompiles, _recompile_key) for rank, run in runs.items()}
    for recompile in _each([run.recompiles for run in runs.values()], _recompile_key):
        key = _recompile_key(recompile)
        before = {rank: tuple(one.runs for one in groups.get(key, ())) for rank, groups in grouped.items()}
        if len(set(map(len, before.values()))) == 1 and not any(None in numbers for numbers in before.values()):
            what = f"when {recompile.function or _UNNAMED}{_at(recompile.site)} is recompiled"
            yield from _if_differing(what, recompile.site, before, _after_runs)


def _after_runs(numbers: Sequence[int | None]) -> str:
    return f"after {_listed(map(str, numbers))} runs of graphs"


def _exports(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    """Problems of exports on some of the ranks that export something.  One rank often exports for all."""
    runs = {rank: run for rank, run in runs.items() if run.exports}
    counts = {rank: {_failure_key(one): one.count for one in run.export_problems} for rank, run in runs.items()}
    for failure in _each([run.export_problems for run in runs.values()], _failure_key):
        times = {rank: found.get(_failure_key(failure), 0) for rank, found in counts.items()}
        what = f"what ends exports{_at(failure.site)} ({failure.function or _UNNAMED})"
        yield from _if_differing(what, failure.site, times, _times)


def _graphs(runs: Mapping[int, Explanation], *, unexplained: bool) -> Iterator[RankDifference]:
    """The graphs that were compiled: in all, and by function where nothing else says why it differs."""
    total = {rank: _ops(run.graphs) for rank, run in runs.items()}
    yield from _if_differing("what was compiled in all", None, total, _graphs_of)
    if unexplained:
        found = {rank: _by(run.graphs, _graph_key) for rank, run in runs.items()}
        for graph in _each([run.graphs for run in runs.values()], _graph_key):
            ops = {rank: _ops(graphs.get(_graph_key(graph), [])) for rank, graphs in found.items()}
            what = f"graphs of {graph.function or _UNNAMED}{_at(graph.site)}"
            yield from _if_differing(what, graph.site, ops, _graphs_of)


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


def _each(lists: Iterable[Iterable[T]], key: Callable[[T], Hashable]) -> list[T]:
    """The things in any of the lists, each once."""
    found: dict[Hashable, T] = {}
    for things in lists:
        for thing in things:
            found.setdefault(key(thing), thing)
    return list(found.values())


def _missing(things: Iterable[T], known: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    keys = {key(thing) for thing in known}
    return [thing for thing in things if key(thing) not in keys]


def _by(things: Iterable[T], key: Callable[[T], Hashable]) -> dict[Hashable, list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups
