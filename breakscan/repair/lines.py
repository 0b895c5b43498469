"""Where a line of a changed text comes from."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher

from breakscan.findings import Finding


class LineMap:
    """From the lines of ``after`` to those of ``before``."""

    def __init__(self, before: str, after: str) -> None:
        self._lines: list[int] = [0]
        matcher = SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
        for tag, first, last, first_new, last_new in matcher.get_opcodes():
            for offset in range(last_new - first_new):
                self._lines.append(first + offset + 1 if tag == "equal" else min(first + offset + 1, max(last, 1)))

    def before(self, line: int) -> int:
        """The line, from 1, that a line was, or that it has taken the place of."""
        return self._lines[min(line, len(self._lines) - 1)]

    def moved(self, finding: Finding) -> Finding:
        """A finding of the new text with its place in the old one."""
        site = finding.site
        lines = self.before(site.line), self.before(site.end_line)
        return replace(finding, site=replace(site, line=lines[0], end_line=max(lines)))
