"""Maps the lines of a changed text to those of the old text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from breakscan.model.findings import Finding


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The origin of each line of the new text; lines are counted from 0.

    ``origins`` holds the line of the old text that it was or replaces. ``kept`` says that the line is unchanged.
    ``cuts`` are the new lines before which lines of the old text were removed without replacement."""

    origins: tuple[int, ...] = ()
    kept: tuple[bool, ...] = ()
    cuts: frozenset[int] = frozenset()

    @staticmethod
    def unchanged(text: str) -> "SourceMap":
        count = text.count("\n") + 1
        return SourceMap(tuple(range(count)), (True,) * count)

    @staticmethod
    def of_change(before: str, after: str) -> "SourceMap":
        old, new = before.split("\n"), after.split("\n")
        most = min(len(old), len(new))
        head = next((at for at in range(most) if old[at] != new[at]), most)
        tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
        origins = list(range(head))
        kept = [True] * head
        cuts: set[int] = set()
        gone: list[int] = []
        texts = old[head : len(old) - tail], new[head : len(new) - tail]
        matcher = SequenceMatcher(lambda line: not line.strip(), *texts, autojunk=False)
        for tag, *at in matcher.get_opcodes():
            first, end, new_first, new_end = (head + number for number in at)
            last = max(end - 1, 0)
            origins += [min(first + number, last) for number in range(new_end - new_first)]
            kept += [tag == "equal"] * (new_end - new_first)
            if tag != "equal":
                gone += range(first, end)
            if tag == "delete":
                cuts.add(new_first)
        _place_moved(old, new, gone, [at for at, is_kept in enumerate(kept) if not is_kept], origins)
        origins += range(len(old) - tail, len(old))
        return SourceMap(tuple(origins), (*kept, *[True] * tail), frozenset(cuts))

    def then(self, later: "SourceMap") -> "SourceMap":
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
        neighbors."""
        found = {at + 1 for at, kept in enumerate(self.kept) if not kept}
        for at in self.cuts:
            found |= {at, at + 1}
        return found

    def moved(self, finding: Finding) -> Finding:
        """Returns a finding of the new text with its place in the old text."""
        site = finding.site
        lines = self.before(site.line), self.before(site.end_line)
        return replace(finding, site=replace(site, line=lines[0], end_line=max(lines)))


def _place_moved(old: Sequence[str], new: Sequence[str], gone: list[int], added: list[int], origins: list[int]) -> None:
    """Sets the origins of lines that have only moved."""
    was = {old[at].strip(): at for at in gone}
    counts = Counter(old[at].strip() for at in gone), Counter(new[at].strip() for at in added)
    for at in added:
        text = new[at].strip()
        if text and all(count[text] == 1 for count in counts):
            origins[at] = was[text]
