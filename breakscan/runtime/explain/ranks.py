"""What the ranks of a distributed run have in common, and where they differ: that is how jobs hang."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeVar

from breakscan.findings import Site
from breakscan.runtime.exit_status import signal_name
from breakscan.runtime.explain.compiled import Graph
from breakscan.runtime.explain.explanation import (
    BreakSite,
    Explanation,
    RankDifference,
    RankReport,
    Recompile,
    UncompiledFrame,
)

T = TypeVar("T")

NO_RECORDING = "left no recording"
_NEVER = "never"
_MOST_LISTED = 4
_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|lib(?=/python3))/")
_STATUS = {"eager": "runs eager", "raised": "fails to compile", "passed-over": "nothing to compile"}


def compare(
    by_rank: Mapping[int, Explanation],
    *,
    world_size: int | None = None,
    endings: Mapping[int, str] | None = None,
) -> RankReport:
    """Where the ranks differ, most telling first.  ``endings`` says how ranks ended, where more is known than the
    explanations tell, also of ranks that left none."""
    ranks = sorted(by_rank)
    told = {rank: ending(by_rank[rank].status) for rank in ranks} | dict(endings or {})
    runs = {rank: by_rank[rank] for rank in ranks}
    differences = [*_breaks(runs), *_frames(runs), *_recompiles(runs), *_steps(runs), *_order(runs)]
    differences += _graphs(runs, unexplained=not differences)
    return RankReport(max(world_size or 0, len(ranks)), ranks, dict(sorted(told.items())), differences)


def merge(
    by_rank: Mapping[int, Explanation],
    *,
    world_size: int | None = None,
    endings: Mapping[int, str] | None = None,
) -> Explanation:
    """The explanation of the lowest rank, with the breaks, functions and recompiles that only other ranks have, and
    with what :func:`compare` finds.  Compile ids of another rank carry it in front: ``rank1:0/0``."""
    ranks = sorted(by_rank)
    first = by_rank[ranks[0]]
    breaks, frames, recompiles = list(first.breaks), list(first.frames), list(first.recompiles)
    notices = dict.fromkeys(first.notices)
    for rank in ranks[1:]:
        other = by_rank[rank]
        added_breaks = _missing(other.breaks, breaks, _break_key)
        breaks += [replace(s, compile_ids=tuple(f"rank{rank}:{i}" for i in s.compile_ids)) for s in added_breaks]
        frames += _missing(other.frames, frames, _frame_key)
        causes = max((r.cause for r in recompiles), default=-1) + 1
        added = _missing(other.recompiles, recompiles, _recompile_key)
        recompiles += [replace(r, compile_id=f"rank{rank}:{r.compile_id}", cause=causes + r.cause) for r in added]
        notices |= dict.fromkeys(other.notices)
    return replace(
        first,
        breaks=breaks,
        frames=frames,
        recompiles=recompiles,
        notices=tuple(notices),
        processes=sum(explanation.processes for explanation in by_rank.values()),
        ranks=compare(by_rank, world_size=world_size, endings=endings),
    )


def ending(status: int | None) -> str:
    """How a rank ended, as a report says it of one: ``finished with exit status 0``."""
    if status is None:
        return "ended in a way that was not recorded"
    if status >= 0:
        return f"finished with exit status {status}"
    return f"was ended by {signal_name(-status)}"


def ranks_in_words(ranks: Iterable[int]) -> str:
    """``rank 1``; ``ranks 0-3 and 5``."""
    numbers = sorted(ranks)
    # Neighbours have the same distance to their place in the list.
    runs = [[n for _, n in group] for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    listed = " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""
    return f"rank{'' if len(numbers) == 1 else 's'} {listed}"


def alike(by_rank: Mapping[int, str]) -> list[tuple[str, str]]:
    """The ranks of which the same is said, in words, and what: the many first."""
    groups: dict[str, list[int]] = {}
    for rank, said in sorted(by_rank.items()):
        groups.setdefault(said, []).append(rank)
    return [(ranks_in_words(ranks), said) for said, ranks in sorted(groups.items(), key=lambda item: -len(item[1]))]


def _breaks(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    counts = {rank: {_break_key(site): site.count for site in run.breaks} for rank, run in runs.items()}
    for site in _each([run.breaks for run in runs.values()], _break_key):
        said = {rank: _times(found.get(_break_key(site), 0)) for rank, found in counts.items()}
        named = f"{site.rule.id} {site.rule.name}" if site.rule else site.gb_type
        yield from _difference(f"graph breaks at {_place(site.site)} ({named})", site.site, said)


def _frames(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    """Functions that fall back to eager on some ranks only: these run other collectives than the rest, or none."""
    fates = {rank: {_frame_key(fate): fate for fate in run.frames} for rank, run in runs.items()}
    for fate in _each([run.frames for run in runs.values()], _frame_key):
        if fate.break_site is not None:
            # Reported as that break.
            continue
        said = {}
        for rank, found in fates.items():
            own = found.get(_frame_key(fate))
            said[rank] = "no fallback to eager" if own is None else f"{_STATUS[own.status.value]}: {own.reason}"
        yield from _difference(f"{fate.function} at {_place(fate.site)}", fate.site, said)


def _recompiles(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    grouped = {rank: _by(run.recompiles, _recompile_key) for rank, run in runs.items()}
    for recompile in _each([run.recompiles for run in runs.values()], _recompile_key):
        said = {rank: _recompiled(found.get(_recompile_key(recompile), [])) for rank, found in grouped.items()}
        about = f", because of {recompile.subject}" if recompile.subject else ""
        numbers = {rank: text.partition(":")[0] for rank, text in said.items()}
        if len(set(numbers.values())) > 1:
            what = f"recompiles of {_function(recompile)} at {_place(recompile.site)}{about}"
            yield RankDifference(what, recompile.site, said)


def _recompiled(group: Sequence[Recompile]) -> str:
    values = [group[0].old, *(recompile.new for recompile in group)] if group else []
    known = list(dict.fromkeys(value for value in values if value is not None))
    shown = f": {', then '.join(known[:_MOST_LISTED])}" if len(known) > 1 else ""
    return f"{_times(len(group))}{shown}"


def _steps(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    """Recompiles that all ranks have, but not after as many runs of graphs: meanwhile, the others wait for the rank
    that compiles."""
    if not all(run.runs and run.compiles for run in runs.values()):
        return
    steps = {rank: _runs_before_recompiles(run) for rank, run in runs.items()}
    for recompile in _each([run.recompiles for run in runs.values()], _recompile_key):
        found = {rank: known.get(_recompile_key(recompile), []) for rank, known in steps.items()}
        if len({len(numbers) for numbers in found.values()}) == 1:
            said = {rank: f"after {_listed(numbers)} runs of graphs" for rank, numbers in found.items()}
            what = f"when {_function(recompile)} at {_place(recompile.site)} is recompiled"
            yield from _difference(what, recompile.site, said)


def _runs_before_recompiles(run: Explanation) -> dict[Hashable, list[int]]:
    at = {frame.compile_id: frame.at for frame in run.compiles}
    found: dict[Hashable, list[int]] = {}
    for recompile in run.recompiles:
        if (time := at.get(recompile.compile_id)) is not None:
            found.setdefault(_recompile_key(recompile), []).append(sum(r.at < time for r in run.runs))
    return found


def _order(runs: Mapping[int, Explanation]) -> Iterator[RankDifference]:
    """The same recompiles in another order."""
    orders = {rank: [_recompile_key(r) for r in run.recompiles] for rank, run in runs.items()}
    if len({frozenset(Counter(order).items()) for order in orders.values()}) == 1:
        said = {rank: _listed(_function(r) for r in run.recompiles) for rank, run in runs.items()}
        yield from _difference("the order of recompiles", None, said)


def _graphs(runs: Mapping[int, Explanation], *, unexplained: bool) -> Iterator[RankDifference]:
    """What was compiled: in all, and by function where nothing else says why it differs."""
    yield from _difference("what was compiled in all", None, {rank: _made(run.graphs) for rank, run in runs.items()})
    if unexplained:
        found = {rank: _by(run.graphs, _graph_key) for rank, run in runs.items()}
        for graph in _each([run.graphs for run in runs.values()], _graph_key):
            said = {rank: _made(graphs.get(_graph_key(graph), [])) for rank, graphs in found.items()}
            where = f" at {_place(graph.site)}" if graph.site else ""
            yield from _difference(f"graphs of {graph.function or 'a function'}{where}", graph.site, said)


def _made(graphs: Sequence[Graph]) -> str:
    if not graphs:
        return "no graph"
    ops = [graph.ops for graph in graphs]
    number = "1 graph" if len(ops) == 1 else f"{len(ops)} graphs"
    return f"{number} of {_listed(ops) if len(ops) <= _MOST_LISTED else sum(ops)} operations"


def _difference(what: str, site: Site | None, said: Mapping[int, str]) -> Iterator[RankDifference]:
    if len(set(said.values())) > 1:
        yield RankDifference(what, site, dict(said))


def _break_key(site: BreakSite) -> Hashable:
    return (site.site.path, site.site.line, site.rule.id if site.rule else site.gb_type)


def _frame_key(fate: UncompiledFrame) -> Hashable:
    return (fate.site.path, fate.site.line, fate.function, fate.status, fate.gb_type)


def _recompile_key(recompile: Recompile) -> Hashable:
    trigger = (recompile.trigger.path, recompile.trigger.line) if recompile.trigger else None
    return (recompile.site.path, recompile.site.line, recompile.function, recompile.subject, trigger)


def _graph_key(graph: Graph) -> Hashable:
    return (graph.site.path, graph.site.line, graph.function) if graph.site else graph.function


def _each(lists: Iterable[Iterable[T]], key: Callable[[T], Hashable]) -> list[T]:
    """What is in any of the lists, once."""
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


def _function(recompile: Recompile) -> str:
    return recompile.function or "a function"


def _place(site: Site) -> str:
    """Returns path and line; the path of an installed file starts at its package."""
    return f"{_INSTALLED.sub('', site.path)}:{site.line}"


def _times(count: int) -> str:
    return _NEVER if count == 0 else "once" if count == 1 else f"{count} times"


def _listed(things: Iterable[Any]) -> str:
    words = [str(thing) for thing in things]
    if len(words) > _MOST_LISTED:
        words = [*words[:_MOST_LISTED], f"{len(words) - _MOST_LISTED} more"]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "none"
