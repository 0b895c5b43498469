"""A part of a survey's units, for a machine of several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from breakscan.survey.plan import PlannedUnit
from breakscan.survey.units import digest


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` (from 1) of ``count``.  A unit is always in the same one, whatever it runs with and whichever
    others there are, so that each store keeps the results of its units from one survey to the next."""

    number: int
    count: int

    def of(self, units: Iterable[PlannedUnit]) -> list[PlannedUnit]:
        """The units of this part."""
        return [one for one in units if self._holds(one)]

    def _holds(self, one: PlannedUnit) -> bool:
        place = int(digest([one.unit.name, one.unit.conditions]), 16)
        return place % self.count == self.number - 1


def shard(text: str) -> Shard:
    """The part that a text such as ``3/16`` names.  Raises ValueError."""
    match = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError(f"{text!r} is no part: 3/16 is the third of 16")
    return Shard(int(match[1]), int(match[2]))
