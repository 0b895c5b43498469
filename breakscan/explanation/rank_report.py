"""How the ranks of a distributed run compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from breakscan.explanation.frames import FrameStatus, Reason, reason_words
from breakscan.explanation.guards import value_words
from breakscan.model.findings import Site
from breakscan.model.words import counted, listed, place
from breakscan.recording.job import signal_name
from breakscan.recording.parsers.guards import Within


class RankTopic(Enum):
    """What ranks can do differently, with what is kept of each rank."""

    BREAKS = "breaks"
    """:class:`Times`."""
    FALLBACK = "fallback"
    """:class:`Fallback`."""
    RECOMPILES = "recompiles"
    """:class:`Times`."""
    STEPS = "steps"
    """How many graphs ran before each recompile: :class:`RunsBefore`."""
    EXPORTS = "exports"
    """What stands against exports: :class:`Times`."""
    ORDER = "order"
    """The order of recompiles: :class:`FunctionOrder`."""
    ALL_GRAPHS = "all-graphs"
    """:class:`GraphsMade`."""
    GRAPHS = "graphs"
    """Of one function: :class:`GraphsMade`."""


@dataclass(frozen=True, slots=True)
class Times:
    """How often it happened, with the values that a guard met."""

    number: int
    values: tuple[str | Within, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallback:
    """What became of a function, and why; both None where it did not fall back to eager."""

    status: FrameStatus | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class RunsBefore:
    """The number of runs of graphs before each of some recompiles."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionOrder:
    """The functions that were recompiled, in order; None for one without a name."""

    functions: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GraphsMade:
    """A number of graphs with the operations of each, or those of all if they are many."""

    number: int
    ops: tuple[int, ...]


RankShare = Times | Fallback | RunsBefore | FunctionOrder | GraphsMade


@dataclass(frozen=True, slots=True)
class RankDifference:
    """Something that the ranks did not do alike, and what each did.  ``name`` is that of a function, or the rule or the
    type of a break; ``subject`` is what recompiles are about."""

    topic: RankTopic
    site: Site | None
    by_rank: Mapping[int, RankShare]
    name: str | None = None
    subject: str = ""


class EndingKind(Enum):
    """What is known of the end of a rank."""

    ENDED = "ended"
    """The exit status is known, or None: not recorded."""
    RUNNING = "running"
    KILLED_WITH_US = "killed-with-us"
    NO_RECORDING = "no-recording"
    NO_LOG = "no-log"


@dataclass(frozen=True, slots=True)
class RankEnding:
    """How a rank ended.  Where a job fails: after how many seconds, and whether it was the first to end."""

    kind: EndingKind
    status: int | None = None
    seconds: float | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class RankReport:
    """The ranks that were recorded, of ``world_size``; how each ended, and where they differ.  A rank that should have
    left a recording and has not is named in ``endings`` alone."""

    world_size: int
    ranks: Sequence[int]
    endings: Mapping[int, RankEnding]
    differences: Sequence[RankDifference]


def exit_words(status: int | None) -> str:
    """How a program ended, as a report says it of one."""
    if status is None:
        return "ended in a way that was not recorded"
    if status >= 0:
        return f"finished with exit status {status}"
    name = signal_name(-status)
    return "was interrupted (SIGINT)" if name == "SIGINT" else f"was ended by {name}"


_GOOD = RankEnding(EndingKind.ENDED, 0)
_MOST_LISTED = 4


def rank_sentences(report: RankReport) -> Iterator[str]:
    """How many ranks were recorded, whether they did the same, and how those ended that did not end well."""
    recorded = counted(len(report.ranks), "rank")
    of = f" of {report.world_size}" if report.world_size > len(report.ranks) else ""
    if report.differences:
        alike = "they differ, and a job hangs where ranks wait for each other"
    else:
        alike = "they compiled alike" if len(report.ranks) > 1 else ""
    yield f"{recorded}{of} recorded{f', {alike}' if alike else ''}."
    for rank, ending in report.endings.items():
        if ending != _GOOD:
            yield f"Rank {rank} {ending_words(ending)}."


def difference_words(difference: RankDifference) -> str:
    """What the ranks did not do alike: ``graph breaks at train.py:41 (BRK401 print)``."""
    site, name = difference.site, difference.name or "a function"
    at = f" at {place(site)}" if site else ""
    match difference.topic:
        case RankTopic.BREAKS:
            return f"graph breaks{at} ({name})"
        case RankTopic.FALLBACK:
            return f"{name}{at}"
        case RankTopic.RECOMPILES:
            return f"recompiles of {name}{at}{f', because of {difference.subject}' if difference.subject else ''}"
        case RankTopic.STEPS:
            return f"when {name}{at} is recompiled"
        case RankTopic.EXPORTS:
            return f"what ends exports{at} ({name})"
        case RankTopic.ORDER:
            return "the order of recompiles"
        case RankTopic.ALL_GRAPHS:
            return "what was compiled in all"
        case RankTopic.GRAPHS:
            return f"graphs of {name}{at}"


def share_words(share: RankShare) -> str:
    """What one rank did."""
    match share:
        case Times(number, values):
            times = "never" if number == 0 else "once" if number == 1 else f"{number} times"
            return times + (f": {', then '.join(map(value_words, values[:_MOST_LISTED]))}" if len(values) > 1 else "")
        case Fallback(status, reason):
            if status is None or reason is None:
                return "no fallback to eager"
            return f"{status.words}: {reason_words(reason)}"
        case RunsBefore(numbers):
            return f"after {_listed(map(str, numbers))} runs of graphs"
        case FunctionOrder(functions):
            return _listed(function or "a function" for function in functions)
        case GraphsMade(number, ops):
            return f"{counted(number, 'graph')} of {_listed(map(str, ops))} operations" if number else "no graph"


def ending_words(ending: RankEnding) -> str:
    """How a rank ended, as a report says it of one: ``finished with exit status 0``."""
    match ending.kind:
        case EndingKind.ENDED:
            after = f" after {ending.seconds:.1f} s" if ending.seconds is not None else ""
            return f"{exit_words(ending.status)}{after}{', the first to end' if ending.is_first else ''}"
        case EndingKind.KILLED_WITH_US:
            return f"was killed together with breakscan, after {ending.seconds:.1f} s"
        case EndingKind.RUNNING:
            return "is still running"
        case EndingKind.NO_RECORDING:
            return "left no recording"
        case EndingKind.NO_LOG:
            return "left no log"


def ranks_in_words(ranks: Iterable[int]) -> str:
    """``rank 1``; ``ranks 0-3 and 5``."""
    numbers = sorted(ranks)
    # Neighbours have the same distance to their place in the list.
    runs = [[n for _, n in group] for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"rank{'' if len(numbers) == 1 else 's'} {listed(words, 'rank', len(words))}"


def alike(difference: RankDifference) -> list[tuple[str, str]]:
    """The ranks that did the same, in words, and what: the many first."""
    groups: dict[str, list[int]] = {}
    for rank, share in sorted(difference.by_rank.items()):
        groups.setdefault(share_words(share), []).append(rank)
    return [(ranks_in_words(ranks), said) for said, ranks in sorted(groups.items(), key=lambda item: -len(item[1]))]


def _listed(words: Iterable[str]) -> str:
    shown = list(words)
    if len(shown) > _MOST_LISTED:
        shown = [*shown[:_MOST_LISTED], f"{len(shown) - _MOST_LISTED} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "none"
