"""The explanation of one run, the objects that the reports of ``explain`` are made from; and the ranks of a distributed
run, compared and merged: jobs hang where ranks differ."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.compilations import CompiledFrame, CompileTarget, Precompiled, Specialisation
from breakscan.explanation.exports import Export
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.graphs import CudaGraphSkip, Graph
from breakscan.explanation.notices import Notice
from breakscan.explanation.problems import problems_of
from breakscan.explanation.recompiles import Recompile
from breakscan.explanation.run_totals import Calls, StepProfile
from breakscan.model.findings import Site
from breakscan.model.problem import Caller, Problem
from breakscan.model.words import counted, first_few, grouped, listed, place
from breakscan.recording.launch import signal_name
from breakscan.rulebook.document import Rule


@dataclass(frozen=True, slots=True)
class RankDifference:
    """Something that the ranks did not do alike (``graph breaks at train.py:41 (BRK401 print)``), and what each did."""

    what: str
    site: Site | None
    by_rank: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class RankEnding:
    """The ending of a rank, as a clause; ``is_good`` if nothing is wrong with that."""

    words: str
    is_good: bool = False


RUNNING = RankEnding("is still running")
NO_RECORDING = RankEnding("left no recording")
NO_LOG = RankEnding("left no log")


def exit_ending(status: int | None, seconds: float | None = None, is_first: bool = False) -> RankEnding:
    """The ending by an exit status; where a job fails, after how many seconds, and whether this rank was the first."""
    after = f" after {seconds:.1f} s" if seconds is not None else ""
    words = f"{exit_words(status)}{after}{', the first to end' if is_first else ''}"
    return RankEnding(words, is_good=status == 0 and seconds is None)


@dataclass(frozen=True, slots=True)
class RankReport:
    """The ranks that were recorded, of ``world_size``; how each ended, and where they differ.  A rank that should have
    left a recording and has not is named in ``endings`` alone."""

    world_size: int
    ranks: Sequence[int]
    endings: Mapping[int, RankEnding]
    differences: Sequence[RankDifference]


def exit_words(status: int | None) -> str:
    if status is None:
        return "ended in a way that was not recorded"
    if status >= 0:
        return f"finished with exit status {status}"
    name = signal_name(-status)
    return "was interrupted (SIGINT)" if name == "SIGINT" else f"was ended by {name}"


def rank_sentences(report: RankReport) -> Iterator[str]:
    """Sentences on the number of recorded ranks, whether they did the same, and those that did not end well."""
    recorded = counted(len(report.ranks), "rank")
    of = f" of {report.world_size}" if report.world_size > len(report.ranks) else ""
    if report.differences:
        alike = "they differ, and a job hangs where ranks wait for each other"
    else:
        alike = "they compiled alike" if len(report.ranks) > 1 else ""
    yield f"{recorded}{of} recorded{f', {alike}' if alike else ''}."
    for rank, ending in report.endings.items():
        if not ending.is_good:
            yield f"Rank {rank} {ending.words}."


def ranks_in_words(ranks: Iterable[int]) -> str:
    """``rank 1``; ``ranks 0-3 and 5``."""
    numbers = sorted(ranks)
    # Neighbours have the same distance to their place in the list.
    runs = [[n for _, n in group] for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"rank{'' if len(numbers) == 1 else 's'} {listed(words, 'rank', len(words))}"


def alike(difference: RankDifference) -> list[tuple[str, str]]:
    """The ranks that did the same, in words, and what: the many first."""
    groups = grouped((share, rank) for rank, share in sorted(difference.by_rank.items()))
    return [(ranks_in_words(ranks), said) for said, ranks in sorted(groups.items(), key=lambda item: -len(item[1]))]


_NAMED_DEVICE = re.compile(r"\((.+)\)$")


@dataclass(frozen=True)
class Explanation:
    """One run.  ``status`` is the exit status, negative for the signal that ended the program; ``seconds`` its wall
    time, ``compile_seconds`` the part of it in which something was compiled.  ``entries`` counts the compilations that
    a call of a compiled function asked for: without breaks, each gives one graph.  ``libraries`` are the versions of
    those that were traced, by the names that they are imported by.  ``around`` are the problems that the compiler does
    not report.  ``traced`` holds, by file, the lines that operations of graphs come from.  ``began`` is when the
    recording began, in seconds since the epoch.  Of a run that is read from torch's own trace, ``trace`` names its log,
    ``argv`` is empty, and ``status`` and ``seconds`` are None."""

    argv: tuple[str, ...]
    status: int | None
    seconds: float | None
    torch: str
    python: str
    devices: tuple[str, ...]
    torch_imported: bool
    disabled_by: str | None
    breaks: Sequence[BreakSite]
    recompiles: Sequence[Recompile]
    frames: Sequence[UncompiledFrame]
    graphs: Sequence[Graph]
    targets: Sequence[CompileTarget]
    entries: int
    compile_seconds: float
    notices: Sequence[Notice]
    compiles: Sequence[CompiledFrame] = ()
    specialisations: Sequence[Specialisation] = ()
    cudagraph_skips: Sequence[CudaGraphSkip] = ()
    calls: Sequence[Calls] = ()
    around: Sequence[Problem] = ()
    precompiled: Sequence[Precompiled] = ()
    exports: Sequence[Export] = ()
    export_problems: Sequence[Problem] = ()
    export_rules: Mapping[str, Rule] = field(default_factory=dict)
    ranks: RankReport | None = None
    processes: int = 1
    traced: Mapping[str, Sequence[int]] = field(default_factory=dict)
    trace: str | None = None
    began: float | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    profile: StepProfile | None = None

    @property
    def device(self) -> str | None:
        """The hardware that graphs ran on, as ``2 × NVIDIA H200``; None if no graph reports it."""
        named = Counter(found[1] if (found := _NAMED_DEVICE.search(device)) else "" for device in self.devices)
        plain = {device.partition(":")[0] for device in self.devices if not _NAMED_DEVICE.search(device)}
        words = [f"{count} × {name}" for name, count in named.items() if name]
        # Scalars that stay on the CPU say nothing where there is an accelerator.
        return ", ".join(words or sorted(plain)) or None

    @property
    def break_events(self) -> int:
        return sum(site.count for site in self.breaks)

    @property
    def eager_frames(self) -> int:
        return sum(frame.status is FrameStatus.EAGER for frame in self.frames)

    @property
    def ops(self) -> int:
        return sum(graph.ops for graph in self.graphs)

    @property
    def causes(self) -> int:
        return len({recompile.cause for recompile in self.recompiles})

    @cached_property
    def problems(self) -> list[Problem]:
        return problems_of(
            self.breaks, self.frames, self.recompiles, self.around, self.export_problems, self.compile_seconds
        )

    @property
    def rules(self) -> dict[str, Rule]:
        kinds = (self.breaks, self.frames, self.recompiles)
        return {**{thing.rule.id: thing.rule for kind in kinds for thing in kind if thing.rule}, **self.export_rules}


T = TypeVar("T")
Runs: TypeAlias = Mapping[int, Explanation]
_MOST_LISTED = 4
_UNNAMED = "a function"


def compare(
    by_rank: Mapping[int, Explanation], world_size: int | None = None, endings: Mapping[int, RankEnding] | None = None
) -> RankReport:
    """The differences between ranks, the most important first; ``endings`` replace the exit statuses."""
    ranks = sorted(by_rank)
    if endings is None:
        endings = {rank: exit_ending(by_rank[rank].status) for rank in ranks}
    runs = {rank: by_rank[rank] for rank in ranks}
    differences = [*_breaks(runs), *_frames(runs), *_recompiles(runs), *_steps(runs)]
    differences += _graphs(runs, unexplained=not differences)
    return RankReport(max(world_size or 0, len(ranks)), ranks, dict(sorted(endings.items())), differences)


def merge(
    by_rank: Mapping[int, Explanation], world_size: int | None = None, endings: Mapping[int, RankEnding] | None = None
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
        other = replace(other, breaks=breaks, recompiles=recompiles)
        added: dict[str, Any] = {name: _with(name, merged, other) for name in _IDENTITIES if name != "graphs"}
        merged = replace(
            merged,
            **added,
            export_rules={**merged.export_rules, **other.export_rules},
            notices=tuple(dict.fromkeys((*merged.notices, *other.notices))),
            processes=merged.processes + other.processes,
        )
    return replace(merged, ranks=compare(by_rank, world_size, endings))


_IDENTITIES: Mapping[str, Callable[[Any], Hashable]] = {
    "breaks": lambda one: (_line(one.site), one.rule.id if one.rule else one.gb_type),
    "frames": lambda one: (_line(one.site), one.function, one.status, one.gb_type),
    "recompiles": lambda one: (_line(one.site), one.function, one.subject, _line(one.trigger)),
    "exports": lambda one: (one.way, one.name, one.caller, one.strict, one.status),
    "export_problems": lambda one: (_line(one.site), one.reason),
    "graphs": lambda one: (_line(one.site), one.function),
}
"""The identities of things of an explanation that two ranks have in common."""


def _line(at: Site | Caller | None) -> tuple[str, int] | None:
    return (at.path, at.line) if at else None


def _breaks(runs: Runs) -> Iterator[RankDifference]:
    for site, found in _each(runs, "breaks"):
        name = f"{site.rule.id} {site.rule.name}" if site.rule else site.gb_type
        counts = {rank: sum(one.count for one in own) for rank, own in found.items()}
        yield from _if_differing(f"graph breaks{_at(site.site)} ({name})", site.site, counts, _times)


def _frames(runs: Runs) -> Iterator[RankDifference]:
    """Functions that fall back to eager on some ranks only: these run other collectives than the rest, or none."""

    def fallback(end: tuple[FrameStatus, str] | None) -> str:
        return f"{end[0].words}: {end[1]}" if end else "no fallback to eager"

    for fate, found in _each(runs, "frames"):
        # One with a break is reported as that break.
        if fate.break_site is None:
            ends = {rank: (own[-1].status, own[-1].reason) if own else None for rank, own in found.items()}
            yield from _if_differing(f"{fate.function}{_at(fate.site)}", fate.site, ends, fallback)


def _recompiles(runs: Runs) -> Iterator[RankDifference]:
    for recompile, found in _each(runs, "recompiles"):
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
    """Recompiles that all ranks have, but not after as many runs of graphs: meanwhile, others wait for a rank."""
    for recompile, found in _each(runs, "recompiles"):
        before = {rank: tuple(one.runs for one in group) for rank, group in found.items()}
        if len(set(map(len, before.values()))) == 1 and not any(None in numbers for numbers in before.values()):
            what = f"when {recompile.function or _UNNAMED}{_at(recompile.site)} is recompiled"
            yield from _if_differing(
                what,
                recompile.site,
                before,
                lambda n: f"after {first_few([*map(str, n)], _MOST_LISTED)} runs of graphs",
            )


def _graphs(runs: Runs, *, unexplained: bool) -> Iterator[RankDifference]:
    """The graphs that were compiled: in all, and by function where nothing else says why it differs."""
    total = {rank: _ops(run.graphs) for rank, run in runs.items()}
    yield from _if_differing("what was compiled in all", None, total, _graphs_of)
    if unexplained:
        for graph, found in _each(runs, "graphs"):
            what = f"graphs of {graph.function or _UNNAMED}{_at(graph.site)}"
            yield from _if_differing(what, graph.site, {rank: _ops(own) for rank, own in found.items()}, _graphs_of)


def _ops(graphs: Sequence[Graph]) -> tuple[int, tuple[int, ...]]:
    """The number of graphs with the operations of each, or those of all if they are many."""
    ops = [graph.ops for graph in graphs]
    return len(ops), tuple(ops if len(ops) <= _MOST_LISTED else [sum(ops)])


def _graphs_of(graphs: tuple[int, tuple[int, ...]]) -> str:
    number, ops = graphs
    return f"{counted(number, 'graph')} of {' + '.join(map(str, ops))} operations" if number else "no graph"


def _if_differing(
    what: str, site: Site | None, by_rank: Mapping[int, T], words: Callable[[T], str]
) -> Iterator[RankDifference]:
    if len(set(by_rank.values())) > 1:
        yield RankDifference(what, site, {rank: words(share) for rank, share in by_rank.items()})


def _at(site: Site | None) -> str:
    return f" at {place(site)}" if site else ""


def _each(runs: Runs, kind: str) -> Iterator[tuple[Any, dict[int, list[Any]]]]:
    """The things of a kind on any of the ranks, each once, with those of each rank that are the same."""
    found: dict[Hashable, dict[int, list[Any]]] = {}
    for rank, run in runs.items():
        for thing in getattr(run, kind):
            found.setdefault(_IDENTITIES[kind](thing), {rank: [] for rank in runs})[rank].append(thing)
    for same in found.values():
        yield next(filter(None, same.values()))[0], same


def _with(kind: str, known: Explanation, other: Explanation) -> list[Any]:
    """The things of one run, and those of the other of which it has none."""
    identity, things = _IDENTITIES[kind], getattr(known, kind)
    keys = set(map(identity, things))
    return [*things, *(thing for thing in getattr(other, kind) if identity(thing) not in keys)]
