"""How the ranks of a distributed run compare, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from breakscan.reports.shared.site_words import place
from breakscan.reports.shared.wording import counted
from breakscan.runtime.explain.explanation import RankReport

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
        if ending != "finished with exit status 0":
            yield f"Rank {rank} {ending}."


def difference_table(report: RankReport) -> Table:
    """What each rank did, side by side, where they differ."""
    ranks = sorted({rank for difference in report.differences for rank in difference.by_rank})
    shown = ranks[:_MOST_RANKS]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(Text("what"), overflow="fold")
    for rank in shown:
        table.add_column(Text(f"rank {rank}"), overflow="fold")
    for difference in report.differences:
        site = difference.site
        where = place(site) if site else ""
        what = difference.what if not where or where in difference.what else f"{difference.what} ({where})"
        table.add_row(what, *(difference.by_rank.get(rank, "") for rank in shown))
    if len(ranks) > len(shown):
        table.caption = f"and {counted(len(ranks) - len(shown), 'more rank')}: --format json has all"
    return table
