"""How the ranks of a distributed run compare, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from breakscan.explain.explanation import (
    EndingKind,
    Fallback,
    FunctionOrder,
    GraphsMade,
    RankDifference,
    RankEnding,
    RankReport,
    RankShare,
    RankTopic,
    RunsBefore,
    Times,
)
from breakscan.model.words import counted, listed, place
from breakscan.report.explain.guard_words import value_words
from breakscan.report.explain.reason_words import reason_words
from breakscan.report.explain.words import STATUS_WORDS, exit_words

_GOOD = RankEnding(EndingKind.ENDED, 0)
_MOST_LISTED = 4
_MOST_RANKS = 8
"""The limit of columns in a table; JSON reports the values of all ranks."""


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


def difference_table(report: RankReport) -> Table:
    """What each rank did, side by side, where they differ."""
    ranks = sorted({rank for difference in report.differences for rank in difference.by_rank})
    shown = ranks[:_MOST_RANKS]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(Text("what"), overflow="fold")
    for rank in shown:
        table.add_column(Text(f"rank {rank}"), overflow="fold")
    for difference in report.differences:
        shares = difference.by_rank
        cells = (share_words(shares[rank]) if rank in shares else "" for rank in shown)
        table.add_row(difference_words(difference), *cells)
    if len(ranks) > len(shown):
        table.caption = f"and {counted(len(ranks) - len(shown), 'more rank')}: --format json has all"
    return table


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
            return f"{STATUS_WORDS[status]}: {reason_words(reason)}"
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
