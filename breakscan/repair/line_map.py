"""Where a line of a changed text comes from."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher

from breakscan.findings import Finding


class LineMap:
    """From the lines of ``after`` to those of ``before``."""

    def __init__(self, before: str, after: str) -> None:
        self._lines: list[int] = [0]
        old, new = before.split("\n"), after.split("\n")
        gone: dict[str, list[int]] = {}
        added: dict[int, str] = {}
        for tag, first, last, first_new, last_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            for offset in range(last_new - first_new):
                self._lines.append(first + offset + 1 if tag == "equal" else min(first + offset + 1, max(last, 1)))
            if tag != "equal":
                added |= {number + 1: new[number].strip() for number in range(first_new, last_new)}
                for number in range(first, last):
                    gone.setdefault(old[number].strip(), []).append(number + 1)
        # What only moves, to in front of what was taken out, is where it was.
        texts = Counter(added.values())
        for number, text in added.items():
            if text and texts[text] == len(gone.get(text, ())) == 1:
                self._lines[number] = gone[text][0]

    def before(self, line: int) -> int:
        """The line, from 1, that a line was, or that it has taken the place of."""
        return self._lines[min(line, len(self._lines) - 1)]

    def moved(self, finding: Finding) -> Finding:
        """A finding of the new text with its place in the old one."""
        site = finding.site
        lines = self.before(site.line), self.before(site.end_line)
        return replace(finding, site=replace(site, line=lines[0], end_line=max(lines)))
