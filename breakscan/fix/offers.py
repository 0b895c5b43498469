"""Whether ``fix`` would edit any of some places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from breakscan.check.pipeline.check import check_paths, no_collector
from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.fix.offer import Offer
from breakscan.fix.planner import WantedRewrites, place_of, repair_file
from breakscan.model.findings import Finding
from breakscan.rulebook.config import FileSettings
from breakscan.rulebook.library import load_library

RuleLine = tuple[str, int, str]
"""A path, a line and a rule that has something to say there."""

_MOST_TRIED = 20
"""Findings of which the rewrites are tried: each takes a few hundredths of a second."""


def best_offer(files: Sequence[Path], settings: FileSettings, places: Iterable[RuleLine]) -> Offer | None:
    """The best of the edits that ``fix`` has for some places in some files, which are given by their absolute paths;
    None if it has none.  A safe edit ends the search; the first places are tried first."""
    with no_collector():
        checkers = Checker(settings)
        found = check_paths(files, settings, jobs=1, checkers=checkers)
        studies = Studies(settings, files, checkers)
        offers = set()
        for finding in _at(found.findings, places)[:_MOST_TRIED]:
            roots = tuple(map(Path, found.roots[finding.site.path]))
            offers |= _offers(finding, roots, settings, studies)
            if Offer.SAFE in offers:
                break
        studies.release()
    return min(offers, default=None)


def _at(findings: Sequence[Finding], places: Iterable[RuleLine]) -> list[Finding]:
    return [
        finding
        for path, line, rule in dict.fromkeys(places)
        for finding in findings
        if (finding.site.path, finding.rule) == (path, rule) and finding.site.line <= line <= finding.site.end_line
    ]


def _offers(finding: Finding, roots: Sequence[Path], settings: FileSettings, studies: Studies) -> set[Offer]:
    path = Path(os.path.abspath(finding.site.path))
    rule = load_library(settings.of(path).rule_folders).get(finding.rule)
    offers: set[Offer] = set()
    for rewrite in rule.rewrites if rule else ():
        wanted = WantedRewrites(places={place_of(finding): rewrite})
        repair = repair_file(path, roots, settings, wanted, studies)
        made = ((repair.applied, Offer.SAFE), (repair.held, Offer.UNSAFE), (repair.softened, Offer.SOFTENING))
        offers |= {offer for edits, offer in made if edits}
    return offers
