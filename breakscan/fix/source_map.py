"""Maps the lines of a changed text to those of the old text. Code that changes a text reports the map, so that texts
need not be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from breakscan.model.findings import Finding


class RegionsDoNotFit(ValueError):
    """The texts differ outside the regions that were reported as changed."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """A change: ``new_size`` lines replace ``size`` lines of the old text, from line ``first`` (counted from 0)."""

    first: int
    size: int
    new_size: int


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The origin of each line of the new text; lines are counted from 0.

    ``origins`` holds the line of the old text that it was or replaces. ``kept`` says that the line is unchanged.
    ``cuts`` are the new lines before which lines of the old text were removed without replacement.
    """

    origins: tuple[int, ...] = ()
    kept: tuple[bool, ...] = ()
    cuts: frozenset[int] = frozenset()

    @staticmethod
    def unchanged(text: str) -> SourceMap:
        """Returns the map of a text to itself."""
        count = text.count("\n") + 1
        return SourceMap(tuple(range(count)), (True,) * count)

    @staticmethod
    def of_regions(before: str, after: str, regions: Iterable[ChangedLines]) -> SourceMap:
        """Returns the map of a text in which these regions have changed. Raises RegionsDoNotFit."""
        old, new = before.split("\n"), after.split("\n")
        origins: list[int] = []
        kept: list[bool] = []
        cuts: set[int] = set()
        at = 0
        for region in sorted(regions, key=lambda one: (one.first, one.size)):
            if region.first < at:
                raise RegionsDoNotFit("the regions overlap")
            origins += range(at, region.first)
            kept += [True] * (region.first - at)
            first_new = len(origins)
            at = region.first + region.size
            last = max(at - 1, 0)
            origins += [min(region.first + number, last) for number in range(region.new_size)]
            kept += [False] * region.new_size
            _place_moved(old, new, range(region.first, at), range(first_new, len(origins)), origins)
            if region.size and not region.new_size:
                cuts.add(first_new)
        origins += range(at, len(old))
        kept += [True] * (len(old) - at)
        if len(origins) != len(new) or any(k and old[o] != line for o, k, line in zip(origins, kept, new, strict=True)):
            raise RegionsDoNotFit("the texts differ elsewhere")
        return SourceMap(tuple(origins), tuple(kept), frozenset(cuts))

    @staticmethod
    def of_one_change(before: str, after: str) -> SourceMap:
        """Returns the map of a text with one changed place: all lines from the first to the last that differ."""
        old, new = before.split("\n"), after.split("\n")
        most = min(len(old), len(new))
        head = next((at for at in range(most) if old[at] != new[at]), most)
        tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
        region = ChangedLines(head, len(old) - head - tail, len(new) - head - tail)
        return SourceMap.of_regions(before, after, [region] if region.size or region.new_size else [])

    def then(self, later: SourceMap) -> SourceMap:
        """Returns the map from the text after a further change to the text before this one."""
        if not self.origins:
            return later
        origins = tuple(self.origins[at] for at in later.origins)
        kept = tuple(k and self.kept[at] for at, k in zip(later.origins, later.kept, strict=True))
        # A cut stays if the line after it stays.
        cuts = {at for at, origin in enumerate(later.origins) if later.kept[at] and origin in self.cuts}
        return SourceMap(origins, kept, later.cuts | cuts)

    def before(self, line: int) -> int:
        """Returns the line of the old text, from 1, that a line was or replaces."""
        return self.origins[min(line, len(self.origins)) - 1] + 1 if self.origins else line

    def changed_lines(self) -> set[int]:
        """Returns the lines of the new text, from 1, that have changed. Removed lines are represented by their
        neighbors.
        """
        found = {at + 1 for at, kept in enumerate(self.kept) if not kept}
        for at in self.cuts:
            found |= {at, at + 1}
        return found

    def moved(self, finding: Finding) -> Finding:
        """Returns a finding of the new text with its place in the old text."""
        site = finding.site
        lines = self.before(site.line), self.before(site.end_line)
        return replace(finding, site=replace(site, line=lines[0], end_line=max(lines)))


def _place_moved(old: Sequence[str], new: Sequence[str], gone: range, added: range, origins: list[int]) -> None:
    """Sets the origins of lines that an edit has only moved within their region."""
    was = Counter(old[at].strip() for at in gone)
    now = Counter(new[at].strip() for at in added if at < len(new))
    for at in added:
        text = new[at].strip() if at < len(new) else ""
        if text and was[text] == now[text] == 1:
            origins[at] = next(line for line in gone if old[line].strip() == text)
