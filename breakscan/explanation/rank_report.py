"""The ranks of a distributed run, compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from breakscan.model.findings import Site
from breakscan.model.words import counted, listed
from breakscan.recording.job import signal_name


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


def killed_ending(seconds: float) -> RankEnding:
    return RankEnding(f"was killed together with breakscan, after {seconds:.1f} s")


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
    """The ending of a program, as a clause."""
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
    groups: dict[str, list[int]] = {}
    for rank, share in sorted(difference.by_rank.items()):
        groups.setdefault(share, []).append(rank)
    return [(ranks_in_words(ranks), said) for said, ranks in sorted(groups.items(), key=lambda item: -len(item[1]))]
