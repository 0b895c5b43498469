"""Comments that suppress nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakscan.model.findings import Finding, SourceError
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.paths import display_path
from breakscan.source.python_text import parse_text, python_text
from breakscan.source.suppressions import Directive, Suppressions


@dataclass(frozen=True, slots=True)
class UnusedSuppression:
    """A comment, in the file of a path as it is reported, or some ``words`` of it, that suppress nothing; None for all
    of a comment that names no rules."""

    path: str
    directive: Directive
    words: tuple[str, ...] | None

    def warnings(self) -> Iterator[SourceError]:
        """What is said of it, at the place of the comment."""
        for word in self.words or (None,):
            what = "nothing is found here" if word is None else f"{word} is not found here"
            yield SourceError(self.path, self.directive.line, self.directive.column, f"unused suppression: {what}")


def unused_suppressions(files: Iterable[Path], covered: Iterable[Finding]) -> list[UnusedSuppression]:
    """The comments in files, given by their absolute paths, that suppress none of the findings ``covered``, or that
    name a rule none of them is of."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in covered:
        by_path[finding.site.path].append(finding)
    cwd = Path.cwd()
    return [one for file in files for one in _in_file(file, display_path(file, cwd), by_path)]


def _in_file(file: Path, display: str, by_path: dict[str, list[Finding]]) -> Iterator[UnusedSuppression]:
    try:
        text = python_text(read_source(file, display), file, display)
        if "breakscan:" not in text:
            return
        directives = Suppressions.read(parse_text(text, file, display)).directives
    except SourceProblem:
        return  # what is said of it is that it was not checked
    for directive in directives:
        words = _unused(directive, by_path[display])
        if words is None or words:
            yield UnusedSuppression(display, directive, words)


def _unused(directive: Directive, findings: Sequence[Finding]) -> tuple[str, ...] | None:
    """The words that suppress none of some findings; None for a comment without words that does not."""
    if directive.selectors is None:
        return () if any(map(directive.covers, findings)) else None
    words = directive.selectors
    return tuple(word for word in words if not any(map(replace(directive, selectors=(word,)).covers, findings)))
