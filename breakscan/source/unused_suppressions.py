"""Comments that suppress nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from breakscan.findings import Finding, SourceError
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.paths import display_path
from breakscan.source.python_text import parse_text, python_text
from breakscan.source.suppressions import Directive, Suppressions


def unused_suppressions(files: Iterable[Path], covered: Iterable[Finding]) -> list[SourceError]:
    """The comments in files, given by their absolute paths, that suppress none of the findings ``covered``, or that
    name a rule none of them is of."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in covered:
        by_path[finding.site.path].append(finding)
    cwd = Path.cwd()
    return [one for file in files for one in _in_file(file, display_path(file, cwd), by_path)]


def _in_file(file: Path, display: str, by_path: dict[str, list[Finding]]) -> Iterator[SourceError]:
    try:
        text = python_text(read_source(file, display), file, display)
        if "breakscan:" not in text:
            return
        directives = Suppressions.read(parse_text(text, file, display)).directives
    except SourceProblem:
        return  # what is said of it is that it was not checked
    for directive in directives:
        for one in _unused(directive, by_path[display]):
            yield SourceError(display, directive.line, directive.column, one)


def _unused(directive: Directive, findings: Iterable[Finding]) -> Iterator[str]:
    there = list(findings)
    for word in directive.selectors or ():
        if not any(replace(directive, selectors=(word,)).covers(finding) for finding in there):
            yield f"unused suppression: {word} is not found here"
    if directive.selectors is None and not any(map(directive.covers, there)):
        yield "unused suppression: nothing is found here"
