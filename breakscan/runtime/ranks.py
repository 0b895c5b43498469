"""What the ranks of a distributed run have in common, and where they differ: that is how jobs hang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscan.findings import Site


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the ranks did not do alike: what it is in words (``graph breaks at train.py:41``), where, and
    what each rank did, in words, by rank."""

    what: str
    site: Site | None
    by_rank: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class RankReport:
    """The ranks that were recorded, of ``world_size``; how each ended, in words, and where they differ."""

    world_size: int
    ranks: Sequence[int]
    endings: Mapping[int, str]
    differences: Sequence[Difference]
